"""Cutting tensors into chunks, and putting them together again."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fuseflow.sparsity.grouped.grouping import ChunkGrid


@st.composite
def grids(draw: st.DrawFn) -> ChunkGrid:
    shape = tuple(draw(st.lists(st.integers(0, 7), min_size=2, max_size=5)))
    sparse_dim, group_dim = draw(st.permutations(range(len(shape))))[:2]
    return ChunkGrid(shape, draw(st.integers(1, 5)), draw(st.integers(1, 6)), sparse_dim, group_dim)


@given(grids(), st.sampled_from(["float32", "float64", "bool", "int8"]), st.booleans())
def test_chunks_put_together_are_the_tensor(grid: ChunkGrid, dtype: str, transposed: bool) -> None:
    array = np.random.default_rng(0).integers(0, 100, grid.shape[::-1] if transposed else grid.shape).astype(dtype)
    array = array.T if transposed else array
    chunks = grid.split(array)
    assert chunks.shape == (grid.count, grid.columns, grid.m) and chunks.dtype == dtype
    assert np.array_equal(grid.join(chunks), array)
    assert np.count_nonzero(chunks) == np.count_nonzero(array)  # it is filled up with zeros


@given(grids())
def test_an_entry_stands_where_its_coordinates_say(grid: ChunkGrid) -> None:
    array = 1 + np.arange(np.prod(grid.shape, dtype=int)).reshape(grid.shape)
    chunks = grid.split(array)
    rest = [dim for dim in range(len(grid.shape)) if dim not in (grid.sparse_dim, grid.group_dim)]
    across, along = -(-grid.shape[grid.group_dim] // grid.columns), -(-grid.shape[grid.sparse_dim] // grid.m)
    for coordinates in np.ndindex(*grid.shape):
        chunk = 0
        for dim in rest:
            chunk = chunk * grid.shape[dim] + coordinates[dim]
        place, column = coordinates[grid.sparse_dim], coordinates[grid.group_dim]
        chunk = (chunk * across + column // grid.columns) * along + place // grid.m
        assert chunks[chunk, column % grid.columns, place % grid.m] == array[coordinates]


def test_the_columns_of_a_chunk_follow_each_other() -> None:
    array = np.arange(12).reshape(2, 6)
    assert ChunkGrid((2, 6), 2, 3, 0, 1).split(array).tolist() == [[[0, 6], [1, 7], [2, 8]], [[3, 9], [4, 10], [5, 11]]]
    assert ChunkGrid((2, 6), 3, 2, 1, 0).split(array).tolist() == [[[0, 1, 2], [6, 7, 8]], [[3, 4, 5], [9, 10, 11]]]
