"""Changes of the regions of a program that ran: which are tried behind a search, and that the fastest are taken."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import numpy as np

from fuseflow.autoscheduler.budget.costs import RegionRun
from fuseflow.autoscheduler.budget.request import BudgetRequest
from fuseflow.autoscheduler.budget.scheduler import budget_schedule
from fuseflow.autoscheduler.budget.trials import BudgetChoice, SimulateHere, TrialRun
from fuseflow.einsum.parse import parse
from fuseflow.frontend.imported_program import Source
from fuseflow.resources.budget import Budget
from fuseflow.schedule import Schedule
from fuseflow.schedule.section import split_lanes
from fuseflow.sim import load_machine
from fuseflow.tensors import Format, pack

RDA = load_machine("rda")
ROWS, COLUMNS = 240, 6
PROGRAM = f"""
tensor X[{ROWS}, 16]
tensor W[16, {COLUMNS}]
tensor V[{ROWS}, {COLUMNS}]
U[n, c] = sum(h) X[n, h] * W[h, c]
Y[n, c] = U[n, c] + V[n, c]
output Y
"""
BY_COLUMNS = Schedule.lower(writers="lanes").block("W", 16, 1)
"""Lanes of six columns are expected to be as fast as lanes of rows."""


def source() -> Source:
    program, rng = parse(PROGRAM), np.random.default_rng(0)
    tensors = {t.name: pack(rng.random(t.shape), Format.parse("dense", 2)) for t in program.inputs}
    return Source("p", program, tensors)


class SlowRows:
    """A simulator in which lanes of single rows take three times the cycles, and those of columns twice, as where lanes share lines of a
    memory. Lanes of runs of rows take their own."""

    def __init__(self, program: Source) -> None:
        self.simulate = SimulateHere(program, RDA)

    def __call__(self, schedules: Sequence[Schedule]) -> list[TrialRun]:
        return [self._slower(schedule, run) for schedule, run in zip(schedules, self.simulate(schedules), strict=True)]

    def _slower(self, schedule: Schedule, run: TrialRun) -> TrialRun:
        factors, dealt = {"n": 3, "c": 2, "n0": 1}, dict(schedule.parallel)
        times = {name: max((factors.get(index, 2) for index in _indices(name, dealt)), default=1) for name in run.regions}
        regions = {name: RegionRun(times[name] * region.cycles, region.fifo) for name, region in run.regions.items()}
        return replace(run, cycles=sum(region.cycles for region in regions.values()), regions=regions)


def _indices(region: str, dealt: dict[str, int]) -> list[str]:
    return [index for place, _, index in map(split_lanes, dealt) if place == region]


@cache
def chosen(allow: frozenset[str]) -> BudgetChoice:
    program, budget = source(), Budget.parse("mul=48,fifo=64KB")
    return budget_schedule(program, BY_COLUMNS, RDA, BudgetRequest(budget, top=2, allow=allow), run=SlowRows(program))


def test_lanes_of_rows_that_were_slower_than_columns_are_tried_in_runs() -> None:
    apart, runs = (chosen(allow).unfused for allow in (frozenset[str](), frozenset({"splits"})))
    assert apart is not None and runs is not None and apart.cycles is not None and runs.cycles is not None
    assert dict(apart.schedule.parallel) == {"U.c": 3, "Y.c": 6}
    assert dict(runs.schedule.parallel) == {"U.c": 3, "Y.n0": 6} and runs.schedule.splits == (("Y.n", ROWS // 6),)
    assert runs.cycles == sum(runs.taken.values()) < apart.cycles
    assert runs.taken["U"] == apart.taken["U"]


def test_what_is_tried_is_within_the_budget_and_tried_once() -> None:
    trials = [trial for trial in chosen(frozenset({"splits"})).trials if trial.cycles is not None]
    assert not [trial.name for trial in trials if Budget.parse("mul=48,fifo=64KB").exceeded(trial.resources)]
    assert len({trial.schedule for trial in trials}) == len(trials)
