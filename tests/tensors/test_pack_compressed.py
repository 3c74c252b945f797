"""Packing of CSR and CSC arrays as they are: the same tensor as from a list of coordinates, in little memory."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from fuseflow.tensors import Format, Tensor, from_coordinates, pack
from fuseflow.tensors.levels.base import NARROW_SIZE, narrowed
from fuseflow.tensors.pack import pack_compressed

FORMATS = (
    "csr",
    "csc",
    "dcsr",
    "dcsc",
    "coo",
    "dense",
    "(dense, bitmap)",
    "(bitmap, compressed) order (1, 0)",
    "(compressed, dense)",
)


def contents(tensor: Tensor) -> tuple[object, ...]:
    levels = [(f.size, f.entries, {k: (a.dtype, a.tolist()) for k, a in f.arrays.items()}) for f in tensor.levels]
    return tensor.shape, tensor.format, tensor.dtype, tensor.values.tolist(), tensor.fill, levels


@given(
    st.integers(0, 6),
    st.integers(0, 6),
    st.integers(0, 2**32 - 1),
    st.sampled_from(FORMATS),
    st.sampled_from(("csr", "csc")),
    st.booleans(),
)
def test_as_from_coordinates(rows: int, columns: int, seed: int, format: str, layout: str, tidy: bool) -> None:
    """Zeros that are stored stay; coordinates that do not ascend, or occur twice, are put right."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(0, 12)) if rows * columns else 0
    where = np.array([rng.integers(0, rows or 1, count), rng.integers(0, columns or 1, count)])
    values = rng.integers(0, 3, count).astype(np.float32)
    array = sparse.coo_array((values, tuple(where)), shape=(rows, columns)).asformat(layout)
    if tidy:
        array.sum_duplicates()
    elif count:
        array.indices = np.concatenate([rng.permutation(part) for part in np.split(array.indices, array.indptr[1:-1])])
    coo, parsed = array.tocoo(), Format.parse(format, 2)
    expected = from_coordinates(coo.shape, np.array(coo.coords, dtype=np.int64), coo.data, parsed)
    for copy in (True, False):
        assert contents(pack(array, parsed, copy=copy)) == contents(expected)


@pytest.mark.parametrize(
    ("pos", "crd"),
    [([0, 1, 2], [0, 2]), ([0, 1, 2], [0, -1]), ([0, 2, 1], [0, 1]), ([1, 1, 2], [0, 1]), ([0, 1], [0, 1]), ([0, 2, 2], [1, 1])],
)
def test_arrays_of_no_matrix_are_not_packed(pos: list[int], crd: list[int]) -> None:
    assert pack_compressed((2, 2), np.array(pos), np.array(crd), np.ones(2), Format.parse("csr", 2)) is None


def test_a_copy_shares_nothing() -> None:
    array = sparse.csr_array(np.eye(3, dtype=np.float32))
    tensor, shared = pack(array, Format.parse("csr", 2)), pack(array, Format.parse("csr", 2), copy=False)
    array.data[:] = 7
    array.indices[:] = 0
    assert tensor.to_dense().tolist() == np.eye(3).tolist()
    assert shared.values.tolist() == [7, 7, 7]


@pytest.mark.parametrize("format", ["csr", "dcsr"])
def test_packing_takes_little_memory(format: str) -> None:
    """It was some sixty bytes an entry when entries were listed and sorted."""
    rows, each = 1 << 12, 1 << 8
    crd = np.tile(np.arange(each, dtype=np.int32) * 3, rows)
    array = sparse.csr_array(
        (np.ones(rows * each, np.float32), crd, np.arange(rows + 1, dtype=np.int32) * each), shape=(rows, 3 * each)
    )
    tracemalloc.start()
    tensor = pack(array, Format.parse(format, 2), copy=False)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert tensor.stored == rows * each and peak < 2 * tensor.stored
    assert np.shares_memory(tensor.values, array.data)
    assert np.shares_memory(tensor.levels[1].arrays["crd"], array.indices)


def test_a_dense_tensor_of_a_sparse_matrix_takes_the_memory_of_its_elements() -> None:
    """It was more than a hundred bytes an element: all coordinates were listed and sorted."""
    array = sparse.csr_array(np.random.default_rng(0).random((1 << 10, 1 << 9), dtype=np.float32))
    tracemalloc.start()
    tensor = pack(array, Format.parse("dense", 2))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert tensor.stored == array.shape[0] * array.shape[1] and peak < 10 * tensor.stored
    assert (tensor.to_dense() == array.toarray()).all()


def test_coordinates_take_32_bits_where_every_coordinate_fits() -> None:
    assert narrowed(np.array([5]), NARROW_SIZE).dtype == np.int32
    assert narrowed(np.array([5]), NARROW_SIZE + 1).dtype == np.int64
    tensor = pack(np.eye(3), Format.parse("coo", 2))
    assert [f.arrays["crd"].dtype for f in tensor.levels] == [np.int32, np.int32]
    assert tensor.coordinates().dtype == np.int64


def test_coordinates_of_32_bits_do_not_overflow() -> None:
    size = 2**31 - 1
    tensor = from_coordinates((size, size), np.array([[0, size - 1], [size - 1, size - 2]]), np.ones(2), Format.parse("dcsr", 2))
    assert tensor.coordinates().tolist() == [[0, size - 1], [size - 1, size - 2]]
