"""Rows in which stages take turns in being the slowest, in blocks or slowly: intervals hold, which they do not without the rows before
units."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import numpy.typing as npt
import pytest
from memories import without_refresh
from scipy import sparse

import fuseflow as ff
from fuseflow.einsum.parse import parse
from fuseflow.sampling import region
from fuseflow.sampling.replicates import Position, ReplicateRows, SampleDesign
from fuseflow.tensors.levels.base import Ints

ROWS, FEATURES, HIDDEN, SEEDS = 8_000, 32, 16, 4
LAYER = f"""
tensor A[{ROWS}, {ROWS}] csr
tensor X[{ROWS}, {FEATURES}]
tensor W[{FEATURES}, {HIDDEN}]
T[i, f] = sum(k) A[i, k] * X[k, f]
U[i, h] = sum(f) T[i, f] * W[f, h]
output U
"""
AT = np.arange(ROWS)
DEGREES = {
    "blocks of many and of few": np.where(AT // 800 % 2 == 0, 24, 1),
    "short blocks": np.where(AT // 25 % 2 == 0, 28, 3),
    "blocks of three kinds": np.choose(AT // 300 % 3, (30, 1, 14)),
    "a slow wave": np.round(16 + 10 * np.sin(AT / 300)).astype(int),
    "sorted": np.sort(np.random.default_rng(5).integers(4, 30, ROWS)),
}


def layer(degrees: npt.NDArray[np.int64]) -> ff.Compiled:
    """Two products. The first one takes longer in rows of more than 17 entries, the second one in all others."""
    rng = np.random.default_rng(1)
    columns = rng.integers(0, ROWS // 40, int(degrees.sum())) + ROWS // 40 * np.concatenate([np.arange(n) for n in degrees])
    a = sparse.csr_array((np.ones(len(columns), np.float32), columns, np.append(0, np.cumsum(degrees))), shape=(ROWS, ROWS))
    dense = {"X": rng.random((ROWS, FEATURES), dtype=np.float32), "W": rng.random((FEATURES, HIDDEN), dtype=np.float32)}
    return ff.compile(parse(LAYER), tensors={"A": a, **dense}, schedule=ff.Schedule.fuse("full"), machine=without_refresh())


def misses(compiled: ff.Compiled, exact: int) -> int:
    """How many intervals of some seeds do not have the exact number."""
    missed = 0
    for seed in range(SEEDS):
        sample = ff.Sample(error=0.03, seed=seed, shortest=15_000)
        sampled = compiled.run(sample=sample, check=False, outputs=False, engine="fast")
        assert sampled.regions[0].sample is not None and sampled.cycles.error <= 0.03 and sampled.rows_check.passed
        missed += not sampled.cycles.low <= exact <= sampled.cycles.high
    return missed


def beside_units_of_other_places(self: SampleDesign, units: Ints, position: Position) -> ReplicateRows:
    """Units without the rows before them: a quarter of them is run by itself. Samples were once designed so."""
    return ReplicateRows(self.coordinates(units), self.coordinates(units[::4]), len(units) - len(units[::4]), position)


@pytest.mark.parametrize("structure", DEGREES)
def test_intervals_have_the_exact_number(structure: str) -> None:
    compiled = layer(DEGREES[structure])
    assert misses(compiled, compiled.run(check=False, engine="fast").cycles) <= 1


def test_units_without_the_rows_before_them_are_noticed() -> None:
    compiled = layer(DEGREES["blocks of many and of few"])
    with (
        patch.object(SampleDesign, "_measured", beside_units_of_other_places),
        patch.object(region, "least_warmup", lambda held: 1),
    ):
        assert misses(compiled, compiled.run(check=False, engine="fast").cycles) > 1
