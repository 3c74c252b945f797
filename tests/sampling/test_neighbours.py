"""Rows that are measured have enough rows before them: where stages take turns in being the slowest, and FIFOs let them work ahead."""

from __future__ import annotations

from math import ceil

import numpy as np
import pytest
from scipy import sparse

import fuseflow as ff
from fuseflow.einsum.parse import parse
from fuseflow.estimate import CountMemo
from fuseflow.estimate.counted.patterns import tensor_pattern
from fuseflow.sampling.weights import WASHOUT, index_weights, least_warmup, rows_in_fifos
from fuseflow.sim import load_machine
from fuseflow.table import emit

ROWS, COLUMNS, WIDTH = 60_000, 2000, 20
LAYER = f"""
tensor A[{ROWS}, {COLUMNS}] csr
tensor X[{COLUMNS}, {WIDTH}]
tensor W[{WIDTH}, 12]
T[i, j] = sum(k) A[i, k] * X[k, j]
U[i, h] = sum(j) T[i, j] * W[j, h]
output U
"""


@pytest.fixture(scope="module")
def compiled() -> ff.compiler.Compiled:
    """Two products on `rda`. The first one takes longer in rows of 24 entries, the second one in rows of 2: 32 of a kind in a row."""
    rng = np.random.default_rng(0)
    counts = np.where(np.arange(ROWS) // 32 % 2 == 0, 24, 2)
    columns = np.concatenate([np.sort(rng.choice(COLUMNS, count, replace=False)) for count in counts])
    a = sparse.coo_array(
        (np.ones(len(columns), np.float32), (np.repeat(np.arange(ROWS), counts), columns)), shape=(ROWS, COLUMNS)
    )
    dense = {"X": rng.random((COLUMNS, WIDTH), dtype=np.float32), "W": rng.random((WIDTH, 12), dtype=np.float32)}
    schedule = ff.Schedule.fuse("full")
    return ff.compile(parse(LAYER), tensors={"A": a, **dense}, schedule=schedule, machine=load_machine("rda"))


@pytest.mark.parametrize(("depth", "held"), [(2, 0.1), (64, 3.2), (4096, 204.8)])
def test_rows_in_fifos_by_hand(compiled: ff.compiler.Compiled, depth: int, held: float) -> None:
    """Between both products are the 20 sums of a row."""
    (region,), patterns = compiled.regions, {name: tensor_pattern(tensor) for name, tensor in compiled.memory().items()}
    taken = index_weights(region.table, "i", ROWS, patterns, compiled.machine, CountMemo())
    assert rows_in_fifos(emit(region.table), taken, depth) == pytest.approx(held)


def test_a_warmup_has_a_row_or_more() -> None:
    assert [least_warmup(held) for held in (0.0, 0.2, 3.2)] == [1, 1, ceil(WASHOUT * 3.2)]


def test_the_interval_of_rows_that_take_turns_has_the_exact_number(compiled: ff.compiler.Compiled) -> None:
    exact, sample = compiled.run(check=False), ff.Sample(error=0.02)
    sampled = compiled.run(sample=sample, check=False, outputs=False)
    assert sampled.regions[0].sample is not None
    assert sampled.cycles.low <= exact.cycles <= sampled.cycles.high
