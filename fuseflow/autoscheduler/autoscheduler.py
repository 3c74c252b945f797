"""The choice of what a schedule leaves to `auto`: the regions, the forms in which operands are stored (the plan), and the loop
orders.

Candidates are chosen by estimate, and the best of them are compared in the simulator.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from math import inf
from typing import Any

from fuseflow.autoscheduler.array_candidates import candidate_placing, expected_cycles
from fuseflow.autoscheduler.operand_plans import PlanSearch, PlanTrial
from fuseflow.autoscheduler.orders import OrderSearch, OrderTrial
from fuseflow.autoscheduler.search_defaults import DEFAULT_TOP
from fuseflow.autoscheduler.simulation_cache import CachedChoice, CandidateRuns
from fuseflow.compiler import compile_source
from fuseflow.cut.best import Cut, expected_cuts
from fuseflow.cut.costs import PartCosts, RegionEstimates, prepare_costs
from fuseflow.cut.recompute_prices import RecomputePrices
from fuseflow.cut.units import cheapest_partitions
from fuseflow.errors import ArrayError, FuseFlowError, FusionError, MachineError, ScheduleError, UsageError
from fuseflow.estimate.program import Estimator
from fuseflow.frontend.sources import Source
from fuseflow.layouts.kept_layouts import with_layouts
from fuseflow.lower.partition import with_later_readers
from fuseflow.lower.schedule_annotations import policy_notice
from fuseflow.machine.machine import Machine
from fuseflow.plan.plan import Plan
from fuseflow.plan_application import planned
from fuseflow.run.callback_types import ProgressCallback
from fuseflow.run.compiled import Compiled
from fuseflow.sampling.interval import SampledCycles
from fuseflow.sampling.sample_request import Sample
from fuseflow.schedule import Schedule
from fuseflow.sim import Engine

KEPT_PARTITIONS = 6
"""How many partitions are estimated as a whole: those whose regions, each estimated alone, take the fewest cycles in sum."""
MAX_EINSUMS = 1_200
"""The most Einsums, over all regions that are estimated to find partitions. Where there are more, the program may be cut in fewer
places."""
GRANULARITIES = ("layerwise", "full", "none")
"""The partitions that are always among the candidates, and are simulated, too."""
FAR = 8
"""A partition is not simulated if its estimate is more than this many times the fewest simulated cycles. For models in
`tests/zoo`, estimates are at most 7.6 times the cycles; no other models were tried."""


@dataclass(frozen=True, slots=True)
class PartitionTrial:
    """A partition that was considered.

    `name` lists the regions that fuse something, and `regions` is how many regions there are in all. `cycles` is None if the partition
    was not simulated as a whole, and `sampled` is None if it was not sampled. `refused` says why it cannot be compiled or run; it is
    empty if it can.
    """

    name: str
    schedule: Schedule
    regions: int = 0
    estimate: float | None = None
    cycles: int | None = None
    chosen: bool = False
    refused: str = ""
    sampled: SampledCycles | None = None

    @property
    def confirmed(self) -> float | None:
        """The simulated cycles, or the middle of the interval of a sample, by which partitions are compared; None without either."""
        return self.cycles if self.sampled is None else self.sampled.estimate

    def to_json(self) -> dict[str, Any]:
        """Return the partition as plain values."""
        return {
            "name": self.name,
            "regions": self.regions,
            "estimate": None if self.estimate is None else round(self.estimate),
            "cycles": self.cycles,
            **({} if self.sampled is None else {"sampled_cycles": self.sampled.to_json()}),
            "chosen": self.chosen,
            "refused": self.refused,
            "schedule": self.schedule.to_yaml(),
        }


@dataclass(frozen=True, slots=True)
class ScheduleChoice(CachedChoice):
    """The choice of `auto`: `compiled` is the program with the schedule that was chosen, in full.

    `top` is how many candidates were to be simulated, and `partitions`, `plans` and `orders` are the candidates that were
    considered.

    `cut` names the units between which the program may be cut: `operators`, `products` or `regions`; it is empty if the schedule
    says what is fused. `units` is how many units there are, and `ranges` how many regions were estimated. `without_data` are
    inputs whose statistics were assumed. `cache` holds the simulations.
    """

    top: int
    partitions: tuple[PartitionTrial, ...] = ()
    plans: tuple[PlanTrial, ...] = ()
    orders: tuple[OrderTrial, ...] = ()
    cut: str = ""
    units: int = 0
    ranges: int = 0
    without_data: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the candidates and the choice as plain values."""
        return {
            "machine": self.compiled.machine.name,
            "top": self.top,
            "cut": self.cut,
            "units": self.units,
            "ranges": self.ranges,
            "simulations": self.cache.simulations,
            "partitions": [trial.to_json() for trial in self.partitions],
            "plans": [trial.to_json() for trial in self.plans],
            "orders": [
                {
                    "region": t.region,
                    "order": list(t.order),
                    "estimate": round(t.estimate),
                    "cycles": t.cycles,
                    "chosen": t.chosen,
                    "refused": t.refused,
                }
                for t in self.orders
            ],
            "schedule": self.schedule.to_yaml(),
        }


