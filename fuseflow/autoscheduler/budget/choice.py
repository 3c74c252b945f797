"""The schedule that was chosen under a budget, and how far it is from a bound that no schedule beats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fuseflow.autoscheduler.budget.trials import Trial
from fuseflow.autoscheduler.simulation_cache import SimulationCache
from fuseflow.resources.budget import Budget
from fuseflow.run.compiled import Compiled
from fuseflow.run.execution import ProgressCallback, SimulationCallback
from fuseflow.run.result import Result
from fuseflow.schedule import Schedule
from fuseflow.sim import Engine


@dataclass(frozen=True, slots=True)
class Lever:
    """One kind of decisions (such as `lanes`), and in `without` how many cycles are expected without it, infinite if nothing fits
    then."""

    name: str
    without: float


@dataclass(frozen=True, slots=True)
class ParetoPoint:
    """A schedule that no other beats in cycles with as little of some components. It was found under these `limits`."""

    limits: Mapping[str, int]
    trial: Trial

    @property
    def cycles(self) -> float:
        """The simulated cycles, or the expected cycles where there is no simulation."""
        return self.trial.estimate if self.trial.cycles is None else self.trial.cycles

    def to_json(self) -> dict[str, Any]:
        """Return the point as plain values."""
        return {"limits": dict(self.limits), **self.trial.to_json()}


@dataclass(frozen=True, slots=True)
class BudgetChoice:
    """The schedule with the fewest cycles within a budget.

    `trials` are the schedules that were considered as a whole, the best first. No schedule that was searched is expected to take
    fewer cycles than `bound`. `relaxed` is the bound if all arithmetic, or the memory, were always busy. `busy` are the shares of
    the time in which the arithmetic units and the memory are at work, by name. `stopped` says that the time limit ended the
    search. `searched` counts the regions in each of their orders, and `lowered` the choices of lanes that were estimated.
    """

    compiled: Compiled
    budget: Budget
    trials: tuple[Trial, ...]
    bound: float
    relaxed: float
    busy: Mapping[str, float]
    levers: tuple[Lever, ...] = ()
    pareto: tuple[ParetoPoint, ...] = ()
    units: int = 0
    cut: str = ""
    searched: int = 0
    lowered: int = 0
    stopped: bool = False
    cache: SimulationCache = field(default_factory=SimulationCache)

    @property
    def schedule(self) -> Schedule:
        """The schedule that was chosen, in full."""
        return self.compiled.schedule

    @property
    def chosen(self) -> Trial:
        """The trial that was chosen."""
        return next(trial for trial in self.trials if trial.chosen)

    @property
    def unfused(self) -> Trial | None:
        """The trial of single operators in the formats of the user, under the same budget; None if they exceed it."""
        return next((trial for trial in self.trials if trial.is_unfused), None)

    @property
    def expected(self) -> float:
        """The fewest cycles that are expected of a schedule within the budget: the cycles without a lever are compared with them.
        The chosen schedule may be expected to take more, if it took fewer in the simulator."""
        return min(trial.estimate for trial in self.trials if trial.chosen or not trial.refused)

    @property
    def gap(self) -> float:
        """The expected cycles of the chosen schedule divided by the bound."""
        return self.chosen.estimate / self.bound if self.bound else 1.0

    @property
    def to_roofline(self) -> float:
        """The time of the chosen schedule divided by the time in which its busiest resource is busy."""
        return 1 / most_busy if (most_busy := max(self.busy.values(), default=0.0)) else float("inf")

    def run(
        self,
        progress: ProgressCallback | None = None,
        check: bool = True,
        engine: Engine = "auto",
        dedup: bool = True,
        watch: SimulationCallback | None = None,
        jobs: int | None = None,
    ) -> Result:
        """Run the program as `Compiled.run` does, without repeating simulations that the choice took in this process."""
        return self.compiled.run(progress, check, engine, dedup, watch, self.cache.exactly(), jobs=jobs)

    def to_json(self) -> dict[str, Any]:
        """Return the candidates and the choice as plain values."""
        return {
            "machine": self.compiled.machine.name,
            "budget": self.budget.to_json(),
            "cut": self.cut,
            "units": self.units,
            "searched": self.searched,
            "lowered": self.lowered,
            "stopped": self.stopped,
            "bound": round(self.bound),
            "relaxed": round(self.relaxed),
            "busy": {name: round(share, 4) for name, share in self.busy.items()},
            "trials": [trial.to_json() for trial in self.trials],
            "levers": {lever.name: None if lever.without == float("inf") else round(lever.without) for lever in self.levers},
            "pareto": [point.to_json() for point in self.pareto],
            "schedule": self.schedule.to_yaml(),
        }


def undominated(points: Sequence[ParetoPoint], component: str) -> list[ParetoPoint]:
    """Return the points that no other point beats both in cycles and in a component (equal points beat nothing)."""

    def place(point: ParetoPoint) -> tuple[float, float]:
        return point.cycles, getattr(point.trial.resources, component) or 0

    def beaten(point: ParetoPoint) -> bool:
        return any(
            place(other) != place(point) and all(a <= b for a, b in zip(place(other), place(point), strict=True))
            for other in points
        )

    return [point for point in points if not beaten(point)]
