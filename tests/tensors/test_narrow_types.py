"""Narrow element types: their numbers, their bytes, and inputs that they cannot hold. PyTorch's casts are the witness."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import sparse

from fuseflow.einsum.parse import parse
from fuseflow.errors import FileError, TensorError
from fuseflow.frontend.torch_tensors import to_torch
from fuseflow.tensors import Format, from_coordinates
from fuseflow.tensors.array_files import pack_declared
from fuseflow.tensors.blocks import from_blocks, to_blocks
from fuseflow.tensors.dtypes import DTYPES
from fuseflow.tensors.pack import repack
from fuseflow.tensors.sam_files import read_fibertree, write_fibertree

NARROW = ("i4", "u4", "i8", "u8", "i16", "f16", "bf16")
RANGES = {"i4": (-8, 7), "u4": (0, 15), "i8": (-128, 127), "u8": (0, 255), "i16": (-32768, 32767)}
CASTS = {"f16": torch.float16, "bf16": torch.bfloat16}


def declared(text: str):
    return parse(f"tensor A{text}\nY = sum(i, j) A[i, j]\noutput Y").inputs[0]


def test_exactly_these_types_are_narrow():
    assert {name for name, row in DTYPES.items() if row.narrow} == set(NARROW)
    assert [DTYPES[name].bits for name in NARROW] == [4, 4, 8, 8, 16, 16, 16]


@pytest.mark.parametrize("name", CASTS)
def test_floats_are_rounded_as_pytorch_casts_them(name: str):
    bits = np.random.default_rng(0).integers(0, 2**32, 200_000, dtype=np.uint32)
    edges = np.array([0, 1, 0x80000000, 0x7F800000, 0xFF800000, 0x7F7FFFFF, 0x477FEFFF, 0x477FF000, 0x33000000], dtype=np.uint32)
    values = np.concatenate([bits, edges]).view(np.float32)
    ours = DTYPES[name].round(values).astype(np.float32)
    theirs = torch.from_numpy(values.copy()).to(CASTS[name]).float().numpy()
    assert np.array_equal(np.isnan(ours), np.isnan(theirs))
    kept = ~np.isnan(ours)
    assert np.array_equal(ours[kept].view(np.int32), theirs[kept].view(np.int32))


def test_a_float_of_64_bits_is_rounded_once():
    """Two roundings, by 32 bits, would end at the even neighbour here."""
    value = 1 + 2.0**-11 + 2.0**-40
    assert DTYPES["f16"].nearest(value) == 1 + 2.0**-10 == float(np.float16(value))
    halves = np.arange(1 << 15, dtype=np.uint16).view(np.float16).astype(np.float64)
    middles = (halves[:0x7BFF] + halves[1:0x7C00]) / 2
    for moved in (middles, np.nextafter(middles, 0), np.nextafter(middles, np.inf)):
        assert np.array_equal(DTYPES["f16"].round(moved), moved.astype(np.float16).astype(np.float64))


@pytest.mark.parametrize("name", RANGES)
def test_integers_saturate_and_halves_go_to_even(name: str):
    least, greatest = RANGES[name]
    values = np.array([-np.inf, -1e30, -40000.5, -2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 6.5, 7.5, 300.0, 1e30, np.inf])
    wanted = torch.from_numpy(values).round().clamp(least, greatest).numpy()
    assert np.array_equal(DTYPES[name].round(values), wanted)
    assert np.isnan(DTYPES[name].nearest(np.nan))


@pytest.mark.parametrize(("name", "width"), [("i4", 4), ("u4", 4), ("i8", 8), ("u8", 8), ("i16", 16), ("f16", 16), ("bf16", 16)])
@pytest.mark.parametrize("count", [0, 1, 2, 7, 10])
def test_bytes_are_counted_to_the_bit_and_rounded_up_once(name: str, width: int, count: int):
    places = np.array([np.zeros(count, dtype=np.int64), np.arange(count)])
    tensor = from_coordinates((1, 16), places, np.ones(count, DTYPES[name].holder), Format.parse("csr", 2), 0.0, DTYPES[name])
    assert tensor.nbytes - tensor.pos_bytes - tensor.crd_bytes == (count * width + 7) // 8


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("i4", 8, "8"),
        ("i4", -9, "-9"),
        ("u4", 16, "16"),
        ("u4", -1, "-1"),
        ("i8", 128, "128"),
        ("u8", 256, "256"),
        ("i16", 1 << 40, "1099511627776"),
        ("i8", 0.5, "0.5"),
        ("i8", np.nan, "nan"),
        ("u8", np.inf, "inf"),
        ("i4", 1e30, "1e+30"),
    ],
)
def test_an_input_that_an_integer_type_cannot_hold_is_refused_with_its_first_coordinate(name: str, value: float, shown: str):
    array = np.zeros((3, 4), dtype=np.int64 if isinstance(value, int) else np.float64)
    array[1, 2] = array[2, 0] = value
    least, greatest = RANGES[name]
    reason = (
        rf"not of the declared type {name}, .* from {least} to {greatest}: the first is {shown.replace('+', '.')} at \(1, 2\)"
    )
    for stored in (array, sparse.csr_array(array), sparse.coo_array(array)):
        with pytest.raises(FileError, match=reason) as refused:
            pack_declared(stored, declared(f"[3, 4] csr {name}"))
        assert "declare `f32` or `f64`" in refused.value.hint


def test_entries_at_one_place_are_added_before_they_are_held():
    twice = sparse.coo_array((np.array([100, 100, -90], dtype=np.int8), ([0, 0, 0], [1, 1, 1])), shape=(1, 2))
    assert pack_declared(twice, declared("[1, 2] csr i8")).to_dense().tolist() == [[0, 110]]
    twice.data[2] = 0
    with pytest.raises(TensorError, match=r"the sum of the entries at \(0, 1\) is more than `int8` holds"):
        pack_declared(twice, declared("[1, 2] csr i8"))
    with pytest.raises(FileError, match=r"the first is 200 at \(0, 1\)"):
        pack_declared(twice.astype(np.int16), declared("[1, 2] csr i8"))


@pytest.mark.parametrize("name", NARROW)
@pytest.mark.parametrize("stored", ["dense", "csr", "csc", "coo", "(dense, nm(2:4))", "(dense, bitmap)"])
def test_a_type_stays_with_its_tensor(name: str, stored: str, tmp_path):
    array = np.array([[0, 3, 0, 0, 0], [0, 0, 7, 0, 1], [0, 0, 0, 0, 0], [1, 2, 0, 0, 5]])
    tensor = pack_declared(array, declared(f"[4, 5] {stored} {name}"))
    others = [tensor, repack(tensor, Format.parse("dcsr", 2))]
    if "nm" not in stored:  # of which a group holds two blocks at most
        others.append(from_blocks(to_blocks(tensor, (2, 2)), (4, 5), (2, 2)))
    for other in others:
        assert (other.element_type.name, other.element_bits) == (name, DTYPES[name].bits)
        assert other.values.dtype == DTYPES[name].holder
        assert np.array_equal(other.to_dense(), array)
    torches = to_torch(tensor)
    assert torches.dtype == {"i4": torch.int8, "u4": torch.uint8, "u8": torch.uint8}.get(name, getattr(torch, wide(name), None))
    assert np.array_equal(torches.to_dense().double().numpy(), array)
    if stored != "coo":
        write_fibertree(tmp_path, "A", tensor)
        assert np.array_equal(read_fibertree(tmp_path, "A", tensor.format).to_dense(), array)


def wide(name: str) -> str:
    return {"i8": "int8", "i16": "int16", "f16": "float16", "bf16": "bfloat16"}.get(name, "")
