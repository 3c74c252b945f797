"""What is simulated behind a search: its best programs, others that runs let expect to be faster, and what no estimate tells apart."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from math import inf

from fuseflow.autoscheduler.budget.agenda import Agenda
from fuseflow.autoscheduler.budget.buffers import BufferVariants
from fuseflow.autoscheduler.budget.deadline import Deadline
from fuseflow.autoscheduler.budget.refinement import Refinement
from fuseflow.autoscheduler.budget.region_changes import Change, RegionChange, fastest, rounds
from fuseflow.autoscheduler.budget.region_depths import region_depths
from fuseflow.autoscheduler.budget.request import BudgetRequest
from fuseflow.autoscheduler.budget.row_runs import row_runs
from fuseflow.autoscheduler.budget.search import ALL_LEVERS, UNFUSED, BudgetSearch, Levers
from fuseflow.autoscheduler.budget.trial_estimates import TrialEstimates
from fuseflow.autoscheduler.budget.trials import RunSchedules, Trial
from fuseflow.autoscheduler.defaults import SPLITS
from fuseflow.errors import FuseFlowError
from fuseflow.resources.budget import Budget
from fuseflow.schedule import Schedule

SEARCHES = 12
"""So often schedules are searched again with what the runs of the last ones say about FIFOs."""
FASTER = 0.98
"""Schedules are searched again where one is expected to take less than this share of the cycles of the fastest that ran."""


@dataclass(frozen=True, slots=True)
class TrialRuns:
    """The simulations behind a search, as many as a request asks for. What they show of ranges enters the costs of the search."""

    request: BudgetRequest
    search: BudgetSearch
    estimates: TrialEstimates
    buffers: BufferVariants
    run: RunSchedules
    agenda: Agenda

    @property
    def budget(self) -> Budget:
        return self.request.budget

    @property
    def deadline(self) -> Deadline:
        return self.search.deadline

    def confirmed(self, trials: Sequence[Trial]) -> list[Trial]:
        """Return the trials with the simulations of the best, and of the unfused program. If all of these are refused, of as many more."""
        if not self.request.top:
            return list(trials)
        done: list[Trial] = []
        waiting = [trial for trial in trials if not trial.refused]
        while waiting and not self.deadline.passed and not any(t.cycles is not None and not t.refused for t in done):
            first = waiting[: self.request.top]
            first += [trial for trial in waiting[self.request.top :] if trial.is_unfused]
            done += self.simulated(first)
            waiting = [trial for trial in waiting if trial not in first]
        for is_unfused, levers in ((True, UNFUSED), (False, ALL_LEVERS)):
            alike = [trial for trial in done if trial.is_unfused == is_unfused]
            alike += self._searched_again(alike, levers)
            alike += self._refined(alike, levers)
            lean = self._without_idle_preloads(alike)
            alike += [*lean, *self._in_runs(alike), *self._in_runs(lean)]
            alike += self._deeper(alike)
            done += [trial for trial in alike if trial not in done]
        return [*done, *waiting, *(trial for trial in trials if trial.refused)]

    def _searched_again(self, done: Sequence[Trial], levers: Levers) -> list[Trial]:
        """Return the simulations of further programs, each the cheapest as far as the runs before it say how deep FIFOs become and how many
        cycles regions take, until one ran within the budget and no other one is expected to be faster. As many as the request simulates
        are looked at beside those that were refused."""
        more: list[Trial] = []
        last, left = next(iter(done), None), self.request.top - 1
        while last is not None and (last.refused or left > 0) and len(more) < SEARCHES and not self.deadline.passed:
            programs = self.search.cheapest(self.budget, 1, levers).programs
            program = next(iter(programs), None)
            fastest = min((t.cycles for t in (*done, *more) if t.cycles is not None and not t.refused), default=inf)
            known = {trial.schedule for trial in (*done, *more)}
            if program is None or program.schedule in known or not (last.refused or program.cycles < FASTER * fastest):
                break
            trial = self.estimates.of_program(program, levers == UNFUSED)
            if trial.refused:
                break
            (last,) = self.simulated([trial])
            left -= not last.refused
            more.append(last)
        return more

    def _refined(self, done: Sequence[Trial], levers: Levers) -> list[Trial]:
        """Return the simulations of the best of some trials with other decisions about its regions, and with the best of these for each."""
        first = _best(done)
        if first is None or self.request.top == 1:
            return []
        refinement = Refinement(self.estimates.program(first), self.search.costs, self.budget, levers)
        others = [
            (places, trial)
            for places, program in refinement.others(self.request.top - 1)
            if not (trial := self.estimates.of_program(program, first.is_unfused)).refused
        ]
        trials = self.simulated([trial for _, trial in others])
        for places, trial in ((refinement.first, first), *zip((places for places, _ in others), trials, strict=True)):
            if trial.regions is not None and not trial.refused:
                refinement.keep(places, trial.regions)
        combined = self.estimates.of_program(refinement.combined(), first.is_unfused)
        known = {trial.schedule for trial in (*done, *trials)}
        return trials + self.simulated([combined] if combined.schedule not in known and not combined.refused else [])

    def _without_idle_preloads(self, done: Sequence[Trial]) -> list[Trial]:
        """Return the simulation of the best of some trials without the preloads that are of no use in its lanes, if it has any: the lanes
        of a search are others than those for which it preloads."""
        first = _best(done)
        if "preloads" not in self.request.allow or first is None or self.deadline.passed:
            return []
        schedule = self.buffers.preloads_of_use(self.estimates.program(first))
        if schedule in {trial.schedule for trial in done}:
            return []
        return [self._simulated_alone(self.estimates.of_schedule(first.name, schedule, first.is_unfused))]

    def _in_runs(self, done: Sequence[Trial]) -> list[Trial]:
        """Return the simulations of the best of some trials with lanes that take runs of rows, if these are allowed."""
        first = _best(done)
        if first is None or SPLITS not in self.request.allow or self.deadline.passed:
            return []
        return self._changed(first, tuple(row_runs(self.estimates.compiled(first.schedule))), "lanes in runs")

    def _deeper(self, done: Sequence[Trial]) -> list[Trial]:
        """Return the simulations of the best of some trials with FIFOs that are as deep as there is room for."""
        first = _best(done)
        if first is None or self.deadline.passed:
            return []
        estimates = self.estimates
        compiled = estimates.compiled(first.schedule)
        depths = tuple(region_depths(compiled, self.budget, estimates.estimator, estimates.compiled))
        return self._changed(first, depths, "deeper FIFOs")

    def _changed(self, first: Trial, options: Sequence[tuple[Change, ...]], how: str) -> list[Trial]:
        """Return the simulations of a trial with changes of its regions, and with the fastest of these in each region."""
        tried = [(changes, self._with(first, changes, how)) for changes in rounds(options)]
        trials = [trial for _, trial in tried if trial.schedule != first.schedule]
        regions = [(changes, trial.regions) for changes, trial in tried if trial.regions is not None]
        best = fastest(first.regions or {}, regions, self.budget.limits.get("fifo", inf))
        known = {trial.schedule for trial in (first, *trials)}
        combined = self._with(first, best, how, known)
        return trials + ([combined] if combined.schedule not in known else [])

    def _with(self, first: Trial, changes: Sequence[RegionChange], how: str, known: Container[Schedule] = ()) -> Trial:
        """Return the simulation of a trial with those of some changes that its regions can have, unless its schedule is known."""
        schedule = first.schedule
        for each in changes:
            try:
                self.estimates.compiled(each.added(schedule))
            except FuseFlowError:
                continue
            schedule = each.added(schedule)
        if schedule == first.schedule or schedule in known:
            return first
        return self._simulated_alone(self.estimates.of_schedule(f"{first.name}, {how}", schedule, first.is_unfused))

    def _simulated_alone(self, trial: Trial) -> Trial:
        """Return the simulation of a trial that is no program of the search."""
        if trial.refused or self.deadline.passed:
            return trial
        self.agenda.trying(f"simulating {trial.name}")
        (run,) = self.run([trial.schedule])
        return trial.after(run, self.budget)

    def simulated(self, trials: Sequence[Trial]) -> list[Trial]:
        """Return trials of programs with their simulations, as far as there is time."""
        if self.deadline.passed:
            return list(trials)
        for trial in trials:
            self.agenda.trying(f"simulating {trial.name}")
        runs = self.run([trial.schedule for trial in trials])
        for trial, run in zip(trials, runs, strict=True):
            decisions = self.estimates.program(trial).decisions
            stuck = [(edge, decision) for edge, decision in decisions if edge.name == run.stuck]
            for edge, decision in decisions if run.cycles is not None else stuck or decisions:
                if run.cycles is None:
                    self.search.costs.keep_stuck(edge, decision)
                elif edge.name in run.regions:
                    self.search.costs.keep_run(edge, decision, run.regions[edge.name])
        return [trial.after(run, self.budget) for trial, run in zip(trials, runs, strict=True)]


def _best(done: Sequence[Trial]) -> Trial | None:
    """Return the best of some trials that ran within the budget."""
    ran = [trial for trial in done if trial.regions is not None and not trial.refused]
    return min(ran, key=lambda trial: trial.rank, default=None)
