"""Compiles and estimates whole programs of a search, and compares them with the budget."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf

from fuseflow.autoscheduler.budget.search import DealtPath
from fuseflow.autoscheduler.budget.trials import Trial, excess_text
from fuseflow.autoscheduler.budget.variants import variant_changes
from fuseflow.compiler import compile_source
from fuseflow.errors import FuseFlowError
from fuseflow.estimate.program import Estimator
from fuseflow.frontend.source import Source
from fuseflow.machine.machine import Machine
from fuseflow.resources import Resources
from fuseflow.resources.budget import Budget
from fuseflow.run.compiled import Compiled
from fuseflow.schedule import Schedule


@dataclass(slots=True)
class TrialEstimates:
    """Estimates schedules of a program on a machine, within a budget. It finds the program of a search by its schedule."""

    source: Source
    machine: Machine
    budget: Budget
    estimator: Estimator
    _programs: dict[Schedule, DealtPath] = field(default_factory=dict)
    _fastest: tuple[float, Schedule, Compiled] | None = None
    """The program with the fewest expected cycles, which is likely to be chosen: these cycles, its schedule, and the compiled
    program."""

    def of_program(self, program: DealtPath, is_unfused: bool) -> Trial:
        """Return the trial of a program of a search. It is refused if it exceeds the budget."""
        return self.of_changed(program, program.schedule, is_unfused)

    def of_changed(self, program: DealtPath, schedule: Schedule, is_unfused: bool, change: str = "") -> Trial:
        """Return the trial of `schedule`, which is that of a program of a search with a `change` (its name) that the search does
        not know."""
        self._programs.setdefault(schedule, program)
        return self.of_schedule(", ".join((program_name(program), *filter(None, (change,)))), schedule, is_unfused)

    def program(self, trial: Trial) -> DealtPath:
        """Return the program of a search that a trial was made from."""
        return self._programs[trial.schedule]

    def of_schedule(self, name: str, schedule: Schedule, is_unfused: bool) -> Trial:
        """Return the trial of a schedule. It is refused if it does not compile, or exceeds the budget."""
        try:
            compiled = self.compiled(schedule)
            estimate = compiled.estimate(self.estimator)
        except FuseFlowError as error:
            return Trial(name, schedule, inf, Resources(), is_unfused, refused=error.message)
        if self._fastest is None or estimate.cycles < self._fastest[0]:
            self._fastest = estimate.cycles, schedule, compiled
        used = Resources.most_of(region.resources for region in estimate.regions)
        refused = excess_text(self.budget.exceeded(used), self.budget)
        return Trial(name, schedule, estimate.cycles, used, is_unfused, refused=refused)

    def compiled(self, schedule: Schedule) -> Compiled:
        """Return the program under a schedule."""
        if self._fastest is not None and self._fastest[1] == schedule:
            return self._fastest[2]
        return compile_source(self.source, schedule, self.machine)


def program_name(program: DealtPath) -> str:
    """Return a name: the regions of a program that fuse something, and what its variant changes in the schedule of the user."""
    units = program.variant.graph.ranges.units
    fused = [units.name(part) for part in program.path.partition if units.parts(part) > 1]
    changes = variant_changes(program.variant.published, program.variant.base)
    return ", ".join((" | ".join(fused) or "unfused", *changes))
