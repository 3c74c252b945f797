"""Lanes that take turns through few slots, and graphs that stand still with them: the simulator says so, and the estimate before it."""

from __future__ import annotations

import numpy as np
import pytest
from budget_spaces import random_source

from fuseflow.compiler import compile_source
from fuseflow.einsum.parse import parse
from fuseflow.errors import DeadlockError
from fuseflow.estimate.graph_cycles import GraphCycles
from fuseflow.estimate.program import Estimator
from fuseflow.frontend.imported_program import Source
from fuseflow.run.compiled import Compiled
from fuseflow.schedule import Schedule
from fuseflow.sim import load_machine
from fuseflow.tensors import Format, pack

IDEAL = load_machine("ideal")
TWO_PRODUCTS = """
program products
tensor A[24, 24] csr
tensor X[24, 100] dense
tensor W[100, 8] dense
T[i, f] = sum(k) A[i, k] * X[k, f]
Y[i, h] = sum(f) T[i, f] * W[f, h]
output Y
"""


@pytest.fixture(scope="module")
def products() -> Source:
    rng = np.random.default_rng(0)
    arrays = {"A": (rng.random((24, 24)) < 0.2) * 1.0, "X": rng.random((24, 100)), "W": rng.random((100, 8))}
    formats = {"A": "csr", "X": "dense", "W": "dense"}
    return Source("products", parse(TWO_PRODUCTS), {n: pack(a, Format.parse(formats[n], 2)) for n, a in arrays.items()})


def dealt(source: Source, slots: int, **lanes: int) -> Compiled:
    schedule = Schedule.fuse("full").order("full", ("i", "k", "f", "h")).depth("full", slots)
    return compile_source(source, schedule.par(**{f"full/{stage}.i": count for stage, count in lanes.items()}), IDEAL)


@pytest.mark.parametrize("slots", [16, 32, 4096])
def test_rows_that_are_dealt_to_lanes_wait_for_slots(products: Source, slots: int) -> None:
    compiled = dealt(products, slots, T=3, Y=4)
    assert compiled.estimate(Estimator()).cycles == pytest.approx(compiled.run(check=False).cycles, rel=0.12)


def test_without_turns_the_estimate_is_far_too_low(products: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    """The case is one."""
    monkeypatch.setattr(GraphCycles, "slowest_turns", lambda *_: None)
    compiled = dealt(products, 16, T=3, Y=4)
    assert compiled.estimate(Estimator()).cycles < 0.5 * compiled.run(check=False).cycles


def test_what_is_behind_the_lanes_takes_its_time_on_an_ideal_memory() -> None:
    text = "program copied\ntensor X[300, 8] dense\nY[i, j] = relu(X[i, j])\noutput Y\n"
    source = Source("copied", parse(text), {"X": pack(np.ones((300, 8)), Format.parse("dense", 2))})
    name = source.program.einsums[0].name
    compiled = compile_source(source, Schedule.fuse("none").par(**{f"{name}.i": 4}), IDEAL)
    (region,) = compiled.estimate(Estimator()).regions
    assert region.bound.cycles >= region.bound.compute
    assert region.bound.cycles == pytest.approx(compiled.run(check=False).cycles, rel=0.05)


def stuck_region(compiled: Compiled) -> str:
    """Return the region that stands still in a run, empty if none does."""
    try:
        compiled.run(check=False)
    except DeadlockError as error:
        return error.region
    return ""


def test_graphs_that_are_expected_to_stand_still_do() -> None:
    """Whatever is expected to stand still does. Some that does is not expected to."""
    expected = met = 0
    for seed in range(24):
        source = random_source(seed, size=6)
        for slots in (2, 4):
            compiled = compile_source(source, Schedule.fuse("full").depth("full", slots), IDEAL)
            stands_still = any(region.bound.stands_still for region in compiled.estimate(Estimator()).regions)
            region = stuck_region(compiled)
            assert not stands_still or region, f"{source.name} runs with {slots} slots"
            met += bool(region)
            expected += stands_still
    assert met >= expected >= 0.6 * met > 0
