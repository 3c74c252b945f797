"""Sums of what patterns keep, to the last bit."""

import math

import numpy as np
import pytest

from fuseflow.sparsity.grouped.grouping import kept_sums, magnitudes, patterns

LOST = 2.0**-24
"""Half of the distance from 1 to the next number of float32: 1 plus this is 1, and 1 plus twice this is more."""


@pytest.mark.parametrize(
    ("dtype", "sums"),
    [("float32", [1, 1 + 2 * LOST]), ("float64", [1 + 2 * LOST] * 2)],
)
def test_sums_are_added_in_the_order_of_places_in_the_precision_of_the_tensor(dtype: str, sums: list[float]) -> None:
    chunks = np.array([[[1, -LOST, LOST], [LOST, LOST, -1]]], dtype=dtype)
    kept = kept_sums(magnitudes(chunks), patterns(3, 3))
    assert kept.dtype == dtype and kept.ravel().tolist() == sums


@pytest.mark.parametrize(
    ("given", "added"),
    [("float16", "float32"), ("int8", "float32"), ("bool", "float32"), ("int32", "float64"), ("uint64", "float64")],
)
def test_other_types_are_added_in_the_narrowest_type_that_holds_them(given: str, added: str) -> None:
    assert magnitudes(np.ones((1, 2, 2), dtype=given)).dtype == added


def test_the_least_integer_has_a_magnitude() -> None:
    assert magnitudes(np.array([[[-128, 127]]], dtype=np.int8)).tolist() == [[[128, 127]]]


def test_what_is_not_finite_counts_more_than_all_below_it() -> None:
    chunk = np.array([[3.0, -4.0, math.inf], [math.nan, -math.inf, 1.0]])
    weights = magnitudes(chunk[None])[0]
    assert weights[0, :2].tolist() == [0.75, 1.0] and weights[1, 2] == 0.25
    assert weights[0, 2] == weights[1, 1] > weights[0, :2].sum() + weights[1, 2]
    assert weights[1, 0] > weights[0].sum() + weights[1, 1:].sum()
    assert np.isfinite(magnitudes(np.full((1, 2, 2), math.nan))).all()
