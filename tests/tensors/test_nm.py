"""The level nm(n:m): offsets in groups, pads, and what does not fit."""

from __future__ import annotations

import json
import re
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuseflow.errors import FileError, TensorError
from fuseflow.tensors import Format, Tensor, from_coordinates, pack
from fuseflow.tensors.array_files import read_fibertree, write_fibertree
from fuseflow.tensors.levels import parse_level
from fuseflow.tensors.levels.base import Listed
from fuseflow.tensors.levels.nm import NM
from fuseflow.tensors.pack import repack
from fuseflow.tensors.restriction import restrict

CASES = json.loads((Path(__file__).parents[1] / "data/sparsity/nm_level.json").read_text())


@st.composite
def groups(draw: st.DrawFn) -> tuple[NM, npt.NDArray[np.int64]]:
    """A level, and a matrix whose rows fit it: of every group as many elements as there is room for, or fewer."""
    m = draw(st.integers(1, 9))
    level = NM(draw(st.integers(1, m)), m)
    rows, size = draw(st.integers(0, 4)), draw(st.integers(0, 22))
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    array = np.zeros((rows, size), dtype=np.int64)
    for row in range(rows):
        for start in range(0, size, m):
            width = min(m, size - start)
            places = rng.permutation(width)[: rng.integers(0, min(level.n, width) + 1)]
            array[row, start + places] = rng.integers(1, 9, len(places))
    return level, array


def packed(level: NM, array: npt.NDArray[Any], outer: str = "dense") -> Tensor:
    return pack(array, Format.of(outer, level.text))


def by_hand(level: NM, array: npt.NDArray[np.int64]) -> tuple[list[int], list[int]]:
    """The offsets and the values of a matrix, group by group."""
    offsets, values = list[int](), list[int]()
    for row in array:
        for start in range(0, len(row), level.m):
            held = [k for k in range(level.m) if start + k < len(row) and row[start + k] != 0]
            free = [k for k in range(level.m) if k not in held]
            group = sorted(held + free[: level.n - len(held)])
            offsets += group
            values += [int(row[start + k]) if start + k < len(row) else 0 for k in group]
    return offsets, values


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['n']}of{case['m']}-{case['shape'][1]}")
def test_what_others_packed(case: dict[str, Any]) -> None:
    array = np.array(case["dense"], dtype=np.float32).reshape(case["shape"])
    level = NM(case["n"], case["m"])
    tensor = packed(level, array)
    assert tensor.levels[1].arrays["crd"].tolist() == case["offsets"]
    assert tensor.values.tolist() == case["values"]
    (stored,) = level.arrays(array.shape[1])
    assert (stored.bits, tensor.crd_bytes, tensor.pos_bytes) == (case["offset_bits"], case["offset_bytes"], 0)
    np.testing.assert_array_equal(tensor.to_dense(), array)


@given(groups())
def test_offsets_and_pads_by_hand(drawn: tuple[NM, npt.NDArray[np.int64]]) -> None:
    level, array = drawn
    tensor = packed(level, array)
    assert (tensor.levels[1].arrays["crd"].tolist(), tensor.values.tolist()) == by_hand(level, array)
    np.testing.assert_array_equal(tensor.to_dense(), array)
    if array.size:
        np.testing.assert_array_equal(tensor.to_scipy().toarray(), array)


@given(groups(), st.sampled_from(["dense", "compressed"]))
def test_a_scan_emits_what_is_inside(drawn: tuple[NM, npt.NDArray[np.int64]], outer: str) -> None:
    """Every entry but those at or beyond the size, ascending, the same by every way through the fibers."""
    level, array = drawn
    fibers = packed(level, array, outer).levels[1]
    rows, size = fibers.parents, array.shape[1]  # type: ignore[attr-defined]
    walk, look = fibers.walk(), fibers.look()
    assert isinstance(walk, Listed)
    owner, crds, refs = fibers.expand(np.arange(rows))
    for row in range(rows):
        every = [
            (start + off, at)
            for at, (start, off) in enumerate(
                zip(
                    np.repeat(np.arange(0, size, level.m), level.n),
                    fibers.arrays["crd"].reshape(rows, -1)[row].tolist(),
                    strict=True,
                ),
                row * ceil(size / level.m) * level.n,
            )
        ]
        inside = [(int(crd), ref) for crd, ref in every if crd < size]
        assert list(zip(*map(list, fibers.fiber(row)), strict=True)) == inside
        assert list(zip(*map(list, look(row)[:2]), strict=True)) == inside
        assert look(row)[2] == len(inside) == level.entries(size)
        low, high = int(walk.lows[row]), int(walk.highs[row])
        assert list(zip(walk.crds[low:high].tolist(), range(low, high), strict=True)) == inside
        assert list(zip(crds[owner == row].tolist(), refs[owner == row].tolist(), strict=True)) == inside
        assert [crd for crd, _ in inside] == sorted({crd for crd, _ in inside})


