"""Simulates the programs of a search, and changes of them that the search does not know."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fuseflow.autoscheduler.budget.agenda import Agenda
from fuseflow.autoscheduler.budget.deadline import Deadline
from fuseflow.autoscheduler.budget.range_costs import RangeCosts
from fuseflow.autoscheduler.budget.trial_estimates import TrialEstimates
from fuseflow.autoscheduler.budget.trials import RunSchedules, Trial
from fuseflow.resources.budget import Budget
from fuseflow.schedule import Schedule


@dataclass(frozen=True, slots=True)
class TrialSimulations:
    """Simulates trials until a deadline. What the ranges of a search took in a run enters their costs."""

    estimates: TrialEstimates
    costs: RangeCosts
    run: RunSchedules
    budget: Budget
    deadline: Deadline
    agenda: Agenda

    def of_programs(self, trials: Sequence[Trial]) -> list[Trial]:
        """Return the trials with their simulations. Each is of a program of the search. After the deadline they return as they
        are."""
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
                    self.costs.keep_stuck(edge, decision)
                elif edge.name in run.regions:
                    self.costs.keep_run(edge, decision, run.regions[edge.name])
        return [trial.after(run, self.budget) for trial, run in zip(trials, runs, strict=True)]

    def of_change(self, first: Trial, schedule: Schedule, change: str) -> Trial:
        """Return the trial of `schedule`, which changes the trial `first` in a way that the search does not know, with its
        simulation. It is refused if it exceeds the budget."""
        trial = self.estimates.of_changed(self.estimates.program(first), schedule, first.is_unfused, change)
        if trial.refused or self.deadline.passed:
            return trial
        self.agenda.trying(f"simulating {trial.name}")
        (run,) = self.run([schedule])
        return trial.after(run, self.budget)
