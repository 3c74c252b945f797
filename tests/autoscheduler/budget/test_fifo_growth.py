"""Runs that deepen FIFOs beyond the budget say which lanes have no room, and the search goes on with the others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from fuseflow.autoscheduler.budget.costs import FifoGrowth
from fuseflow.autoscheduler.budget.decision import RegionDecision
from fuseflow.autoscheduler.budget.range_costs import RangeCosts
from fuseflow.autoscheduler.budget.request import BudgetRequest
from fuseflow.autoscheduler.budget.scheduler import budget_schedule
from fuseflow.autoscheduler.budget.settings import SETTINGS
from fuseflow.autoscheduler.budget.trials import SimulateHere, TrialRun
from fuseflow.einsum.parse import parse
from fuseflow.errors import UsageError
from fuseflow.frontend.imported_program import Source
from fuseflow.resources import Resources
from fuseflow.resources.budget import Budget
from fuseflow.schedule import Schedule
from fuseflow.sim import load_machine
from fuseflow.tensors import Format, pack

RDA, IDEAL = load_machine("rda"), load_machine("ideal")
ROOM = Budget.parse("port=24,fifo=12KB")
"""A few lanes of FIFOs of 64 slots have room, or more of shallow ones."""
BUDGET = Budget.parse("port=24,fifo=12KB")
BIASED = """
program biased
tensor X[4, 900] dense
tensor b[900] dense
M[i] = max(j) X[i, j]
Z[i, j] = X[i, j] * M[i] + b[j]
Y[i, j] = relu(Z[i, j])
output Y
"""
SUMMED = """
program summed
tensor X[6, 90] dense
tensor b[90] dense
Z[i] = sum(j) X[i, j] * b[j]
Y[i] = relu(Z[i])
output Y
"""


@pytest.fixture(scope="module")
def summed() -> Source:
    rng = np.random.default_rng(0)
    tensors = {
        "X": pack(rng.normal(size=(6, 90)), Format.parse("dense", 2)),
        "b": pack(rng.normal(size=90), Format.parse("dense", 1)),
    }
    return Source("summed", parse(SUMMED), tensors)


@pytest.fixture(scope="module")
def source() -> Source:
    rng = np.random.default_rng(0)
    tensors = {
        "X": pack(rng.normal(size=(4, 900)), Format.parse("dense", 2)),
        "b": pack(rng.normal(size=900), Format.parse("dense", 1)),
    }
    return Source("biased", parse(BIASED), tensors)


ONE_WRITER = Schedule.lower(writers="once")
"""Where lanes write, each has FIFOs of its own, and these cases have room."""


def lanes(depth: int | None = None, **counts: int) -> RegionDecision:
    return RegionDecision(("i", "j"), tuple(counts.items()), depth)


def test_the_nearest_run_with_the_same_loops_says_what_a_lane_takes() -> None:
    growth = FifoGrowth()
    assert growth.keep(0, lanes(i=4), 4_000)
    assert not growth.keep(0, lanes(i=4), 4_000)
    assert [growth.expected(0, lanes(i=count)) for count in (2, 4, 8)] == [2_000, 4_000, 8_000]
    assert growth.keep(0, lanes(i=2), 500)
    assert [growth.expected(0, lanes(i=count)) for count in (2, 4, 8)] == [500, 4_000, 8_000]
    others = lanes(j=4), lanes(i=2, j=2), lanes(depth=64, i=4), RegionDecision(("j", "i"), (("i", 4),))
    assert [growth.expected(0, other) for other in others] == [0, 0, 0, 0]
    assert growth.expected(1, lanes(i=4)) == 0
    assert growth.grown(0, lanes(i=8), Resources(fifo=1)).fifo == 8_001
    assert growth.grown(0, lanes(i=8), Resources(fifo=None)).fifo is None


def test_lanes_whose_runs_have_no_room_give_way_to_others(source: Source) -> None:
    choice = budget_schedule(source, ONE_WRITER, RDA, BudgetRequest(BUDGET, top=1))
    refused = [trial for trial in choice.trials if "its run takes" in trial.refused]
    assert {trial.is_unfused for trial in refused} == {True, False}
    for is_unfused in (True, False):
        ran = [t for t in choice.trials if t.is_unfused == is_unfused and t.cycles is not None and not t.refused]
        assert ran
        fastest = min(t.cycles or 0 for t in refused if t.is_unfused == is_unfused)
        assert min(t.cycles or 0 for t in ran) < 1.1 * fastest, "the best that has room, and not the smallest that there is"
    (run,) = SimulateHere(source, RDA)([choice.chosen.schedule])
    assert run.occupied is not None and (run.occupied["fifo"] or 0) <= 12 * 1024


def test_without_what_runs_say_nothing_has_room(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    """The case is one: a search that learns nothing finds the same schedule again, and gives up."""
    monkeypatch.setattr(RangeCosts, "keep_run", lambda *_: None)
    with pytest.raises(UsageError, match=r"no schedule of `biased` runs within .*: its run takes"):
        budget_schedule(source, ONE_WRITER, RDA, BudgetRequest(BUDGET, top=1))


class StuckWhenShallow:
    """A simulation in which programs with shallow FIFOs stand still."""

    def __init__(self, source: Source) -> None:
        self.run = SimulateHere(source, IDEAL)
        self.stuck = 0

    def __call__(self, schedules: Sequence[Schedule]) -> Sequence[TrialRun]:
        return [self._run(schedule) for schedule in schedules]

    def _run(self, schedule: Schedule) -> TrialRun:
        if any(depth in SETTINGS.shallow_fifos for _, depth in schedule.depths):
            self.stuck += 1
            stuck = next(name for name, depth in schedule.depths if depth in SETTINGS.shallow_fifos)
            return TrialRun(error="no node can move", stuck=stuck)
        return self.run([schedule])[0]


def test_a_program_that_stands_still_with_shallow_fifos_gives_way_to_one_with_deeper_ones(summed: Source) -> None:
    run = StuckWhenShallow(summed)
    choice = budget_schedule(summed, Schedule(), IDEAL, BudgetRequest(ROOM, top=1), run=run)
    assert run.stuck, "the case is none if no shallow FIFOs are tried"
    assert choice.chosen.cycles is not None and not choice.chosen.refused
    assert not choice.chosen.is_unfused


def test_without_what_stuck_runs_say_nothing_runs(summed: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RangeCosts, "keep_stuck", lambda *_: None)
    with pytest.raises(UsageError, match="no node can move"):
        budget_schedule(summed, Schedule(), IDEAL, BudgetRequest(ROOM, top=1), run=StuckWhenShallow(summed))