def choose_schedule(
    source: Source,
    schedule: Schedule,
    machine: Machine,
    *,
    top: int = DEFAULT_TOP,
    engine: Engine = "auto",
    estimator: Estimator | None = None,
    progress: ProgressCallback | None = None,
    sample: Sample | None = None,
) -> ScheduleChoice:
    """Choose what the schedule of a loaded program leaves to `auto`.

    `top` is how many of the best candidates are simulated. With a `sample`, they are sampled instead.

    `estimator` makes the estimates. Without one, and without simulations, statistics are assumed for inputs without data. On the array of
    an estimator, what is chosen fits, cycles are with those of loading, and what is simulated runs with its links. Raises `ScheduleError`
    for a schedule that leaves nothing to choose, and `FusionError` or `ScheduleError` for regions that it names and that cannot be formed.
    Raises `ArrayError` if nothing fits the array, and `UsageError` for inputs without data if something is to be simulated. If all
    candidates fail, the error of the first is raised.
    """
    check_open_schedule(schedule, top)
    if schedule.order_policy == "auto" and (
        notice := policy_notice(source.program, "auto")
    ):  # the orders in its text do not count
        source = replace(source, program=source.program.unordered, notices=(*source.notices, notice))
    if not schedule.plan.auto:
        source, schedule = planned(source, schedule, machine)
        source = with_layouts(source, schedule, machine)
    without_data = [t.name for t in source.program.inputs if t.name not in source.tensors]
    if top and without_data:
        raise UsageError(f"input `{without_data[0]}` of `{source.name}` has no data", hint="pass `--tensors FILE.yaml`")
    estimator = estimator or Estimator(assume_unknown=True)
    runs = CandidateRuns(engine, candidate_placing(estimator.array, machine))
    search = _ScheduleSearch(source, schedule, machine, top, estimator, runs, progress, sample)
    choice = ScheduleChoice(compile_source(source, search.settled, machine), top) if search.fused else search.partition()
    choice = replace(choice, without_data=tuple(without_data) if estimator.assume_unknown else ())
    choice = search.divided(choice) if schedule.plan.auto else choice
    return search.ordered(choice) if schedule.order_policy == "auto" else choice


def check_open_schedule(schedule: Schedule, top: int) -> None:
    """Raise `ScheduleError` for a schedule that `auto` cannot complete, and `UsageError` for a negative `top`."""
    if not schedule.open:
        raise ScheduleError(
            "the schedule leaves nothing to choose", hint="say `fuse: auto`, `order_policy: auto` or `plan: auto`"
        )
    if top < 0:
        raise UsageError(f"{top} schedules to simulate", hint="1 or more, or 0 to choose by estimate only")
    if schedule.intermediates == "dense":
        raise ScheduleError(
            "`auto` compares runs on real intermediates, not on stand-ins (`intermediates: dense`)", hint="leave one of them out"
        )


