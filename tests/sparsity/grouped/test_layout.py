"""Storing what n:m:g keeps, and the tensor again."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fuseflow.sparsity.grouped.grouping import Grouping, grouping, grouping_of_mask, patterns
from fuseflow.sparsity.layouts.n_of_m import GroupedNMTensor


@st.composite
def selections(draw: st.DrawFn) -> tuple[np.ndarray, Grouping]:
    """A tensor, and a selection of it."""
    shape = tuple(draw(st.lists(st.integers(0, 9), min_size=2, max_size=4)))
    sparse_dim, group_dim = draw(st.permutations(range(len(shape))))[:2]
    n, m = draw(st.sampled_from([(1, 1), (1, 2), (2, 3), (2, 4), (1, 5)]))
    array = np.random.default_rng(draw(st.integers(0, 10**6))).integers(-9, 10, shape)
    drawn = array.astype(draw(st.sampled_from(["float16", "float32", "float64", "int8"])))
    method = draw(st.sampled_from(["greedy", "exact"]))
    return drawn, grouping(drawn, n, m, draw(st.integers(1, 3)), sparse_dim, group_dim, method)


def dense(array: np.ndarray, chosen: Grouping) -> np.ndarray:
    """What is stored of a tensor, as a dense one."""
    values, columns = map(torch.from_numpy, chosen.pack(array))
    return GroupedNMTensor(values, columns, torch.from_numpy(chosen.patterns.astype(np.int16)), chosen.grid).to_dense().numpy()


@given(selections())
def test_what_is_stored_is_what_is_kept(selection: tuple[np.ndarray, Grouping]) -> None:
    array, chosen = selection
    (values, columns), count = chosen.pack(array), math.comb(chosen.grid.m, chosen.n)
    assert values.shape == (chosen.grid.count, count, chosen.g, chosen.n) and values.dtype == array.dtype
    assert columns.shape == values.shape[:3] and columns.dtype == np.int16
    assert np.array_equal(dense(array, chosen), array * chosen.mask()) and dense(array, chosen).dtype == array.dtype


@given(selections())
def test_the_columns_of_a_pattern_stand_together(selection: tuple[np.ndarray, Grouping]) -> None:
    array, chosen = selection
    (values, columns), chunks = chosen.pack(array), chosen.grid.split(array)
    every = columns.reshape(chosen.grid.count, chosen.grid.columns)
    assert (np.sort(every, axis=1) == np.arange(chosen.grid.columns)).all()
    assert (np.diff(columns, axis=2) > 0).all()
    for chunk, pattern, k in np.ndindex(*columns.shape):
        places = patterns(chosen.n, chosen.grid.m)[pattern]
        assert values[chunk, pattern, k].tolist() == chunks[chunk, columns[chunk, pattern, k], places].tolist()


@given(selections())
def test_a_mask_says_enough_to_store_by_it(selection: tuple[np.ndarray, Grouping]) -> None:
    array, chosen = selection
    mask = chosen.mask()
    again = grouping_of_mask(mask, chosen.n, chosen.grid.m, chosen.g, chosen.grid.sparse_dim, chosen.grid.group_dim)
    assert np.array_equal(np.where(mask, dense(array, again), 0), dense(array, chosen))
    assert not (mask & ~again.mask()).any()


def test_by_hand() -> None:
    array = np.array([[5, 1, 4, 2], [3, 9, 8, 1]], dtype=np.float32)
    values, columns = grouping(array, 1, 2, 2).pack(array)
    assert columns.tolist() == [[[0, 3], [1, 2]]]
    assert values.tolist() == [[[[5], [2]], [[9], [8]]]]


@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_stored_and_nothing_is_made_of_what_is_dropped(special: float) -> None:
    array = np.full((4, 6), special)
    stored = dense(array, grouping(array, 2, 4, 1))
    assert np.count_nonzero(stored) == 12 and np.isfinite(stored).sum() == 12


def test_new_values_go_into_an_old_selection() -> None:
    first, second = np.random.default_rng(0).standard_normal((2, 8, 12))
    chosen = grouping(first, 2, 4, 2)
    assert np.array_equal(dense(second, chosen), second * chosen.mask())