@pytest.mark.parametrize(("m", "bits"), [(1, 1), (2, 1), (3, 2), (4, 2), (5, 3), (8, 3), (9, 4), (128, 7), (129, 8), (256, 8)])
def test_bits_of_an_offset(m: int, bits: int) -> None:
    """Bytes are rounded up once for the whole array."""
    (stored,) = NM(1, m).arrays(1000)
    assert stored.bits == bits
    tensor = packed(NM(1, m), np.eye(3, 5 * m, dtype=np.float32))
    assert tensor.crd_bytes == ceil(3 * 5 * bits / 8)
    assert tensor.nbytes == tensor.crd_bytes + 4 * 15


def test_the_size_of_a_pruned_layer() -> None:
    array = np.zeros((768, 3072), dtype=np.float32)
    array[:, ::2] = 1
    tensor, rows = packed(NM(2, 4), array), pack(array, Format.parse("csr", 2))
    assert (tensor.values.nbytes, tensor.crd_bytes, tensor.pos_bytes) == (4_718_592, 294_912, 0)
    assert (rows.values.nbytes, rows.crd_bytes, rows.pos_bytes) == (4_718_592, 4_718_592, 3_076)


def test_patterns_that_no_scan_can_tell_apart() -> None:
    """Why a pad is an entry: its offset may be that of a coordinate."""
    with_pad, without = (packed(NM(2, 4), np.array([row])) for row in ([0, 0, 0, 5], [3, 0, 0, 5]))
    assert with_pad.levels[1].arrays["crd"].tolist() == without.levels[1].arrays["crd"].tolist() == [0, 3]
    assert (with_pad.values.tolist(), without.values.tolist()) == ([0, 5], [3, 5])


def test_a_last_group_that_is_shorter_than_its_entries() -> None:
    tensor = packed(NM(3, 4), np.array([[0, 1, 0, 2, 3], [0, 0, 0, 0, 0]]))
    assert tensor.levels[1].arrays["crd"].tolist() == [0, 1, 3, 0, 1, 2, 0, 1, 2, 0, 1, 2]
    assert [list(x) for x in tensor.levels[1].fiber(0)] == [[0, 1, 3, 4], [0, 1, 2, 3]]
    assert [list(x) for x in tensor.levels[1].fiber(1)] == [[0, 1, 2, 4], [6, 7, 8, 9]]
    assert (tensor.stored, len(tensor.entries()[1]), tensor.levels[1].elements) == (12, 8, 8)


def test_pads_have_the_implicit_value_and_nothing_below_them() -> None:
    fill = -np.inf
    array = np.full((6, 3), fill)
    array[4, 1] = 2
    dense, sparse = (pack(array, Format.of("nm(1:3)", below), fill) for below in ("dense", "compressed"))
    assert dense.values.tolist() == [fill] * 4 + [2, fill]
    assert (sparse.values.tolist(), sparse.levels[1].arrays["seg"].tolist()) == ([2], [0, 0, 1])
    for tensor in (dense, sparse):
        np.testing.assert_array_equal(tensor.to_dense(), array)


@given(groups())
def test_files(tmp_path_factory: pytest.TempPathFactory, drawn: tuple[NM, npt.NDArray[np.int64]]) -> None:
    level, array = drawn
    folder, tensor = tmp_path_factory.mktemp("files"), packed(level, array.astype(np.float64))
    write_fibertree(folder, "W", tensor)
    again = read_fibertree(folder, "W", tensor.format)
    np.testing.assert_array_equal(again.to_dense(), array)
    assert again.levels[1].arrays["crd"].tolist() == tensor.levels[1].arrays["crd"].tolist()


@pytest.mark.parametrize(
    ("offsets", "why"),
    [
        ("0 1 0", "3 offsets, 2 for each of 2 groups are 4"),
        ("0 4 0 1", r"an offset is outside 0\.\.3"),
        ("-1 1 0 1", r"an offset is outside 0\.\.3"),
        ("1 0 0 1", "do not ascend"),
        ("1 1 0 1", "do not ascend"),
        ("0 1 0 3", r"outside 0\.\.5, where others of its group are free"),
    ],
)
def test_files_that_are_no_groups(tmp_path: Path, offsets: str, why: str) -> None:
    write_fibertree(tmp_path, "W", packed(NM(2, 4), np.array([[1.0, 2, 0, 0, 3, 4]])))
    (tmp_path / "tensor_W_mode_1_crd").write_text(offsets.replace(" ", "\n"))
    with pytest.raises(FileError, match=why):
        read_fibertree(tmp_path, "W", Format.of("dense", "nm(2:4)"))


