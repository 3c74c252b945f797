"""Units are as long as the order of rows matters: where stages take turns in being the slowest, and FIFOs let them work ahead."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import fuseflow as ff
from fuseflow.einsum.parse import parse
from fuseflow.estimate import CountMemo
from fuseflow.estimate.counted.patterns import tensor_pattern
from fuseflow.sampling.neighbours import RowStages, row_stages
from fuseflow.sampling.weights import index_weights
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


def alternating(rows: int) -> RowStages:
    """Two stages that take turns in being the slowest, after so many rows, where four rows are in flight."""
    turn = np.arange(4096) // rows % 2 == 0
    return RowStages(np.where([turn, ~turn], 100.0, 10.0), 4)


def test_units_are_longer_than_stages_take_turns() -> None:
    """Some rows of a kind are as long in the loop as by themselves if units have many of them."""
    assert alternating(64).least_unit(1) >= 32
    assert alternating(1024).least_unit(1) >= 64


def test_a_random_order_asks_for_no_units() -> None:
    """All of it is like all other orders, and rows that differ by chance only are no reason."""
    turn = np.random.default_rng(3).random(4096) < 0.5
    assert RowStages(np.where([turn, ~turn], 100.0, 10.0), 4).least_unit(1) == 1


def test_a_stage_that_is_the_slowest_everywhere_asks_for_no_units() -> None:
    works = alternating(64).works
    assert RowStages(np.stack([works.max(axis=0), works.min(axis=0)]), 4).least_unit(3) == 3


def test_rows_that_fill_a_fifo_are_alone_in_it() -> None:
    assert RowStages(alternating(64).works, 1).least_unit(1) == 1


@pytest.mark.parametrize(("depth", "in_flight"), [(2, 1), (64, 4), (4096, 205)])
def test_rows_in_flight_by_hand(compiled: ff.compiler.Compiled, depth: int, in_flight: int) -> None:
    """Between both products are the 20 sums of a row: a FIFO of 64 holds those of three rows, and a fourth one is computed."""
    (region,), patterns = compiled.regions, {name: tensor_pattern(tensor) for name, tensor in compiled.memory().items()}
    taken = index_weights(region.table, "i", ROWS, patterns, compiled.machine, CountMemo())
    assert row_stages(emit(region.table), taken, depth).in_flight == in_flight


def test_the_interval_of_rows_that_take_turns_has_the_exact_number(compiled: ff.compiler.Compiled) -> None:
    exact, sample = compiled.run(check=False), ff.Sample(error=0.02)
    sampled = compiled.run(sample=sample, check=False, outputs=False)
    assert sampled.regions[0].sample is not None
    assert sampled.cycles.low <= exact.cycles <= sampled.cycles.high