@dataclass(slots=True)
class _ScheduleSearch:
    """The search for what the schedule of a program leaves open."""

    source: Source
    schedule: Schedule
    machine: Machine
    top: int
    estimator: Estimator
    runs: CandidateRuns
    progress: ProgressCallback | None = None
    sample: Sample | None = None

    @property
    def fused(self) -> bool:
        """Whether the schedule says what is fused."""
        return self.schedule.fuse_regions != ("auto",)

    @property
    def settled(self) -> Schedule:
        """The schedule with the orders that the compiler ranks best, and without a plan, where it leaves these open."""
        policy = "best" if self.schedule.order_policy == "auto" else self.schedule.order_policy
        return replace(self.schedule, order_policy=policy, plan=Plan() if self.schedule.plan.auto else self.schedule.plan)

    def partition(self) -> ScheduleChoice:
        """Return the best of the partitions with the fewest expected cycles, and of `layerwise`, `full` and `none`."""
        stored = replace(self.settled, recomputed=())  # the regions decide what later ones read
        costs = prepare_costs(self.source, stored, RegionEstimates(self.estimator, self.machine))
        cuts = () if costs is None else tuple(expected_cuts(costs))
        if costs is not None and not costs.refine(MAX_EINSUMS):
            costs = None
        trials, programs = self._estimated(costs, cuts)
        if not programs:
            for trial in trials:
                compiled = compile_source(
                    self.source, trial.schedule, self.machine
                )  # raises the error of the first that is refused
                if trial.name == "none":
                    expected_cycles(compiled, self.estimator)  # here even operators alone do not fit
        for at, trial in enumerate(trials):
            if self._is_simulated(trial, trials[:at]):
                try:
                    trials[at] = self._confirmed(trial, programs[trial.schedule])
                except FuseFlowError as error:
                    if all(t.refused for t in trials[at + 1 :]) and not any(t.confirmed for t in trials):
                        raise
                    trials[at] = replace(trial, refused=error.message)
        best = min(trials, key=lambda t: (bool(t.refused), t.confirmed is None, t.confirmed or t.estimate or 0.0))
        rows = tuple(replace(trial, chosen=trial is best) for trial in trials)
        return ScheduleChoice(
            programs[best.schedule],
            self.top,
            rows,
            cut=costs.units.granularity if costs else "",
            units=len(costs.units) if costs else 0,
            ranges=costs.estimated if costs else 0,
            cache=self.runs.cache,
        )

    def _is_simulated(self, trial: PartitionTrial, before: Sequence[PartitionTrial]) -> bool:
        """Return whether a partition is among the `top` best, or one of `GRANULARITIES` that is not much slower than those `before` it."""
        confirmed = [t.confirmed for t in before if t.confirmed is not None]
        if trial.estimate is None or not self.top:
            return False
        near = trial.estimate <= FAR * min(confirmed, default=trial.estimate)
        return len(confirmed) < self.top or (near and trial.name in GRANULARITIES)

    def _confirmed(self, trial: PartitionTrial, program: Compiled) -> PartitionTrial:
        """Return a partition with the cycles of its simulation, or of a sample of it."""
        if self.sample is None:
            return replace(trial, cycles=self._ran(program))
        sampled = program.run(self.progress, check=False, engine=self.runs.engine, sample=self.sample)
        return replace(trial, sampled=sampled.cycles)

    def _ran(self, program: Compiled) -> int:
        """Return the cycles of a run, on an array with links and with loading."""
        result = self.runs(program, self.progress)
        return result.cycles + result.loading_cycles

    def _taken(self, program: Compiled) -> float:
        """Return the cycles of a run, infinite if the program cannot be placed on the array."""
        try:
            return self._ran(program)
        except ArrayError:
            return inf

    def divided(self, choice: ScheduleChoice) -> ScheduleChoice:
        """Return the choice with a plan: each operand is stored in the parts with which the program takes the fewest cycles."""
        top = self.top if self.sample is None else 0
        plans = PlanSearch(self.source, self.machine, top, self.estimator, self.runs)
        schedule, trials = plans.choose(choice.schedule)
        return replace(choice, compiled=compile_source(self.source, schedule, self.machine), plans=trials, cache=self.runs.cache)

    def ordered(self, choice: ScheduleChoice) -> ScheduleChoice:
        """Return the choice with orders for its regions, unless the orders that the compiler ranks best are faster."""
        top = self.top if self.sample is None else 0
        estimates = RegionEstimates(self.estimator, self.machine)
        compiled, orders = OrderSearch(choice.compiled, top, estimates, self.runs).choose()
        if not top:
            return replace(choice, compiled=compiled, orders=orders)
        before, after = (self._taken(program) for program in (choice.compiled, compiled))
        if before < after:
            order_of = {region.name: region.fused.order for region in choice.compiled.regions}
            return replace(choice, orders=tuple(replace(t, chosen=t.order == order_of[t.region]) for t in orders))
        return replace(choice, compiled=compiled, orders=orders, cache=self.runs.cache)

    def _candidates(self, costs: PartCosts | None, cuts: Sequence[Cut]) -> Iterator[PartitionTrial]:
        """Yield the partitions to compare: the granularities, the `cuts` between operators that the default compares, and those of the
        units of `costs`, if these are few enough."""
        if costs is None or costs.schedule.fuse_regions == ("none",):
            for keyword in GRANULARITIES:
                yield PartitionTrial(keyword, replace(self.settled, fuse_regions=(keyword,)))
        for cut in cuts:
            yield PartitionTrial(cut.name, cut.schedule)
        if costs is not None:
            for _, partition in cheapest_partitions(len(costs.units), costs, KEPT_PARTITIONS):
                fused = [costs.units.name(part) for part in partition if costs.units.parts(part) > 1]
                yield PartitionTrial(" | ".join(fused) or "none", costs.scheduled(partition))

    def _estimated(self, costs: PartCosts | None, cuts: Sequence[Cut]) -> tuple[list[PartitionTrial], dict[Schedule, Compiled]]:
        """Return all candidates, the cheapest first and refused ones last, and by schedule the programs of those that compile."""
        trials, programs, partitions = list[PartitionTrial](), dict[Schedule, Compiled](), set[frozenset[tuple[str, ...]]]()
        for trial in self._candidates(costs, cuts):
            try:
                own = replace(trial.schedule, recomputed=self.schedule.recomputed)
                trial = replace(trial, schedule=with_later_readers(self.source.program, own))
                compiled = compile_source(self.source, trial.schedule, self.machine)
                cut = frozenset(r.einsums for r in compiled.regions if r.einsums)
                if cut in partitions:
                    continue
                cycles = expected_cycles(compiled, self.estimator)
            except (ArrayError, FusionError, MachineError, ScheduleError) as error:
                trials.append(replace(trial, refused=error.message))
                continue
            partitions.add(cut)
            programs[trial.schedule] = compiled
            trials.append(replace(trial, regions=len(cut), estimate=cycles))
        trials.sort(key=lambda t: (t.estimate is None, t.estimate or 0.0))
        if programs and (again := self._recomputing(trials[0])) is not None:
            compiled = compile_source(self.source, again.schedule, self.machine)
            with suppress(ArrayError):
                trials.insert(0, replace(again, estimate=expected_cycles(compiled, self.estimator)))
                programs[again.schedule] = compiled
        return trials, programs

    def _recomputing(self, trial: PartitionTrial) -> PartitionTrial | None:
        """Return a partition in which later regions compute again what they read, where that is expected to take fewer cycles; None if
        there is nothing like it."""
        prices = RecomputePrices(self.source.program, trial.schedule, self.machine, self.source.tensors, self.estimator)
        again = prices.of_fewest_cycles()
        price = prices.price(again)
        if not set(again) - prices.chosen or price is None:
            return None
        name = f"{trial.name} | again {', '.join(again)}"
        return replace(trial, name=name, schedule=prices.scheduled(again), estimate=price.cycles)
