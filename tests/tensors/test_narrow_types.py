"""Narrow element types: their numbers, their bytes, and inputs that they cannot hold. PyTorch's casts are the witness."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import sparse

from fuseflow.einsum.parse import parse
from fuseflow.einsum.verify import verify
from fuseflow.errors import FileError, ProgramError, TensorError
from fuseflow.frontend.torch_tensors import to_torch
from fuseflow.tensors import Format, from_coordinates
from fuseflow.tensors.array_files import pack_declared, read_fibertree, write_fibertree
from fuseflow.tensors.blocks import from_blocks, to_blocks
from fuseflow.tensors.dtypes import DTYPES
from fuseflow.tensors.pack import repack

NARROW = ("i4", "u4", "i8", "u8", "i16", "f16", "bf16", "e5m2", "e4m3", "e2m1", "e8m0")
RANGES = {"i4": (-8, 7), "u4": (0, 15), "i8": (-128, 127), "u8": (0, 255), "i16": (-32768, 32767)}
CASTS = {"f16": torch.float16, "bf16": torch.bfloat16, "e5m2": torch.float8_e5m2, "e4m3": torch.float8_e4m3fn}
RECORDED = np.load(Path(__file__).parents[1] / "data" / "small_floats.npz")
"""What ml_dtypes 0.6.0 makes of every number of bfloat16, and its two neighbours among the 32-bit floats: of the words from 0 on."""


def bfloats_and_neighbours() -> np.ndarray:
    """Every number of bfloat16, infinities and NaN among them, and the 32-bit floats below and above each."""
    numbers = (np.arange(1 << 16, dtype=np.uint32) << 16).view(np.float32)
    with np.errstate(all="ignore"):
        return np.concatenate([numbers, np.nextafter(numbers, -np.float32(np.inf)), np.nextafter(numbers, np.float32(np.inf))])


def assert_same_bits(ours: np.ndarray, theirs: np.ndarray) -> None:
    assert np.array_equal(np.isnan(ours), np.isnan(theirs))
    kept = ~np.isnan(ours)
    assert np.array_equal(ours[kept].view(np.int32), theirs[kept].view(np.int32))


def declared(text: str):
    return parse(f"tensor A{text}\nY = sum(i, j) A[i, j]\noutput Y").inputs[0]


def test_exactly_these_types_are_narrow():
    assert {name for name, row in DTYPES.items() if row.narrow} == set(NARROW)
    assert [DTYPES[name].bits for name in NARROW] == [4, 4, 8, 8, 16, 16, 16, 8, 8, 4, 8]


@pytest.mark.parametrize("name", CASTS)
def test_floats_are_rounded_as_pytorch_casts_them(name: str):
    bits = np.random.default_rng(0).integers(0, 2**32, 200_000, dtype=np.uint32)
    edges = np.array([0, 1, 0x80000000, 0x7F800000, 0xFF800000, 0x7F7FFFFF, 0x477FEFFF, 0x477FF000, 0x33000000], dtype=np.uint32)
    values = np.concatenate([np.concatenate([bits, edges]).view(np.float32), bfloats_and_neighbours()])
    theirs = torch.from_numpy(values.copy()).to(CASTS[name]).float().numpy()
    assert_same_bits(DTYPES[name].hold(values).astype(np.float32), theirs)


@pytest.mark.parametrize(("name", "end"), [("e4m3", 464.0), ("e5m2", np.inf), ("e2m1", np.inf), ("e8m0", 1.5 * 2.0**127)])
def test_small_floats_are_rounded_as_ml_dtypes_rounds_them(name: str, end: float):
    """Beyond its range, ml_dtypes makes NaN of a number in e4m3, where PyTorch and a program saturate."""
    values = bfloats_and_neighbours()
    kept = (values >= 2.0**-126) & (values < end) if name == "e8m0" else (np.abs(values) <= end)
    assert_same_bits(DTYPES[name].hold(values[kept]), RECORDED[name][kept])


def test_the_ends_of_small_floats():
    rounded = {
        name: DTYPES[name].hold(np.array([464.0, 465.0, 6e4, np.inf, -np.inf, -0.0, 0.26])) for name in ("e4m3", "e2m1", "e5m2")
    }
    assert rounded["e4m3"].tolist() == [448, 448, 448, 448, -448, 0, 0.25]
    assert rounded["e2m1"].tolist() == [6, 6, 6, 6, -6, 0, 0.5]
    assert rounded["e5m2"].tolist() == [448, 448, 57344, np.inf, -np.inf, 0, 0.25]
    assert all(np.signbit(values[5]) for values in rounded.values())
    assert DTYPES["e4m3"].hold(np.array([2.0**-9, 2.0**-10, 1.5 * 2.0**-9])).tolist() == [2.0**-9, 0, 2.0**-8]


def test_powers_of_2_are_rounded_as_pytorch_casts_them():
    """Between 2^-126 and the largest one. PyTorch has no 0 there, and drops the sign."""
    values = bfloats_and_neighbours()
    values = values[(values >= 2.0**-126) & (values < 1.5 * 2.0**127)]
    assert_same_bits(DTYPES["e8m0"].hold(values), torch.from_numpy(values).to(torch.float8_e8m0fnu).float().numpy())


@pytest.mark.parametrize("value", [0.0, -1.0, np.inf])
def test_an_input_that_is_no_power_of_2_is_refused(value: float):
    array = np.array([[1.0, 2.0], [value, 4.0]])
    for stored, format in ((array, "dense"), (sparse.coo_array(array), "csr")):
        if value or format == "dense":  # a sparse tensor does not store zeros
            with pytest.raises(
                FileError, match=r"not of the declared type e8m0, whose numbers are powers of 2: the first is .* at \(1, 0\)"
            ):
                pack_declared(stored, declared(f"[2, 2] {format} e8m0"))


@pytest.mark.parametrize(
    ("name", "fill"), [("e8m0", "-inf"), ("e8m0", "-1"), ("e8m0", "3"), ("e2m1", "nan"), ("e4m3", "inf"), ("e4m3", "0.1")]
)
def test_an_implicit_value_that_is_no_number_of_the_type_is_refused(name: str, fill: str):
    with pytest.raises(ProgramError, match=rf"the implicit value {fill}, which is no number of {name}"):
        verify(parse(f"tensor A[2, 2] csr {name} fill {fill}\nY[i, j] = A[i, j] + 1\noutput Y"))


def test_nan_in_4_bits_is_refused():
    with pytest.raises(
        FileError, match=r"not of the declared type e2m1, whose numbers are not NaN: the first is nan at \(0, 1\)"
    ):
        pack_declared(np.array([[1.0, np.nan]]), declared("[1, 2] dense e2m1"))
    assert np.isnan(pack_declared(np.array([[1.0, np.nan]]), declared("[1, 2] dense e4m3")).values[1])


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


@pytest.mark.parametrize(("name", "width"), [(name, DTYPES[name].bits) for name in NARROW])
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
    array = np.array([[0, 3, 0, 0, 0], [0, 0, 6, 0, 1], [0, 0, 0, 0, 0], [1, 2, 0, 0, 4]])
    if name == "e8m0":
        if stored in ("dense", "(dense, nm(2:4))"):
            return  # which store zeros
        array = np.array([[0, 4, 0, 0, 0], [0, 0, 8, 0, 1], [0, 0, 0, 0, 0], [1, 2, 0, 0, 4]])
    tensor = pack_declared(array, declared(f"[4, 5] {stored} {name}"))
    others = [tensor, repack(tensor, Format.parse("dcsr", 2))]
    if "nm" not in stored:  # of which a group holds two blocks at most
        others.append(from_blocks(to_blocks(tensor, (2, 2)), (4, 5), (2, 2)))
    for other in others:
        assert (other.element_type.name, other.element_bits) == (name, DTYPES[name].bits)
        assert other.values.dtype == DTYPES[name].holder
        assert np.array_equal(other.to_dense(), array)
    torches = to_torch(tensor)
    dtype = {"i4": torch.int8, "u4": torch.uint8, "u8": torch.uint8}.get(name, getattr(torch, wide(name), None))
    assert torches.dtype == (torch.float32 if stored != "dense" and name.startswith("e") else dtype)  # it adds up none of 8 bits
    assert np.array_equal(torches.to_dense().double().numpy(), array)
    if stored != "coo":
        write_fibertree(tmp_path, "A", tensor)
        assert np.array_equal(read_fibertree(tmp_path, "A", tensor.format).to_dense(), array)


def wide(name: str) -> str:
    eights = {"e5m2": "float8_e5m2", "e4m3": "float8_e4m3fn", "e2m1": "float32", "e8m0": "float8_e8m0fnu"}
    return ({"i8": "int8", "i16": "int16", "f16": "float16", "bf16": "bfloat16"} | eights).get(name, "")
