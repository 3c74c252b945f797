"""The share of magnitudes that a mask keeps."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuseflow.errors import SparsityError
from fuseflow.sparsity.numpy_arrays import energy


def test_by_hand() -> None:
    assert energy([[3, -1], [0, 4]], [[True, False], [False, True]]) == 7 / 8
    assert energy([3.0, -1.0], [False, False]) == 0


@pytest.mark.parametrize("shape", [(0,), (3,), (2, 0, 2)])
def test_of_nothing_everything_is_kept(shape: tuple[int, ...]) -> None:
    assert energy(np.zeros(shape), np.zeros(shape, dtype=bool)) == 1


@given(st.integers(0, 10**6))
def test_it_is_a_share_and_one_only_for_everything(seed: int) -> None:
    rng = np.random.default_rng(seed)
    array, mask = rng.standard_normal((7, 31)).astype(np.float32), rng.random((7, 31)) < rng.random()
    assert 0 <= energy(array, mask) <= 1
    assert energy(array, np.ones_like(mask)) == 1


def test_sums_are_added_in_float64_and_do_not_overflow() -> None:
    narrow = np.full(4096, 60000, dtype=np.float16)
    assert energy(narrow, np.arange(4096) < 1024) == 0.25
    assert energy(np.full(4, 1e308), [True, False, False, False]) == 0.25
    assert energy(np.full(4, 5e-324), [True, False, False, False]) == 0.25


@pytest.mark.parametrize("special", [math.nan, math.inf, -math.inf])
def test_no_share_of_what_is_not_finite(special: float) -> None:
    assert math.isnan(energy([1.0, special], [True, True]))


def test_shapes_must_agree() -> None:
    with pytest.raises(SparsityError, match=r"a mask of shape \(2, 1\) does not say what is kept of a tensor of shape \(2,\)"):
        energy([1.0, 2.0], [[True], [False]])
