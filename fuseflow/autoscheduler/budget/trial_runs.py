"""The simulations after a search: its best programs, others that these runs make promising, and changes of the regions of the
fastest one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from fuseflow.autoscheduler.budget.buffers import BufferVariants
from fuseflow.autoscheduler.budget.deadline import Deadline
from fuseflow.autoscheduler.budget.refinement import Refinement
from fuseflow.autoscheduler.budget.region_trials import RegionTrials
from fuseflow.autoscheduler.budget.request import BudgetRequest
from fuseflow.autoscheduler.budget.search import ALL_LEVERS, UNFUSED, BudgetSearch, Levers
from fuseflow.autoscheduler.budget.settings import SETTINGS
from fuseflow.autoscheduler.budget.trial_estimates import TrialEstimates
from fuseflow.autoscheduler.budget.trial_simulations import TrialSimulations
from fuseflow.autoscheduler.budget.trials import Trial, best_trial
from fuseflow.resources.budget import Budget


@dataclass(frozen=True, slots=True)
class TrialRuns:
    """Makes the simulations after a search, as many as a request asks for."""

    request: BudgetRequest
    search: BudgetSearch
    simulations: TrialSimulations
    buffers: BufferVariants

    @property
    def estimates(self) -> TrialEstimates:
        return self.simulations.estimates

    @property
    def budget(self) -> Budget:
        return self.request.budget

    @property
    def deadline(self) -> Deadline:
        return self.search.deadline

    def confirmed(self, trials: Sequence[Trial]) -> list[Trial]:
        """Return the trials, with simulations of the best and of the unfused program. If all of these are refused, the next ones
        are simulated."""
        if not self.request.top:
            return list(trials)
        done: list[Trial] = []
        waiting = [trial for trial in trials if not trial.refused]
        while waiting and not self.deadline.passed and not any(t.cycles is not None and not t.refused for t in done):
            first = waiting[: self.request.top]
            first += [trial for trial in waiting[self.request.top :] if trial.is_unfused]
            done += self.simulations.of_programs(first)
            waiting = [trial for trial in waiting if trial not in first]
        for is_unfused, levers in ((True, UNFUSED), (False, ALL_LEVERS)):
            alike = [trial for trial in done if trial.is_unfused == is_unfused]
            alike += self._searched_again(alike, levers)
            best = best_trial(alike)
            if best is not None:
                refinement = Refinement(self.estimates.program(best), self.search.costs, self.budget, levers)
                alike += RegionTrials(self.request, self.simulations, refinement, self.buffers).after(alike)
            done += [trial for trial in alike if trial not in done]
        return [*done, *waiting, *(trial for trial in trials if trial.refused)]

    def _searched_again(self, done: Sequence[Trial], levers: Levers) -> list[Trial]:
        """Return simulations of further programs, until one ran within the budget and no other one is expected to be faster. Each
        is the cheapest by the depths of FIFOs and the cycles of regions in the runs before it. Beside refused ones, as many are
        simulated as the request says."""
        more: list[Trial] = []
        last, left = next(iter(done), None), self.request.top - 1
        while (
            last is not None and (last.refused or left > 0) and len(more) < SETTINGS.searches_again and not self.deadline.passed
        ):
            programs = self.search.cheapest(self.budget, 1, levers).programs
            program = next(iter(programs), None)
            fastest = min((t.cycles for t in (*done, *more) if t.cycles is not None and not t.refused), default=inf)
            known = {trial.schedule for trial in (*done, *more)}
            if program is None or program.schedule in known or not (last.refused or program.cycles < SETTINGS.faster * fastest):
                break
            trial = self.estimates.of_program(program, levers == UNFUSED)
            if trial.refused:
                break
            (last,) = self.simulations.of_programs([trial])
            left -= not last.refused
            more.append(last)
        return more