@given(groups(), st.data())
def test_other_formats_and_back(drawn: tuple[NM, npt.NDArray[np.int64]], data: st.DataObject) -> None:
    """Pads become explicit zeros elsewhere, and an explicit zero takes no room in a group."""
    level, array = drawn
    tensor = packed(level, array)
    other = repack(tensor, Format.parse(data.draw(st.sampled_from(["csr", "csc", "coo", "(dense, bitmap)", "dense"])), 2))
    again = repack(other, tensor.format)
    np.testing.assert_array_equal(other.to_dense(), array)
    assert again.levels[1].arrays["crd"].tolist() == tensor.levels[1].arrays["crd"].tolist()
    assert again.values.tolist() == tensor.values.tolist()


def test_a_restriction_to_rows() -> None:
    array = np.array([[1, 0, 0, 2, 3], [0, 0, 4, 0, 0], [5, 6, 0, 0, 7]])
    part = restrict(packed(NM(2, 4), array), 0, np.array([0, 2]))
    np.testing.assert_array_equal(part.to_dense(), array[[0, 2]])
    assert part.format == Format.of("dense", "nm(2:4)")


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
@pytest.mark.parametrize("text", ["nm(2:4)", "nm(1:1)", "nm(256:256)"])
def test_text(text: str, order: tuple[int, int]) -> None:
    format = Format.of("dense", text, order=order)
    assert Format.parse(str(format), 2) == Format.parse(format.short(), 2) == format
    assert format.short() == (text if order == (0, 1) else f"(dense, {text}) order (1, 0)")


def test_spaces_are_taken() -> None:
    assert Format.parse("( compressed , nm( 2 : 4 ))", 2) == Format.of("compressed", "nm(2:4)")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("nm(3:2)", r"3 entries are stored of a group of 2 coordinates\n.*entries come first"),
        ("nm(0:4)", r"nothing is stored of a group of 4 coordinates\n.*at most the coordinates"),
        ("nm(1:0)", r"a group has 0 coordinates\n.*1 to 256"),
        ("nm(2:257)", r"a group has 257 coordinates\n.*1 to 256"),
        ("nm", r"cannot read the level `nm`\n.*`nm\(2:4\)`"),
        ("nm(2)", "cannot read the level"),
        ("nm(2:4:8)", "cannot read the level"),
        ("mn(2:4)", r"did you mean `nm\(2:4\)`"),
    ],
)
def test_names_that_are_none(text: str, why: str) -> None:
    with pytest.raises(TensorError) as caught:
        Format.parse(text, 2)
    assert re.search(why, str(caught.value))
    with pytest.raises(TensorError):
        Format.parse(f"(dense, {text})", 2)


def test_the_short_name_is_for_matrices() -> None:
    with pytest.raises(TensorError, match="is for matrices, the tensor has 3 dimensions") as caught:
        Format.parse("nm(2:4)", 3)
    assert caught.value.hint == "write the levels: `(dense, compressed, ...)`"


def test_a_group_that_holds_too_much_is_named() -> None:
    array = np.zeros((2, 3, 10))
    array[1, 2, 8:] = array[1, 2, 4:7] = array[0, 0, :2] = 1
    with pytest.raises(TensorError) as caught:
        pack(array, Format.of("dense", "dense", "nm(2:4)"))
    assert "level 2 (nm(2:4)), from coordinate (1, 2, 4) on: 3 of 4 coordinates are stored, and there is room for 2" in str(
        caught.value
    )
    assert "compressed" in caught.value.hint
    with pytest.raises(TensorError, match=r"level 0 \(nm\(1:2\)\), from coordinate \(\*, 2\) on: 2 of 2"):
        from_coordinates((4, 4), np.array([[0, 1], [2, 3]]), np.ones(2), Format.of("nm(1:2)", "dense", order=(1, 0)))


def test_a_level_of_a_family_is_a_value() -> None:
    assert parse_level("nm(2:4)") == NM(2, 4) != NM(1, 4)
    assert repr(NM(2, 4)) == "NM(n=2, m=4)"
