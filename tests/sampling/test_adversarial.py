"""Matrices that mislead samples: one row with most of the work, sorted degrees, empty rows, blocks; on a machine whose FIFOs hold two."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from memories import without_refresh
from scipy import sparse

import fuseflow as ff
from fuseflow.einsum.parse import parse

ROWS, WIDTH = 4000, 4
FIFOS_OF_TWO = without_refresh(fifo_depth_start=2)
PRODUCT = f"tensor A[{ROWS}, 20000] csr\ntensor X[20000, {WIDTH}]\nY[i, j] = sum(k) A[i, k] * X[k, j]\noutput Y"


def degrees(kind: str, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """The number of stored entries of each row."""
    counts = np.full(ROWS, 8)
    match kind:
        case "hub":
            counts[rng.integers(ROWS)] = 18_000  # of 50,000
        case "sorted":
            counts = np.sort(np.minimum(4 * (rng.pareto(1.6, ROWS) + 1), 1000)).astype(np.int64)
        case "empty rows":
            counts = np.where(rng.random(ROWS) < 0.6, 0, 20)
        case "blocks":
            counts = np.where(np.arange(ROWS) // 16 % 4 == 0, 30, 2)
    return counts


@pytest.mark.parametrize("kind", ["hub", "sorted", "empty rows", "blocks"])
def test_the_interval_has_the_exact_number(kind: str) -> None:
    rng = np.random.default_rng(0)
    counts = degrees(kind, rng)
    columns = np.concatenate([np.sort(rng.choice(20_000, count, replace=False)) for count in counts])
    a = sparse.coo_array((np.ones(len(columns)), (np.repeat(np.arange(ROWS), counts), columns)), shape=(ROWS, 20_000))
    program = ff.compile(parse(PRODUCT), tensors={"A": a, "X": rng.random((20_000, WIDTH))}, machine=FIFOS_OF_TWO)
    exact = program.run(check=False, engine="fast").cycles
    sampled = program.run(sample=ff.Sample(error=0.15, shortest=1500), check=False, engine="fast")
    (region,) = sampled.regions
    if kind == "hub":  # more than 30 % of the work would always be taken
        assert region.cycles == exact
    else:
        assert region.sample is not None and sampled.cycles.low <= exact <= sampled.cycles.high
        assert sampled.cycles.error <= 0.15 and sampled.rows_check.passed
