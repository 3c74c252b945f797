"""Packing and unpacking: arrays survive every format."""

from __future__ import annotations

import itertools
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from fuseflow.errors import TensorError
from fuseflow.tensors import Format, from_coordinates, pack, repack

MATRIX_FORMATS = ("dense", "csr", "csc", "coo", "dcsr", "dcsc", "csf", "(compressed, dense)", "(compressed, dense) order (1, 0)")


@given(data=st.data())
def test_unpacking_gives_the_array_back(packed, data):
    array, tensor = data.draw(packed)
    np.testing.assert_array_equal(tensor.to_dense(), array)
    assert tensor.shape == array.shape
    assert tensor.dtype == array.dtype


@given(data=st.data())
def test_repacking_keeps_the_array_and_the_implicit_value(packed, formats, data):
    array, tensor = data.draw(packed)
    again = repack(tensor, data.draw(formats(array.ndim)))
    np.testing.assert_array_equal(again.to_dense(), array)
    assert again.fill == tensor.fill


@given(data=st.data())
def test_entries_stand_in_storage_order(packed, data):
    _, tensor = data.draw(packed)
    keys = list(zip(*tensor.coordinates()[list(tensor.format.order)].tolist(), strict=True))
    assert keys == sorted(set(keys))
    assert len(tensor.entries()[1]) == (len(keys) if tensor.shape else 1)
    if not any(level.pads for level in tensor.format.levels):  # these may store values outside the shape
        assert tensor.stored == (len(keys) if tensor.shape else 1)


@given(data=st.data())
def test_walking_the_fibers_finds_every_stored_value(packed, data):
    array, tensor = data.draw(packed)

    def walk(depth, ref, point):
        if depth == len(tensor.levels):
            yield point, ref
            return
        for crd, below in zip(*tensor.levels[depth].fiber(ref), strict=True):
            yield from walk(depth + 1, below, {**point, tensor.format.order[depth]: crd})

    seen = np.full(array.shape, tensor.fill)
    for point, ref in walk(0, 0, {}):
        seen[tuple(point[d] for d in range(array.ndim))] = tensor.values[ref]
    np.testing.assert_array_equal(seen, array)


@pytest.mark.parametrize("format", MATRIX_FORMATS)
@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0), (1, 1), (1, 4), (4, 1), (5, 6)])
@pytest.mark.parametrize("density", [0, 0.4, 1])
def test_scipy_arrays(format, shape, density):
    array = sparse.random_array(shape, density=density, rng=np.random.default_rng(0))
    for kind in ("coo", "csr", "csc"):
        tensor = pack(array.asformat(kind), Format.parse(format, 2))
        np.testing.assert_array_equal(tensor.to_dense(), array.toarray())
        np.testing.assert_array_equal(tensor.to_scipy().toarray(), array.toarray())


@pytest.mark.parametrize("format", MATRIX_FORMATS)
def test_duplicates_are_added_up(format):
    coordinates = np.array([[1, 0, 1, 1], [2, 0, 2, 2]])
    tensor = from_coordinates((2, 3), coordinates, np.array([1.0, 5.0, 2.0, 4.0]), Format.parse(format, 2))
    np.testing.assert_array_equal(tensor.to_dense(), [[5, 0, 0], [0, 0, 7]])


def test_explicit_zeros_of_a_scipy_array_are_stored():
    array = sparse.coo_array((np.array([0.0, 3.0]), (np.array([0, 1]), np.array([1, 1]))), shape=(2, 2))
    assert pack(array, Format.parse("csr", 2)).values.tolist() == [0, 3]
    assert pack(array.toarray(), Format.parse("csr", 2)).values.tolist() == [3]
    assert pack(array, Format.parse("csr", 2)).to_scipy().nnz == 2


def test_the_implicit_value_is_what_is_left_out():
    array = np.array([[-np.inf, 0.0], [2.0, -np.inf]])
    tensor = pack(array, Format.parse("csr", 2), fill=-np.inf)
    assert tensor.values.tolist() == [0, 2]
    np.testing.assert_array_equal(tensor.to_dense(), array)
    assert repr(tensor) == "Tensor((2, 2), csr, float64, 2 stored, fill -inf)"
    with pytest.raises(ValueError, match="implicit value 0"):
        tensor.to_scipy()


