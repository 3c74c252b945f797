"""The largest stages of batches: sums by hand, and the cycles of runs on a machine whose FIFOs and memory hardly matter."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import fuseflow as ff
from fuseflow.compiler import compile_source
from fuseflow.einsum.parse import parse
from fuseflow.estimate.counted.stream_trie import FiberLevel, FiberNest
from fuseflow.estimate.pipeline_batches import largest_stages
from fuseflow.frontend.model_spec import ModelSpec
from fuseflow.frontend.sources import load
from fuseflow.run.compiled import Compiled
from fuseflow.sim import Machine, load_machine

ROOT = Path(__file__).parents[2]
ROWS = 60
TWO_PRODUCTS = f"""
tensor A[{ROWS}, {ROWS}] csr
tensor X[{ROWS}, 100]
tensor W[100, 12]
T[i, f] = sum(k) A[i, k] * X[k, f]
Y[i, h] = sum(f) T[i, f] * W[f, h]
output Y
"""


def test_the_largest_stage_of_every_batch_counts():
    rows = FiberNest(None, np.array([0]), FiberLevel(np.array([0, 4]), np.arange(4), 4))
    stages = [np.array([3, 1, 4, 1]), np.array([2, 7, 1, 8])]
    assert_array_equal(largest_stages(rows, stages, 1), [3, 7, 4, 8])
    assert_array_equal(largest_stages(rows, stages, 2), [9, 0, 9, 0])  # max(3 + 1, 2 + 7) and max(4 + 1, 1 + 8)
    assert_array_equal(largest_stages(rows, stages, 1.5), [6, 4, 6, 4])  # half of each: 3 + 9, 7 + 0, 4 + 9, 8 + 0


def fused(degrees: np.ndarray[tuple[int], np.dtype[np.int64]], machine: Machine, density: float = 1.0) -> Compiled:
    """Return two products as one region, of which row i of the first adds up so many rows."""
    rng = np.random.default_rng(0)
    a = np.zeros((ROWS, ROWS))
    for row, degree in enumerate(degrees):
        a[row, rng.choice(ROWS, degree, replace=False)] = 1.0
    x = np.where(rng.random((ROWS, 100)) < density, 1.0, 0.0)
    tensors = {"A": a, "X": x, "W": rng.random((100, 12))}
    text = TWO_PRODUCTS if density == 1 else TWO_PRODUCTS.replace(f"X[{ROWS}, 100]", f"X[{ROWS}, 100] csr")
    return ff.compile(parse(text), tensors=tensors, schedule=ff.Schedule.fuse("full"), machine=machine)


SHALLOW = load_machine("ideal").model_copy(update={"fifo_depth": "auto", "fifo_depth_start": 4})


@pytest.mark.parametrize("hubs", [0, 6, 20])
def test_rows_take_the_larger_of_two_products(hubs: int):
    """The first product takes 100 cycles for each row that it adds up, the second one about 1300 for each row."""
    degrees = np.where(np.arange(ROWS) % 7 < 3, 1, 4)
    degrees[:hubs] = 40
    compiled = fused(degrees, SHALLOW)
    run, estimate = compiled.run(check=False), compiled.estimate()
    (region,) = estimate.regions
    assert estimate.cycles == pytest.approx(run.cycles, rel=0.05)
    assert (region.bound.imbalance > 0.1 * region.bound.compute) == (hubs > 0)


def test_unbounded_fifos_let_stages_drift_apart():
    compiled = fused(np.array([40] * 20 + [1] * (ROWS - 20)), SHALLOW.model_copy(update={"fifo_depth": None}))
    (region,) = compiled.estimate().regions
    assert region.bound.imbalance == 0


def test_lanes_of_one_stage_may_hold_other_rows_than_the_region():
    """The rows of the other lanes never occur in the streams of a lane, and streams may say of them what they like. To count on them was an
    error of a search under a budget."""
    source = load(ModelSpec(ROOT / "models/gcn.py", data="random:nodes=8,degree=2,features=4"))
    schedule = ff.Schedule.fuse("full").order("full", ["i", "k", "m", "n", "l", "j"]).par(**{"full/layer1.matmul.i": 2})
    compiled = compile_source(source, schedule, load_machine("rda"))
    (region,), run = compiled.estimate().regions, compiled.run()
    assert region.firings == run.regions[0].simulation.firings
    assert region.bound.cycles == pytest.approx(run.cycles, rel=0.2)
