"""Arrays cut into tiles and put together again."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from fuseflow.errors import TensorError
from fuseflow.tensors import Format
from fuseflow.tensors.tiles import cut, whole

sides, counts = st.integers(1, 3), st.integers(0, 3)


@given(st.data(), st.integers(2, 3), sides, sides, st.integers(0, 2**32 - 1))
def test_cut_and_whole(data: st.DataObject, rank: int, rows: int, columns: int, seed: int) -> None:
    shape = tuple(data.draw(counts) for _ in range(rank))
    rng = np.random.default_rng(seed)
    array = rng.integers(-1, 3, (*shape[:-2], shape[-2] * rows, shape[-1] * columns)).astype(float)
    for name in ("dense", ", ".join(["compressed"] * rank), ", ".join(["dense", *["compressed"] * (rank - 1)])):
        tensor = cut(array, (rows, columns), rank).pack(Format.parse(name if name == "dense" else f"({name})", rank), 0.0)
        assert (tensor.shape, tensor.tile) == (shape, (rows, columns))
        np.testing.assert_array_equal(whole(tensor).to_dense(), array)
        for where, tile in zip(tensor.coordinates().T, tensor.values, strict=True):
            *outer, i, j = where
            part = array[(*outer, slice(i * rows, (i + 1) * rows), slice(j * columns, (j + 1) * columns))]
            np.testing.assert_array_equal(tile, part)
            assert tensor.format.levels[-1].full or tile.any()


@given(counts, counts, sides, sides, st.integers(0, 2**32 - 1))
def test_a_sparse_array_stores_the_tiles_of_its_entries(m: int, n: int, rows: int, columns: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    array = sparse.coo_array(rng.integers(0, 2, (m * rows, n * columns)) * 1.0)
    twice = sparse.coo_array((np.tile(array.data, 2), tuple(np.tile(crds, 2) for crds in array.coords)), shape=array.shape)
    tensor = cut(twice, (rows, columns), 2).pack(Format.parse("dcsr", 2), 0.0)
    np.testing.assert_array_equal(whole(tensor).to_dense(), 2 * array.toarray())
    assert tensor.stored == len({(i // rows, j // columns) for i, j in zip(*array.coords, strict=True)})


@pytest.mark.parametrize(
    ("shape", "tile", "rank", "counted"),
    [((6,), (3, 1), 1, (2,)), ((6,), (1, 2), 1, (3,)), ((2, 3), (2, 3), 0, ()), ((5, 2, 3), (2, 3), 1, (5,))],
)
def test_fewer_dimensions(shape: tuple[int, ...], tile: tuple[int, int], rank: int, counted: tuple[int, ...]) -> None:
    array = np.arange(1.0, 1 + np.prod(shape)).reshape(shape)
    tensor = cut(array, tile, rank).pack(Format.dense(rank), 0.0)
    assert (tensor.shape, tensor.tile) == (counted, tile)
    np.testing.assert_array_equal(whole(tensor).to_dense(), array)
    if array.ndim == 2:
        np.testing.assert_array_equal(
            whole(cut(sparse.coo_array(array), tile, rank).pack(Format.dense(rank), 0.0)).to_dense(), array
        )


@pytest.mark.parametrize(
    ("shape", "tile", "rank", "message"),
    [
        ((4, 5), (2, 2), 2, "dimension 1 has size 5, no multiple of 2: tiles are 2 x 2"),
        ((4,), (2, 2), 2, "an array of 1 dimensions, not 2"),
        ((4, 2), (2, 2), 0, "dimension 0 has size 4, not 2"),
    ],
)
def test_what_is_not_made_of_tiles(shape: tuple[int, ...], tile: tuple[int, int], rank: int, message: str) -> None:
    with pytest.raises(TensorError, match=message):
        cut(np.ones(shape), tile, rank)


def test_implicit_values_of_tiles() -> None:
    array = np.full((4, 4), -np.inf)
    array[3, 0] = 1.0
    tensor = cut(array, (2, 2), 2).pack(Format.parse("dcsr", 2), -np.inf)
    assert (tensor.stored, whole(tensor).fill) == (1, -np.inf)
    np.testing.assert_array_equal(whole(tensor).to_dense(), array)