def test_a_scalar_has_one_value():
    tensor = pack(3.0, Format.dense(0))
    assert (tensor.shape, tensor.stored, tensor.to_dense().item()) == ((), 1, 3.0)
    assert repack(tensor, Format.dense(0)).to_dense().item() == 3.0
    assert from_coordinates((), np.zeros((0, 2)), np.array([1.0, 2.0]), Format.dense(0)).to_dense().item() == 3.0


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64])
def test_the_dtype_stays(dtype):
    for format in MATRIX_FORMATS:
        assert pack(np.eye(3, dtype=dtype), Format.parse(format, 2)).to_dense().dtype == dtype


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_every_mode_order_of_a_cube(order):
    array = np.random.default_rng(1).integers(0, 2, (2, 3, 4)) * 1.0
    for levels in (("compressed",) * 3, ("dense", "compressed", "dense"), ("dense",) * 3):
        np.testing.assert_array_equal(pack(array, Format.of(*levels, order=order)).to_dense(), array)


def test_a_packed_dense_array_is_a_copy():
    array = np.zeros((2, 2))
    tensor = pack(array, Format.dense(2))
    array[0, 0] = 5
    assert tensor.to_dense()[0, 0] == 0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: pack(np.zeros((2, 2)), Format.dense(3)), "has 3 levels, the tensor 2 dimensions"),
        (lambda: pack(np.zeros(2, dtype=int), Format.dense(1), fill=-np.inf), "the implicit value -inf is not an integer"),
        (lambda: pack(np.zeros((2, 2)), Format.parse("csf", 3)), "has 3 levels, the tensor 2 dimensions"),
        (lambda: pack(sparse.eye_array(2), Format.parse("csr", 2), fill=1.0), "a scipy array has the implicit value 0"),
        (
            lambda: from_coordinates((2, 2), np.array([[0], [2]]), np.ones(1), Format.parse("csr", 2)),
            "coordinate 2 of dimension 1 is outside 0..1",
        ),
        (
            lambda: from_coordinates((2, 2), np.array([[-1], [0]]), np.ones(1), Format.parse("csr", 2)),
            "coordinate -1 of dimension 0 is outside 0..1",
        ),
        (lambda: from_coordinates((2, 2), np.zeros((2, 3)), np.ones(2), Format.parse("csr", 2)), "3 coordinates and 2 values"),
    ],
)
def test_what_cannot_be_packed_is_refused(make, message):
    with pytest.raises(TensorError, match=message):
        make()


def test_a_million_entries_pack_in_seconds():
    rng = np.random.default_rng(0)
    coordinates = rng.integers(0, 100_000, (2, 1_000_000))
    tensor = from_coordinates((100_000, 100_000), coordinates, np.ones(1_000_000), Format.parse("csr", 2))
    assert tensor.values.sum() == 1_000_000


def test_a_singleton_level_refuses_a_second_coordinate_below_an_entry() -> None:
    """It once lost values, or ended in a traceback of NumPy."""
    format = Format.parse("(compressed, singleton)", 2)
    assert pack(np.eye(3)[::-1], format).to_dense().tolist() == np.eye(3)[::-1].tolist()
    with pytest.raises(TensorError, match="one coordinate for each entry"):
        pack(np.array([[1, 2, 0], [0, 3, 4]]), format)


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_the_dense_array_of_a_dense_tensor_lists_no_coordinates(order: tuple[int, ...]) -> None:
    """It took eight bytes a dimension and element."""
    array = np.random.default_rng(0).random((30, 40, 50))
    tensor = pack(array, Format.of("dense", "dense", "dense", order=order))
    listed = np.full(array.shape, np.nan)
    listed[tuple(tensor.coordinates())] = tensor.values
    tracemalloc.start()
    dense = tensor.to_dense()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (dense == listed).all() and (dense == array).all() and dense.flags.c_contiguous and dense.flags.owndata
    assert peak < 1.5 * array.nbytes and not np.shares_memory(dense, tensor.values)


def test_a_list_of_coordinates_has_each_once_whatever_hangs_below() -> None:
    """The first of two entries of one array was lost, and two of one fiber were two equal coordinates."""
    coordinates = np.array([[0, 0, 2], [1, 1, 0], [0, 2, 1]])
    values = np.array([1.0, 2.0, 3.0])
    for below in ("dense", "compressed"):
        packed = from_coordinates((3, 2, 3), coordinates, values, Format.of("compressed(nonunique)", "singleton", below))
        assert [list(level.arrays["crd"]) for level in packed.levels[:2]] == [[0, 2], [1, 0]]
        assert packed.to_dense()[0, 1].tolist() == [1.0, 0.0, 2.0] and packed.to_dense()[2, 0].tolist() == [0.0, 3.0, 0.0]
