"""The weights of rows: those of their slowest stage by hand, also where some of it is too large to be counted."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

import fuseflow as ff
from fuseflow.einsum.parse import parse
from fuseflow.estimate import CountMemo
from fuseflow.estimate.counted.patterns import tensor_pattern
from fuseflow.sampling.weights import index_weights

ROWS = 60
TWO_PRODUCTS = f"""
tensor A[{ROWS}, {ROWS}] csr
tensor X[{ROWS}, 100]
tensor W[100, 12]
T[i, f] = sum(k) A[i, k] * X[k, f]
Y[i, h] = sum(f) T[i, f] * W[f, h]
output Y
"""


def weights(degrees: npt.NDArray[np.int64], memo: CountMemo | None = None, density: float = 1.0) -> npt.NDArray[np.float64]:
    """The weights of the rows of two products in one region. Row i of the first adds up so many rows."""
    rng = np.random.default_rng(0)
    a = np.zeros((ROWS, ROWS))
    for row, degree in enumerate(degrees):
        a[row, rng.choice(ROWS, degree, replace=False)] = 1.0
    x = np.where(rng.random((ROWS, 100)) < density, 1.0, 0.0)
    tensors = {"A": a, "X": x, "W": rng.random((100, 12))}
    text = TWO_PRODUCTS if density == 1 else TWO_PRODUCTS.replace(f"X[{ROWS}, 100]", f"X[{ROWS}, 100] csr")
    compiled = ff.compile(parse(text), tensors=tensors, schedule=ff.Schedule.fuse("full"), machine="rda")
    (region,), patterns = compiled.regions, {name: tensor_pattern(tensor) for name, tensor in compiled.memory().items()}
    return index_weights(region.table, region.fused.order[0], ROWS, patterns, compiled.machine, memo or CountMemo()).weights


@pytest.mark.parametrize("hubs", [0, 6, 20])
def test_rows_take_the_larger_of_two_products(hubs: int) -> None:
    """The first product takes 100 cycles for each row that it adds up, the second one about 1300 for each row."""
    degrees = np.where(np.arange(ROWS) % 7 < 3, 1, 4)
    degrees[:hubs] = 40
    assert weights(degrees) == pytest.approx(np.maximum(101 * degrees, 13 * 100), rel=0.02)


def test_an_empty_row_has_the_weight_of_what_is_done_for_it() -> None:
    degrees = np.array([0, 4] * (ROWS // 2))
    empty, full = weights(degrees)[:2]
    assert 0 < empty <= full


def test_streams_that_are_too_large_to_be_counted_are_left_out() -> None:
    degrees = np.full(ROWS, 4)  # so few that the second product takes longer, behind a union that is not counted
    few, all_counted = weights(degrees, CountMemo(budget=2), density=0.5), weights(degrees, density=0.5)
    assert few.shape == (ROWS,) and (few >= 1).all() and few.sum() < all_counted.sum()
