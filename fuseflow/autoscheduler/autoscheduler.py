"""`auto` in a schedule: what is fused, and in which loop orders, chosen by estimate and confirmed in the simulator."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fuseflow.autoscheduler.costs import PartCosts
from fuseflow.autoscheduler.orders import OrderTrial, choose_orders
from fuseflow.autoscheduler.partitions import cheapest_partitions
from fuseflow.autoscheduler.simulation_cache import SimulationCache
from fuseflow.autoscheduler.units import UnitSequence, layer_units, operator_units, product_units
from fuseflow.compiler import compile_source
from fuseflow.errors import FuseFlowError, FusionError, ScheduleError, UsageError
from fuseflow.estimate.program import Estimator
from fuseflow.frontend.model_spec import ModelSpec
from fuseflow.frontend.sources import Source, load
from fuseflow.lower.partition import partition_program
from fuseflow.run.compiled import Compiled, ProgressCallback, SimulationCallback
from fuseflow.run.result import Result
from fuseflow.schedule import Schedule
from fuseflow.sim import Engine, Machine, load_machine

if TYPE_CHECKING:
    from fuseflow.frontend.model_spec import Model

DEFAULT_TOP = 3
"""Partitions, and orders of each region, that are simulated."""
KEPT_PARTITIONS = 6
"""Partitions that are estimated as a whole."""
MAX_EINSUMS = 1_200
"""Einsums of all regions that are estimated to find those, together; where there are more, fewer places may be cut."""
GRANULARITIES = ("layerwise", "full", "none")


@dataclass(frozen=True, slots=True)
class PartitionTrial:
    """A partition: `name`, the regions that fuse something; `regions`, how many there are in all. `cycles` None: not simulated;
    `refused`: why it cannot be compiled or run."""

    name: str
    schedule: Schedule
    regions: int = 0
    estimate: float | None = None
    cycles: int | None = None
    chosen: bool = False
    refused: str = ""

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "regions": self.regions,
            "estimate": None if self.estimate is None else round(self.estimate),
            "cycles": self.cycles,
            "chosen": self.chosen,
            "refused": self.refused,
            "schedule": self.schedule.to_yaml(),
        }


@dataclass(frozen=True, slots=True)
class ScheduleChoice:
    """What `auto` chose: `compiled`, with a schedule that says so in full. `cut` says between what the program may be cut (`operators`,
    `products`, `layers`; empty where the schedule says what is fused), `units` how many of them there are, `ranges` how many
    regions were estimated; `assumed`: inputs without data."""

    compiled: Compiled
    top: int
    tried: tuple[PartitionTrial, ...] = ()
    orders: tuple[OrderTrial, ...] = ()
    cut: str = ""
    units: int = 0
    ranges: int = 0
    assumed: tuple[str, ...] = ()
    ran: SimulationCache = field(default_factory=SimulationCache)

    @property
    def schedule(self) -> Schedule:
        return self.compiled.schedule

    def run(
        self,
        progress: ProgressCallback | None = None,
        check: bool = True,
        engine: Engine = "auto",
        dedup: bool = True,
        watch: SimulationCallback | None = None,
    ) -> Result:
        """As `Compiled.run`; what was simulated to choose is not simulated again."""
        return self.compiled.run(progress, check, engine, dedup, watch, self.ran.exactly())

    def to_json(self) -> dict[str, Any]:
        """What was tried, as plain values."""
        return {
            "machine": self.compiled.machine.name,
            "top": self.top,
            "cut": self.cut,
            "units": self.units,
            "ranges": self.ranges,
            "simulations": self.ran.simulations,
            "partitions": [tried.to_json() for tried in self.tried],
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


def autoschedule(
    model: Model,
    inputs: Sequence[Any] | None = None,
    *,
    schedule: Schedule | None = None,
    data: str | None = None,
    data_dir: str | Path | None = None,
    tensors: str | Path | Mapping[str, Any] | None = None,
    formats: Mapping[str, str] | None = None,
    options: Mapping[str, Any] | None = None,
    machine: str | Path | Machine = "rda",
    seed: int = 0,
    top: int = DEFAULT_TOP,
) -> ScheduleChoice:
    """Choose what a schedule leaves to `auto`; `Schedule.fuse("auto")` if there is none. Takes what `fuseflow.compile` takes, and `top`:
    how many of the best by estimate are simulated, 0 for none.

    >>> import fuseflow as ff
    >>> choice = ff.autoschedule("models/paper/gcn.py", data="karate", machine="ideal")   # doctest: +SKIP
    >>> choice.schedule, choice.run().cycles                                               # doctest: +SKIP
    """
    hardware = machine if isinstance(machine, Machine) else load_machine(machine)
    source = load(ModelSpec(model, inputs, data, data_dir, tensors, formats, options, seed))
    return choose_schedule(source, Schedule.fuse("auto") if schedule is None else schedule, hardware, top=top)


def choose_schedule(
    source: Source,
    schedule: Schedule,
    machine: Machine,
    *,
    top: int = DEFAULT_TOP,
    engine: Engine = "auto",
    estimator: Estimator | None = None,
    progress: ProgressCallback | None = None,
) -> ScheduleChoice:
    """Choose what the schedule of a loaded program leaves to `auto`. `estimator`: what the estimates rest on; without one, and without
    simulations, statistics are assumed of inputs without data.

    Raises `ScheduleError` for a schedule with nothing to choose, or that says of regions what no one can know before they are chosen;
    `UsageError` for inputs without data where something is to be simulated; and what the first candidate raises if all of them fail.
    """
    check_open_schedule(schedule, top)
    without = [t.name for t in source.program.inputs if t.name not in source.tensors]
    if top and without:
        raise UsageError(f"input `{without[0]}` of `{source.name}` has no data", hint="pass `--tensors FILE.yaml`")
    estimator = estimator or Estimator(assumed=True)
    search = _ScheduleSearch(source, schedule, machine, top, engine, estimator, progress)
    found = ScheduleChoice(compile_source(source, search.settled, machine), top) if search.fused else search.partition()
    found = replace(found, assumed=tuple(without) if estimator.assumed else ())
    return search.ordered(found) if schedule.order_policy == "auto" else found


def check_open_schedule(schedule: Schedule, top: int) -> None:
    """Raise an error for what cannot be chosen."""
    if not schedule.open:
        raise ScheduleError("the schedule leaves nothing to choose", hint="say `fuse: auto`, `order_policy: auto` or both")
    if top < 0:
        raise UsageError(f"{top} schedules to simulate", hint="1 or more, or 0 to choose by estimate only")
    if schedule.intermediates == "dense":
        raise ScheduleError(
            "`auto` compares runs on real intermediates, not on stand-ins (`intermediates: dense`)", hint="leave one of them out"
        )
    if schedule.fuse_regions != ("auto",):
        return
    lanes = [index for index, _ in schedule.parallel if "." in index]
    said = {"regions": [n for n, _ in schedule.regions], "order": [n for n, _ in schedule.orders], "par": lanes}
    for section, names in said.items():
        if names:
            raise ScheduleError(
                f"`{section}` names `{names[0]}`, but which regions there are is left to `fuse: auto`",
                hint=f"leave `{names[0]}` out, or say what is fused",
                span=schedule.place(section, names[0]),
            )


@dataclass(slots=True)
class _ScheduleSearch:
    source: Source
    schedule: Schedule
    machine: Machine
    top: int
    engine: Engine
    estimator: Estimator
    progress: ProgressCallback | None
    ran: SimulationCache = field(default_factory=SimulationCache)

    @property
    def fused(self) -> bool:
        """Whether the schedule says what is fused."""
        return self.schedule.fuse_regions != ("auto",)

    @property
    def settled(self) -> Schedule:
        """The schedule, with the orders that the compiler ranks best where they are left open."""
        policy = "best" if self.schedule.order_policy == "auto" else self.schedule.order_policy
        return replace(self.schedule, order_policy=policy)

    def partition(self) -> ScheduleChoice:
        """The best of the partitions that are expected to be cheapest, and of what `layerwise`, `full` and `none` do."""
        costs = self._costs()
        tried, programs = self._estimated(costs)
        if not programs:
            raise next(each for each in (self._error(t.schedule) for t in tried) if each is not None)
        for at, each in enumerate(tried):
            if each.estimate is not None and sum(t.cycles is not None for t in tried) < self.top:
                try:
                    result = programs[each.name].run(self.progress, check=False, engine=self.engine, execute=self.ran)
                    tried[at] = replace(each, cycles=result.cycles)
                except FuseFlowError as error:
                    if all(t.refused for t in tried[at + 1 :]) and not any(t.cycles for t in tried):
                        raise
                    tried[at] = replace(each, refused=error.message)
        best = min(tried, key=lambda t: (bool(t.refused), t.cycles is None, t.cycles or t.estimate or 0.0))
        rows = tuple(replace(each, chosen=each is best) for each in tried)
        return ScheduleChoice(
            programs[best.name],
            self.top,
            rows,
            cut=costs.units.what if costs else "",
            units=len(costs.units) if costs else 0,
            ranges=costs.estimated if costs else 0,
            ran=self.ran,
        )

    def ordered(self, found: ScheduleChoice) -> ScheduleChoice:
        """The choice with the orders of its regions chosen too, unless the best-ranked orders turn out better as a whole."""
        compiled, orders = choose_orders(found.compiled, self.top, self.estimator, self.ran, self.engine)
        if not self.top:
            return replace(found, compiled=compiled, orders=orders)
        before, after = (
            c.run(self.progress, check=False, engine=self.engine, execute=self.ran) for c in (found.compiled, compiled)
        )
        if before.cycles < after.cycles:
            return replace(
                found, orders=tuple(replace(t, chosen=t.order in _orders_by_region(found.compiled)[t.region]) for t in orders)
            )
        return replace(found, compiled=compiled, orders=orders, ran=self.ran)

    def _costs(self) -> PartCosts | None:
        """Of the finest units that are few enough; None if there are too many, or if an operator cannot run by itself."""
        alone = replace(self.settled, fuse_regions=("none",), regions=(), drop_zeros=self.settled.drop_zeros)
        try:
            partitioned = partition_program(self.source.program, alone)
            finest = operator_units(partitioned, alone)
            costs = PartCosts.of(partitioned, finest, alone, self.source.tensors, self.machine, self.estimator)
        except FusionError:
            return None
        levels: tuple[Callable[[], UnitSequence], ...] = (
            lambda: finest,
            lambda: product_units(partitioned, finest),
            lambda: layer_units(partitioned, finest),
        )
        for level in levels:
            costs.units = level()
            if costs.fits(MAX_EINSUMS):
                return costs
        return None

    def _candidates(self, costs: PartCosts | None) -> Iterator[PartitionTrial]:
        for keyword in GRANULARITIES:
            yield PartitionTrial(keyword, replace(self.settled, fuse_regions=(keyword,)))
        if costs is not None:
            for _, cut in cheapest_partitions(len(costs.units), costs, KEPT_PARTITIONS):
                fused = [costs.units.name(part) for part in cut if costs.units.parts(part) > 1]
                yield PartitionTrial(" | ".join(fused) or "none", costs.units.scheduled(self.settled, cut))

    def _estimated(self, costs: PartCosts | None) -> tuple[list[PartitionTrial], dict[str, Compiled]]:
        """All candidates, each partition once, the cheapest first; those that are refused last."""
        found, programs, seen = list[PartitionTrial](), dict[str, Compiled](), set[frozenset[tuple[str, ...]]]()
        for each in self._candidates(costs):
            try:
                compiled = compile_source(self.source, each.schedule, self.machine)
                cut = frozenset(r.einsums for r in compiled.regions if r.einsums)
                if cut in seen:
                    continue
                cycles = compiled.estimate(self.estimator).cycles
            except (FusionError, ScheduleError) as error:
                found.append(replace(each, refused=error.message))
                continue
            seen.add(cut)
            programs[each.name] = compiled
            found.append(replace(each, regions=len(cut), estimate=cycles))
        found.sort(key=lambda t: (t.estimate is None, t.estimate or 0.0))
        return found, programs

    def _error(self, schedule: Schedule) -> FuseFlowError | None:
        """Why a schedule is refused."""
        try:
            compile_source(self.source, schedule, self.machine)
        except FuseFlowError as error:
            return error
        return None


def _orders_by_region(compiled: Compiled) -> dict[str, tuple[tuple[str, ...], ...]]:
    """The order of each region, as a single choice."""
    return {region.name: (region.fused.order,) for region in compiled.regions}
