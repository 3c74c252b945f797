"""Tries changes of the regions of a program that ran in the simulator, and puts the fastest regions together.

Regions run one after the other. So one simulation tells, for one change of each region, whether the region is faster with it.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from math import inf

from fuseflow.autoscheduler.budget.buffers import BufferVariants
from fuseflow.autoscheduler.budget.cut_graph import OrderedRange
from fuseflow.autoscheduler.budget.deadline import Deadline
from fuseflow.autoscheduler.budget.refinement import Refinement
from fuseflow.autoscheduler.budget.region_changes import RegionChange, rounds
from fuseflow.autoscheduler.budget.region_depths import region_depths
from fuseflow.autoscheduler.budget.region_transfer import RegionTransfer, fastest_regions, region_contents
from fuseflow.autoscheduler.budget.request import BudgetRequest
from fuseflow.autoscheduler.budget.row_runs import row_runs
from fuseflow.autoscheduler.budget.settings import SETTINGS
from fuseflow.autoscheduler.budget.trial_estimates import TrialEstimates
from fuseflow.autoscheduler.budget.trial_simulations import TrialSimulations
from fuseflow.autoscheduler.budget.trials import Trial, best_trial
from fuseflow.autoscheduler.defaults import SPLITS
from fuseflow.errors import FuseFlowError
from fuseflow.resources.budget import Budget
from fuseflow.schedule import Schedule
from fuseflow.schedule.entries import split_lanes


@dataclass(frozen=True, slots=True)
class RegionTrials:
    """Tries changes of the regions of one program, and of the programs that result from them."""

    request: BudgetRequest
    simulations: TrialSimulations
    refinement: Refinement
    buffers: BufferVariants

    @property
    def budget(self) -> Budget:
        return self.request.budget

    @property
    def deadline(self) -> Deadline:
        return self.simulations.deadline

    @property
    def estimates(self) -> TrialEstimates:
        return self.simulations.estimates

    @staticmethod
    def most(request: BudgetRequest, ranges: int) -> int:
        """Return how many candidates are tried at most for a program of `ranges` ranges: lanes of their other orders, and
        simulations."""
        lanes = ranges * SETTINGS.max_orders if request.top > 1 else 0
        fewer_preloads = "preloads" in request.allow
        runs = 2 * SETTINGS.change_rounds * (1 + fewer_preloads) if SPLITS in request.allow else 0
        return lanes + request.top - 1 + runs + SETTINGS.change_rounds + 2 * fewer_preloads + SETTINGS.times_put_together

    def after(self, done: Sequence[Trial]) -> list[Trial]:
        """Return new simulations of the best of the trials `done`, with changes of its regions, one kind of changes after the
        other: other lanes and orders, runs of rows, and deeper FIFOs."""
        tried = [*done]
        tried += self._refined(tried)
        tried += self._put_together(tried)
        lean = self._without_idle_preloads(tried)
        tried += [*lean, *self._in_runs(tried), *self._in_runs(lean)]
        tried += self._put_together(tried)
        tried += self._without_idle_preloads(tried)
        tried += self._deeper(tried)
        tried += self._put_together(tried)
        return tried[len(done) :]

    def _refined(self, done: Sequence[Trial]) -> list[Trial]:
        """Return the simulations of the best of some trials with other decisions about its regions."""
        first = best_trial(done)
        if first is None or self.request.top == 1 or self.deadline.passed:
            return []
        self.refinement.widen(first.taken, self._trying_lanes)
        programs = self.refinement.others(self.request.top - 1)
        others = (self.estimates.of_program(program, first.is_unfused) for program in programs)
        return self.simulations.of_programs([trial for trial in others if not trial.refused])

    def _trying_lanes(self, edge: OrderedRange) -> bool:
        """Report that lanes of a range are chosen, and return whether there is time for it."""
        self.simulations.agenda.trying(f"{edge.name}: {', '.join(edge.order)}")
        return not self.deadline.passed

    def _put_together(self, done: Sequence[Trial]) -> list[Trial]:
        """Return the simulation of the best trial in `done` with each region as it was fastest in any of them. Empty if that
        schedule is not new."""
        best = best_trial(done)
        if best is None or self.deadline.passed:
            return []
        contents = region_contents(self.estimates.compiled(best.schedule))
        transfers = fastest_regions(best, done, contents, self.budget.limits.get("fifo", inf))
        return self._with(best, tuple(transfers), "the fastest of each region", {trial.schedule for trial in done})

    def _without_idle_preloads(self, done: Sequence[Trial]) -> list[Trial]:
        """Return the simulation of the best trial in `done` without the preloads that save nothing in its lanes; empty if it has
        none: a search chooses other lanes than the ones for which it preloads."""
        first = best_trial(done)
        if "preloads" not in self.request.allow or first is None or self.deadline.passed:
            return []
        schedule = self.buffers.preloads_of_use(first.schedule)
        if schedule in {trial.schedule for trial in done}:
            return []
        return [self.simulations.of_change(first, schedule, "fewer preloads")]

    def _in_runs(self, done: Sequence[Trial]) -> list[Trial]:
        """Return simulations of the best trial in `done` with lanes that take runs of neighbouring rows, if splits are allowed:
        lanes of the indices that it deals, and of other indices that are expected to be faster."""
        first = best_trial(done)
        if first is None or SPLITS not in self.request.allow or self.deadline.passed:
            return []
        own = tuple(row_runs(self.estimates.compiled(first.schedule)))
        tried = self._changed(first, own, "lanes in runs")
        return tried + self._changed(first, tuple(self._other_runs(first)), "other lanes in runs")

    def _other_runs(self, first: Trial) -> Iterator[tuple[RegionTransfer, ...]]:
        """Yield, for each region that is expected to be faster in lanes of another index, changes to these lanes with runs of
        rows."""
        dealt, lanes = self.refinement.dealt_otherwise(first.taken).schedule, dict(first.schedule.parallel)
        others = {split_lanes(name)[0] for name, count in dealt.parallel if name not in lanes}
        contents = region_contents(self.estimates.compiled(first.schedule))
        schedule = first.schedule
        for region in sorted(others):
            schedule = contents[region].transfer(region, dealt).added(schedule)
        runs = row_runs(self.estimates.compiled(schedule)) if others else ()
        for options in runs:
            yield tuple(contents[o.region].transfer(o.region, o.added(schedule)) for o in options if o.region in others)

    def _deeper(self, done: Sequence[Trial]) -> list[Trial]:
        """Return simulations of the best trial in `done` with FIFOs as deep as the budget allows."""
        first = best_trial(done)
        if first is None or self.deadline.passed:
            return []
        estimates = self.estimates
        compiled = estimates.compiled(first.schedule)
        depths = tuple(region_depths(compiled, self.budget, estimates.estimator, estimates.compiled))
        return self._changed(first, depths, "deeper FIFOs")

    def _changed(self, first: Trial, options: Sequence[tuple[RegionChange, ...]], how: str) -> list[Trial]:
        """Return simulations of a trial with the `options` of its regions: each simulation has one option of every region that
        has one left."""
        return [trial for changes in rounds(options) for trial in self._with(first, changes, how, {first.schedule})]

    def _with(self, first: Trial, changes: Sequence[RegionChange], how: str, known: Container[Schedule]) -> list[Trial]:
        """Return the simulation of a trial with all changes with which it compiles; empty if that schedule is in `known`."""
        schedule = first.schedule
        for each in changes:
            try:
                self.estimates.compiled(each.added(schedule))
            except FuseFlowError:
                continue
            schedule = each.added(schedule)
        return [self.simulations.of_change(first, schedule, how)] if schedule not in known else []
