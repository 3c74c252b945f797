"""Programs that were considered as a whole, and the choice among them.

A program has expected cycles, which are compared with the budget, and the results of a simulation. The choice says how far it is from
a bound that no schedule beats.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any, TypeAlias

from fuseflow.array.placed_region import PlacedRegion
from fuseflow.autoscheduler.array_candidates import counted_loading
from fuseflow.autoscheduler.budget.costs import RegionRun
from fuseflow.autoscheduler.budget.path_search import DealtPath
from fuseflow.autoscheduler.budget.program_variants import variant_changes
from fuseflow.autoscheduler.budget.range_costs import RangeCosts
from fuseflow.autoscheduler.budget.request import Agenda, Deadline
from fuseflow.autoscheduler.simulation_cache import CachedChoice, CandidateRuns
from fuseflow.compiler import compile_source
from fuseflow.errors import ArrayError, DeadlockError, FuseFlowError
from fuseflow.estimate.program import Estimator
from fuseflow.estimate.program_estimate import RegionEstimate
from fuseflow.frontend.imported_program import Source
from fuseflow.machine.machine import Machine
from fuseflow.resources import COMPONENTS, Resources
from fuseflow.resources.budget import LIVE, Budget, amount_text
from fuseflow.run.compiled import Compiled
from fuseflow.schedule import Schedule


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
    live_bytes: int = 0
    """The most bytes of intermediates that were alive at the same time."""
    loading: Mapping[str, int] = field(default_factory=dict)
    """The cycles of loading each region on an array, by name, which are in all other cycles."""

    @property
    def loaded(self) -> TrialRun:
        """The result of a run on an array, with the cycles of loading in all others."""
        if self.cycles is None:
            return self
        regions = {name: replace(run, cycles=run.cycles + self.loading.get(name, 0)) for name, run in self.regions.items()}
        return replace(self, cycles=self.cycles + sum(self.loading.values()), regions=regions)


NOT_PLACED = "it fits, but"
"""The beginning of the reason why a schedule is refused whose regions fit an array by their counts alone."""

RunSchedules: TypeAlias = Callable[[Sequence[Schedule]], Sequence[TrialRun]]
"""A function that simulates schedules of a program, and returns the result of each."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A schedule that was considered.

    `name` lists the regions that fuse something. `estimate` is how many cycles are expected, and `resources` the most that a
    region occupies. `cycles` and `regions` are the results of a simulation, as a whole and of each region; they are None without
    one. `refused` says why the schedule is not taken. `is_unfused` says that it has single operators in the formats of the user.
    On an array, all cycles have those of `loading` each region, by name, in them.
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
    live_bytes: float = 0.0
    """The most bytes of intermediates that are alive at the same time."""
    loading: Mapping[str, int] = field(default_factory=dict)

    def loaded(self, loading: Mapping[str, int]) -> Trial:
        """Return the trial with other cycles of loading."""
        more = sum(loading.values()) - sum(self.loading.values())
        cycles = None if self.cycles is None else self.cycles + more
        return replace(self, loading=loading, estimate=self.estimate + more, cycles=cycles)

    @property
    def taken(self) -> dict[str, int]:
        """The cycles that each region took in the simulation, by name; empty without one."""
        return {name: region.cycles for name, region in (self.regions or {}).items()}

    @property
    def rank(self) -> tuple[bool, bool, float, float, float, str]:
        """The key by which trials are sorted: trials that ran are best, refused ones are worst, and within each class fewer
        cycles are better. Of two with equally many cycles, the one with the smaller FIFOs is better."""
        known, fifo = self.estimate if self.cycles is None else self.cycles, self.resources.fifo
        fifo_bytes = inf if fifo is None else fifo
        return bool(self.refused), self.cycles is None, known, self.estimate, fifo_bytes, self.schedule.to_yaml()

    def after(self, run: TrialRun, budget: Budget) -> Trial:
        """Return the trial with the result of its simulation; refused if the run failed, or deepened FIFOs beyond the budget."""
        if run.cycles is None:
            return replace(self, refused=run.error)
        occupied = run.occupied or {}
        over = {name: value for name, value in occupied.items() if name in budget.limits and (value or 0) > budget.limits[name]}
        refused = excess_text(over, budget, "its run takes") or live_excess_text(run.live_bytes, budget)
        trial = self.loaded(run.loading) if self.loading else self
        return replace(trial, cycles=run.cycles, refused=refused, regions=run.regions, live_bytes=run.live_bytes)

    def to_json(self) -> dict[str, Any]:
        """Return the trial as plain values."""
        return {
            "name": self.name,
            "is_unfused": self.is_unfused,
            "estimate": round(self.estimate),
            "cycles": self.cycles,
            "resources": self.resources.to_json(),
            "live_bytes": round(self.live_bytes),
            **({"loading": self.loading} if self.loading else {}),
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


def live_excess_text(live_bytes: float, budget: Budget) -> str:
    """Return that a program keeps more bytes of intermediates alive than a budget has, as the beginning of a sentence, or ""."""
    if budget.live is None or live_bytes <= budget.live:
        return ""
    return f"it keeps {live_bytes:,.0f} bytes of intermediates alive, of {amount_text(LIVE, budget.live)}"


@dataclass(frozen=True, slots=True)
class SimulateHere:
    """Simulates schedules of a loaded program in this process, and keeps the simulations that they share."""

    source: Source
    machine: Machine
    runs: CandidateRuns = field(default_factory=CandidateRuns)

    def __call__(self, schedules: Sequence[Schedule]) -> Sequence[TrialRun]:
        return [self._run(schedule) for schedule in schedules]

    def _run(self, schedule: Schedule) -> TrialRun:
        try:
            result = self.runs(compile_source(self.source, schedule, self.machine))
        except ArrayError as error:
            return TrialRun(error=f"{NOT_PLACED} {error.message}")
        except FuseFlowError as error:
            return TrialRun(error=error.message, stuck=error.region if isinstance(error, DeadlockError) else "")
        most = Resources.most_of(region.resources for region in result.regions)
        occupied = {name: getattr(most, name) for name in COMPONENTS}
        regions = {name: RegionRun(region.cycles, region.resources.fifo) for region in result.regions for name in region.names}
        return TrialRun(result.cycles, occupied, regions=regions, live_bytes=result.live_bytes, loading=result.loading).loaded


@dataclass(slots=True)
class TrialEstimates:
    """Estimates schedules of a program on a machine, within a budget. It finds the program of a search by its schedule."""

    source: Source
    machine: Machine
    budget: Budget
    estimator: Estimator
    expected: dict[Schedule, float] = field(default_factory=dict)
    """The cycles that each schedule was expected to take, without hops."""
    _programs: dict[Schedule, DealtPath] = field(default_factory=dict)
    _fastest: tuple[float, Schedule, Compiled] | None = None
    """The program with the fewest expected cycles, which is likely to be chosen: these cycles, its schedule, and the compiled
    program."""

    def of_program(self, program: DealtPath, is_unfused: bool) -> Trial:
        """Return the trial of a program of a search. It is refused if it exceeds the budget."""
        return self.of_schedule(program_name(program), program, program.schedule, is_unfused)

    def program(self, trial: Trial) -> DealtPath:
        """Return the program of a search that a trial was made from."""
        return self._programs[trial.schedule]

    def of_schedule(self, name: str, program: DealtPath, schedule: Schedule, is_unfused: bool) -> Trial:
        """Return the trial of a schedule, which is that of a program of a search, perhaps with a change that the search does not
        know. It is refused if it does not compile, or exceeds the budget."""
        self._programs.setdefault(schedule, program)
        try:
            compiled = self.compiled(schedule)
            estimate = compiled.estimate(self.estimator)
        except FuseFlowError as error:
            return Trial(name, schedule, inf, Resources(), is_unfused, refused=error.message)
        if self._fastest is None or estimate.cycles < self._fastest[0]:
            self._fastest = estimate.cycles, schedule, compiled
        used = Resources.most_of(region.resources for region in estimate.regions)
        live = estimate.live_bytes
        refused = excess_text(self.budget.exceeded(used), self.budget) or live_excess_text(live, self.budget)
        trial = Trial(name, schedule, estimate.cycles, used, is_unfused, refused=refused, live_bytes=live)
        if self.estimator.array is not None:
            trial = trial.loaded(counted_loading(compiled, estimate, self.estimator.array))
        self.expected[schedule] = trial.estimate
        return trial

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


@dataclass(frozen=True, slots=True)
class TrialSimulations:
    """Simulates trials until a deadline. What the ranges of a search took in a run enters their costs."""

    estimates: TrialEstimates
    costs: RangeCosts
    run: RunSchedules
    deadline: Deadline
    agenda: Agenda

    def of_programs(self, trials: Sequence[Trial]) -> list[Trial]:
        """Return trials of programs of the search with their simulations. After the deadline they return as they are."""
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
        return [trial.after(run, self.estimates.budget) for trial, run in zip(trials, runs, strict=True)]

    def of_change(self, first: Trial, schedule: Schedule, change: str) -> Trial:
        """Return the trial of `schedule`, which changes the trial `first` in a way that the search does not know, with its
        simulation. It is refused if it exceeds the budget."""
        program = self.estimates.program(first)
        trial = self.estimates.of_schedule(f"{program_name(program)}, {change}", program, schedule, first.is_unfused)
        if trial.refused or self.deadline.passed:
            return trial
        self.agenda.trying(f"simulating {trial.name}")
        (run,) = self.run([schedule])
        return trial.after(run, self.estimates.budget)


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
class BudgetChoice(CachedChoice):
    """The schedule with the fewest cycles within a budget.

    `trials` are the schedules that were considered as a whole, the best first. No schedule that was searched is expected to take
    fewer cycles than `bound`, and `expected` are the fewest cycles that are expected of one, without hops. `relaxed` is the bound if
    all arithmetic, or the memory, were always busy. `busy` are the shares of the time in which the arithmetic units and the memory are at
    work, by name. `stopped` says that the time limit ended the search. `searched` counts the regions in each of their orders, and
    `lowered` the choices of lanes that were estimated.
    """

    budget: Budget
    trials: tuple[Trial, ...]
    expected: float
    """The cycles without a lever are compared with them. The chosen schedule may be expected to take more, if it took fewer in the
    simulator."""
    bound: float
    relaxed: float
    busy: Mapping[str, float]
    slowest: RegionEstimate
    """The region that is expected to take most cycles."""
    slowest_share: float
    """Its share of all expected cycles."""
    levers: tuple[Lever, ...] = ()
    pareto: tuple[ParetoPoint, ...] = ()
    units: int = 0
    cut: str = ""
    searched: int = 0
    lowered: int = 0
    stopped: bool = False
    placed: Mapping[str, PlacedRegion] = field(default_factory=dict)
    """The regions as they were placed on the array, by name."""

    @property
    def chosen(self) -> Trial:
        """The trial that was chosen."""
        return next(trial for trial in self.trials if trial.chosen)

    @property
    def unfused(self) -> Trial | None:
        """The trial of single operators in the formats of the user, under the same budget; None if they exceed it."""
        return next((trial for trial in self.trials if trial.is_unfused), None)

    @property
    def gap(self) -> float:
        """The expected cycles of the chosen schedule divided by the bound."""
        return self.chosen.estimate / self.bound if self.bound else 1.0

    @property
    def to_roofline(self) -> float:
        """The time of the chosen schedule divided by the time in which its busiest resource is busy."""
        return 1 / most_busy if (most_busy := max(self.busy.values(), default=0.0)) else float("inf")

    def to_json(self) -> dict[str, Any]:
        """Return the candidates and the choice as plain values."""
        return {
            "machine": self.compiled.machine.name,
            "budget": self.budget.to_json(),
            **({"array": self.budget.array} if self.budget.array else {}),
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
    places = [(point.cycles, getattr(point.trial.resources, component) or 0) for point in points]

    def is_beaten(cycles: float, amount: int) -> bool:
        return any(other != (cycles, amount) and other[0] <= cycles and other[1] <= amount for other in places)

    return [point for point, place in zip(points, places, strict=True) if not is_beaten(*place)]
