"""The bitmap level against numpy's own packing of bits, and its bytes against a closed form."""

from __future__ import annotations

from math import ceil
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuseflow.errors import FileError
from fuseflow.tensors import Format, pack
from fuseflow.tensors.array_files import read_fibertree, write_fibertree
from fuseflow.tensors.levels.bitmap import Bitmap, BitmapFibers

SIZES = st.sampled_from([1, 2, 31, 32, 33, 63, 64, 65, 100])


@st.composite
def masks(draw: st.DrawFn) -> npt.NDArray[np.bool_]:
    """Where a matrix stores something; the last partial word of a row, full words and empty rows among it."""
    rng = np.random.default_rng(draw(st.integers(0, 1 << 16)))
    mask = rng.random((draw(st.integers(1, 6)), draw(SIZES))) < draw(st.sampled_from([0.0, 0.05, 0.5, 1.0]))
    mask[:, -1] |= rng.random(len(mask)) < 0.3
    return np.asarray(mask)


def bitmap(mask: npt.NDArray[np.bool_]) -> BitmapFibers:
    _, columns = pack(np.where(mask, 2.0, 0.0), Format.parse("(dense, bitmap)", 2)).levels
    assert isinstance(columns, BitmapFibers)
    return columns


def words_of(mask: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """By numpy: rows padded to whole words, packed to bytes, the lowest bit first."""
    padded = np.pad(mask, ((0, 0), (0, -mask.shape[1] % 32)))
    return np.packbits(padded, axis=1, bitorder="little").reshape(-1, 4).copy().view("<u4").reshape(-1).astype(np.int64)


@given(masks())
def test_bits_and_ranks_are_those_of_numpy(mask: npt.NDArray[np.bool_]) -> None:
    level, expected = bitmap(mask), words_of(mask)
    assert level.bits.tolist() == expected.tolist()
    set_bits = np.array([bin(word).count("1") for word in expected.tolist()])
    assert level.rank.tolist() == [0, *np.cumsum(set_bits)[:-1].tolist()]


@given(masks())
def test_a_locate_is_a_count_of_bits(mask: npt.NDArray[np.bool_]) -> None:
    """The reference of a stored coordinate is the number of entries before it; any other has none."""
    level, before = bitmap(mask), (np.cumsum(mask) - mask.reshape(-1)).reshape(mask.shape)
    for (row, crd), there in np.ndenumerate(mask):
        assert level.locate(row, crd) == (before[row, crd] if there else None)


@given(masks())
def test_all_ways_through_the_fibers_agree(mask: npt.NDArray[np.bool_]) -> None:
    level, walk = bitmap(mask), bitmap(mask).walk()
    for row in range(len(mask)):
        stored = np.flatnonzero(mask[row]).tolist()
        crds, refs = level.fiber(row)
        low, high = int(walk.lows[row]), int(walk.highs[row])
        assert (crds, refs) == (stored, list(range(low, high)))
        assert walk.crds[low:high].tolist() == stored
    assert level.entries == mask.sum() == len(walk.crds)


@pytest.mark.parametrize("size", [0, 1, 31, 32, 33, 64, 65])
@pytest.mark.parametrize("rows", [0, 1, 5])
def test_bytes(rows: int, size: int) -> None:
    """Eight bytes for each 32 coordinates of a row, begun ones too, however many are stored; a row has at least one word."""
    expected = rows * max(1, ceil(size / 32)) * 4
    for mask in (np.zeros((rows, size), bool), np.ones((rows, size), bool)):
        tensor = pack(mask.astype(np.float32), Format.parse("(dense, bitmap)", 2))
        assert (tensor.pos_bytes, tensor.crd_bytes) == (expected, expected)
        assert tensor.nbytes == 2 * expected + 4 * int(mask.sum())
        counts = {array.kind: array.count(rows, int(mask.sum())) * array.bits // 8 for array in Bitmap().arrays(size)}
        assert counts == {"pos": expected, "crd": expected}


@given(masks())
def test_what_is_appended_is_what_is_packed(mask: npt.NDArray[np.bool_]) -> None:
    pos = np.concatenate([[0], np.cumsum(mask.sum(axis=1))])
    made = Bitmap().append(mask.shape[1], len(mask), pos, np.nonzero(mask)[1].astype(np.int32))
    packed = bitmap(mask)
    assert {k: v.tolist() for k, v in made.arrays.items()} == {k: v.tolist() for k, v in packed.arrays.items()}


@given(mask=masks())
def test_files(tmp_path_factory: pytest.TempPathFactory, mask: npt.NDArray[np.bool_]) -> None:
    folder, format = tmp_path_factory.mktemp("tree"), Format.parse("(bitmap, bitmap)", 2)
    tensor = pack(np.where(mask, 3.0, 0.0), format)
    write_fibertree(folder, "A", tensor)
    assert read_fibertree(folder, "A", format).to_dense().tolist() == tensor.to_dense().tolist()


@pytest.mark.parametrize(
    ("file", "text", "problem"),
    [
        ("1_bits", "5\n", "these are not 2 words of 32 bits, 1 for each of 2 fibers"),
        ("1_bits", f"5\n{1 << 32}\n", "these are not 2 words"),
        ("1_bits", "5\n16\n", r"a coordinate is outside 0\.\.3"),
        ("1_rank", "0\n1\n", "these are not the numbers of bits that are set in the words before each"),
    ],
)
def test_files_that_are_none(tmp_path: Path, file: str, text: str, problem: str) -> None:
    format = Format.parse("(dense, bitmap)", 2)
    write_fibertree(tmp_path, "A", pack(np.array([[1.0, 0, 2, 0], [0, 3, 0, 0]]), format))
    (tmp_path / f"tensor_A_mode_{file}").write_text(text)
    with pytest.raises(FileError, match=f"{file}`: {problem}"):
        read_fibertree(tmp_path, "A", format)
