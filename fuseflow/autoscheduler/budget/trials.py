"""Programs that were considered as a whole: their expected cycles, and the results of their simulations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any, TypeAlias

from fuseflow.autoscheduler.simulation_cache import SimulationCache
from fuseflow.compiler import compile_source
from fuseflow.errors import DeadlockError, FuseFlowError
from fuseflow.frontend.source import Source
from fuseflow.machine.machine import Machine
from fuseflow.resources import COMPONENTS, Resources
from fuseflow.resources.budget import Budget, amount_text
from fuseflow.schedule import Schedule
from fuseflow.sim import Engine


@dataclass(frozen=True, slots=True)
class RegionRun:
    """The result of a simulation of a region: its cycles, and the bytes of all its FIFOs at the end. These are None if a FIFO had
    no bound, or if they were not kept."""

    cycles: int
    fifo: int | None = None


@dataclass(frozen=True, slots=True)
class TrialRun:
    """The result of a simulation of a schedule: its cycles, and the most of each component that a region occupied, None for a
    FIFO without bound. `regions` has the result of each region, by name. `error` says why there is no simulation, and `stuck` is
    the region that stood still, empty if none did."""

    cycles: int | None = None
    occupied: Mapping[str, int | None] | None = None
    error: str = ""
    regions: Mapping[str, RegionRun] = field(default_factory=dict)
    stuck: str = ""


RunSchedules: TypeAlias = Callable[[Sequence[Schedule]], Sequence[TrialRun]]
"""A function that simulates schedules of a program, and returns the result of each."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A schedule that was considered.

    `name` lists the regions that fuse something. `estimate` is how many cycles are expected, and `resources` the most that a
    region occupies. `cycles` and `regions` are the results of a simulation, as a whole and of each region; they are None without
    one. `refused` says why the schedule is not taken. `is_unfused` says that it has single operators in the formats of the user.
    """

    name: str
    schedule: Schedule
    estimate: float
    resources: Resources
    is_unfused: bool = False
    cycles: int | None = None
    refused: str = ""
    chosen: bool = False
    regions: Mapping[str, RegionRun] | None = None

    @property
    def taken(self) -> dict[str, int]:
        """The cycles that each region took in the simulation, by name; empty without one."""
        return {name: region.cycles for name, region in (self.regions or {}).items()}

    @property
    def rank(self) -> tuple[bool, bool, float, float, float, str]:
        """The key by which trials are sorted: trials that ran are best, refused ones are worst, and within each class fewer
        cycles are better. Of two with equally many cycles, the one with the smaller FIFOs is better."""
        known, fifo = self.estimate if self.cycles is None else self.cycles, self.resources.fifo
        return (
            bool(self.refused),
            self.cycles is None,
            known,
            self.estimate,
            inf if fifo is None else fifo,
            self.schedule.to_yaml(),
        )

    def after(self, run: TrialRun, budget: Budget) -> Trial:
        """Return the trial with the result of its simulation. It is refused if the run failed, or deepened FIFOs beyond the
        budget."""
        if run.cycles is None:
            return replace(self, refused=run.error)
        occupied = run.occupied or {}
        over = {name: value for name, value in occupied.items() if name in budget.limits and (value or 0) > budget.limits[name]}
        return replace(self, cycles=run.cycles, refused=excess_text(over, budget, "its run takes"), regions=run.regions)

    def to_json(self) -> dict[str, Any]:
        """Return the trial as plain values."""
        return {
            "name": self.name,
            "is_unfused": self.is_unfused,
            "estimate": round(self.estimate),
            "cycles": self.cycles,
            "resources": self.resources.to_json(),
            "refused": self.refused,
            "chosen": self.chosen,
            "schedule": self.schedule.to_yaml(),
        }


def best_trial(trials: Iterable[Trial]) -> Trial | None:
    """Return the best of some trials that ran within the budget. None if there is none."""
    ran = [trial for trial in trials if trial.regions is not None and not trial.refused]
    return min(ran, key=lambda trial: trial.rank, default=None)


def excess_text(over: Mapping[str, int | None], budget: Budget, verb: str = "it takes") -> str:
    """Return the components that exceed a budget as the beginning of a sentence; empty if there are none."""
    parts = (
        f"{'unbounded' if value is None else amount_text(name, value)} {name} of {amount_text(name, budget.limits[name])}"
        for name, value in over.items()
    )
    return f"{verb} {', '.join(parts)}" if over else ""


@dataclass(frozen=True, slots=True)
class SimulateHere:
    """Simulates schedules of a loaded program in this process, and keeps the simulations that they share."""

    source: Source
    machine: Machine
    engine: Engine
    cache: SimulationCache

    def __call__(self, schedules: Sequence[Schedule]) -> Sequence[TrialRun]:
        return [self._run(schedule) for schedule in schedules]

    def _run(self, schedule: Schedule) -> TrialRun:
        try:
            compiled = compile_source(self.source, schedule, self.machine)
            result = compiled.run(check=False, engine=self.engine, execute=self.cache)
        except FuseFlowError as error:
            return TrialRun(error=error.message, stuck=error.region if isinstance(error, DeadlockError) else "")
        most = Resources.most_of(region.resources for region in result.regions)
        occupied = {name: getattr(most, name) for name in COMPONENTS}
        regions = {name: RegionRun(region.cycles, region.resources.fifo) for region in result.regions for name in region.names}
        return TrialRun(result.cycles, occupied, regions=regions)
