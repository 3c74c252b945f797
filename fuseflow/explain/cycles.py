"""The causes of the cycles of a run: the critical path of every region, and the changes that are expected to take fewer cycles.

A changed schedule is estimated, as by `fuseflow estimate`: the cycles of each region change in proportion to its estimate. The
changed schedules that are expected to be the fastest are then run, so that the first proposal was measured. On a changed machine,
the region that takes most of the cycles is simulated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

from fuseflow.errors import FuseFlowError
from fuseflow.estimate.program import Estimator
from fuseflow.estimate.program_estimate import ProgramEstimate, RegionEstimate
from fuseflow.lower.lanes import scheduled_lanes
from fuseflow.lower.primitive_choice import lower_for
from fuseflow.lower.regions import CompiledRegion
from fuseflow.machine.files import with_settings
from fuseflow.machine.machine import Machine
from fuseflow.run.callback_types import ProgressCallback
from fuseflow.run.compiled import Compiled
from fuseflow.run.result import RegionResult, Result
from fuseflow.schedule import Schedule
from fuseflow.sim import Engine, Simulation, simulate
from fuseflow.sim.events.critical_path import CriticalPath
from fuseflow.sim.events.fifo_loops import StepKind
from fuseflow.sim.events.stalls import Stalls
from fuseflow.sim.traced_rerun import find_critical_path, find_stalls
from fuseflow.tensors import Tensor

MAX_LOOPS = 3
"""The number of outermost loops of a region for which lanes are tried."""
GROWTH_FACTOR = 4
"""The factor by which the number of lanes, or the depth of the FIFOs, grows in a change."""
MAX_DEPTH_STEPS = 4
"""The most times that the depth of the FIFOs grows by `GROWTH_FACTOR`, as long as that helps."""
NOTABLE_GAIN = 0.05
"""The least share of the cycles that deeper FIFOs must save, or they are not worth their depth."""
MAX_ORDERS = 2
"""The number of other orders that are tried."""
NOTABLE_SHARE = 0.05
"""Larger memories are tried if at least this share of the critical path waits for the memory."""
MEMORY_SETTING_LIMITS = {"channels": 16, "outstanding": 1024, "prefetch": 1024}
"""The settings of a memory that a change doubles, each with the value from which on it is not doubled."""
MAX_FIRINGS = 20_000_000
"""The most firings of a region that is simulated on other machines, and of a program that is run by other schedules."""
MAX_RUNS = 3
"""The most changed schedules that are run."""


@dataclass(frozen=True, slots=True)
class Change:
    """A change, as the flags of the command line that make it, and the cycles that the whole program is expected to take with it.

    With the change the program runs with `schedule` on `machine`. `measured` says that the cycles were simulated.
    """

    flags: str
    cycles: int
    schedule: Schedule
    machine: Machine
    measured: bool = False


@dataclass(frozen=True, slots=True)
class RegionCycles:
    """The run of a region with its critical path, and with its stalls over time, if they were asked for."""

    region: CompiledRegion
    result: RegionResult
    path: CriticalPath
    stalls: Stalls | None = None


@dataclass(frozen=True, slots=True)
class CyclesReport:
    """The critical path of every region that was simulated, and the changes that were considered, the most promising first.

    A region that runs like another one has the same critical path, and is not listed.
    """

    compiled: Compiled
    result: Result
    regions: tuple[RegionCycles, ...]
    changes: tuple[Change, ...] = ()


def explain_cycles(
    compiled: Compiled,
    engine: Engine = "auto",
    progress: ProgressCallback | None = None,
    with_changes: bool = True,
    with_stalls: bool = False,
) -> CyclesReport:
    """Run a program, and every region once more for its critical path. The outputs are not checked.

    With `with_changes`, changed schedules are compiled and compared with the program's, too. With `with_stalls`, every region
    runs once more for the waits of its nodes over time.
    """
    ran: dict[str, tuple[CompiledRegion, Mapping[str, Tensor], CriticalPath]] = {}
    stalls: dict[str, Stalls] = {}

    def watch(region: CompiledRegion, read: Mapping[str, Tensor], simulation: Simulation) -> None:
        report = None if progress is None else partial(progress, f"{region.name} (critical path)")
        ran[region.name] = region, read, find_critical_path(region.graph, read, compiled.machine, simulation, report)
        if with_stalls:
            report = None if progress is None else partial(progress, f"{region.name} (stalls)")
            stalls[region.name] = find_stalls(region.graph, read, compiled.machine, simulation, report)

    result = compiled.run(progress, check=False, engine=engine, watch=watch)
    regions = tuple(RegionCycles(ran[r.name][0], r, ran[r.name][2], stalls.get(r.name)) for r in result.regions)
    if not with_changes:
        return CyclesReport(compiled, result, regions)
    longest = max(regions, key=lambda r: r.result.times * r.result.cycles)
    return CyclesReport(compiled, result, regions, _find_changes(compiled, result, longest, ran[longest.result.name][1]))


@dataclass(frozen=True, slots=True)
class PathShare:
    """The cycles of a critical path that one node takes in one kind of step, over all its FIFOs and ports."""

    node: str
    kind: StepKind
    cycles: int


def path_shares(path: CriticalPath) -> tuple[PathShare, ...]:
    """Return the cycles of a path by node and kind of step, the largest share first."""
    cycles_by_node = Counter[tuple[str, StepKind]]()
    for step in path.steps:
        cycles_by_node[step.node, step.kind] += step.cycles
    shares = (PathShare(*key, cycles) for key, cycles in cycles_by_node.items())
    return tuple(sorted(shares, key=lambda share: (-share.cycles, share.node, share.kind)))


def _find_changes(compiled: Compiled, result: Result, longest: RegionCycles, read: Mapping[str, Tensor]) -> tuple[Change, ...]:
    """Return the changes that compile, the best first. `longest` is the region that takes most of the cycles; it reads `read`."""
    estimator, graphs = Estimator(), tuple(r.graph for r in compiled.regions)
    now = _cycles_by_region(compiled.estimate(estimator))
    options = list(_machine_changes(compiled, result, longest, read))
    for flags, schedule in schedule_candidates(compiled, longest.region):
        with suppress(FuseFlowError):
            recompiled = reschedule(compiled, schedule)
            if tuple(r.graph for r in recompiled.regions) != graphs:
                cycles = scaled_cycles(result, now, _cycles_by_region(recompiled.estimate(estimator)))
                options.append(Change(flags, cycles, schedule, compiled.machine))
    return _fastest_measured(compiled, result, options)


def _fastest_measured(compiled: Compiled, result: Result, changes: Iterable[Change]) -> tuple[Change, ...]:
    """Return the changes, the best first. As long as the best one is only estimated, it is run, `MAX_RUNS` times at most."""
    ordered = sorted(changes, key=lambda change: change.cycles)
    if sum(region.times * region.simulation.firings for region in result.regions) > MAX_FIRINGS:
        return tuple(ordered)
    for _ in range(MAX_RUNS):
        if not ordered or ordered[0].measured or ordered[0].cycles >= result.cycles:
            break
        best = ordered.pop(0)
        with suppress(FuseFlowError):  # one that has no run, since it stands still, is no proposal
            ran = reschedule(compiled, best.schedule).run(check=False)
            ordered = sorted([*ordered, replace(best, cycles=ran.cycles, measured=True)], key=lambda change: change.cycles)
    return tuple(ordered)


def reschedule(compiled: Compiled, schedule: Schedule) -> Compiled:
    """Return the same program compiled with another schedule, for the same machine."""
    partitioned, regions = lower_for(compiled.source.program, schedule, compiled.machine, compiled.source.tensors)
    return replace(compiled, program=partitioned.program, schedule=schedule, regions=tuple(regions))


CyclesByRegion = dict[tuple[str, ...], float]
"""Cycles of regions. The key of a region is its Einsums, and that of a copy, which has none, its name."""


def _cycles_by_region(estimate: ProgramEstimate) -> CyclesByRegion:
    return {key: region.bound.cycles for region in estimate.regions for key in _region_keys(region)}


def _region_keys(region: RegionEstimate | RegionResult) -> tuple[tuple[str, ...], ...]:
    """Return the keys of a region and of the regions that run like it."""
    return tuple(run.einsums or (run.name,) for run in (region, *region.repeats))


def scaled_cycles(result: Result, now: CyclesByRegion, then: CyclesByRegion) -> int:
    """Return the cycles that a changed program is expected to take, given its estimates `then`, and those of the program that
    ran, `now`.

    Each estimate is scaled by the ratio of measured to estimated cycles of the same region, or, for a region of other Einsums, by
    that ratio of the whole program.
    """
    measured = {key: region.cycles for region in result.regions for key in _region_keys(region)}
    ratio = result.cycles / sum(now.values())
    return round(sum(cycles * (measured[key] / now[key] if key in measured else ratio) for key, cycles in then.items()))


def _machine_changes(compiled: Compiled, result: Result, longest: RegionCycles, read: Mapping[str, Tensor]) -> Iterator[Change]:
    """Yield changes of the machine, simulated: the estimate knows little of FIFOs, and of the order of requests in the memory."""
    simulation = longest.result.simulation
    if simulation.firings > MAX_FIRINGS:
        return

    def measured(setting: str, value: int, machine: Machine) -> Change:
        cycles = simulate(longest.region.graph, read, machine, engine=simulation.engine).cycles
        saved = longest.result.times * (simulation.cycles - cycles)
        return Change(f"--set {setting}={value}", result.cycles - saved, compiled.schedule, machine, measured=True)

    deeper: Change | None = None
    for candidate in depth_candidates(compiled.machine, longest.path):
        change = measured(*candidate)
        if deeper is not None and change.cycles > (1 - NOTABLE_GAIN) * deeper.cycles:
            break
        deeper = change
    if deeper is not None:
        yield deeper
    for candidate in memory_candidates(compiled.machine, longest.path):
        with suppress(FuseFlowError):
            yield measured(*candidate)


def depth_candidates(machine: Machine, path: CriticalPath) -> Iterator[tuple[str, int, Machine]]:
    """Yield deeper and deeper FIFOs, each as setting, value and machine, if the critical path waits for a full FIFO."""
    full = any(step.kind == "full" and step.edge is not None for step in path.steps)
    if full and machine.first_depth is not None:
        key = "fifo_depth_start" if machine.fifo_depth == "auto" else "fifo_depth"
        for power in range(1, MAX_DEPTH_STEPS + 1):
            depth = GROWTH_FACTOR**power * machine.first_depth
            yield key, depth, machine.model_copy(update={key: depth})


def memory_candidates(machine: Machine, path: CriticalPath) -> Iterator[tuple[str, int, Machine]]:
    """Yield larger memories, each as setting, value and machine, if the critical path waits for the memory."""
    if sum(step.cycles for step in path.steps if step.kind == "memory") < NOTABLE_SHARE * path.cycles:
        return
    for key, value in machine.memory.model_dump().items():
        if key in MEMORY_SETTING_LIMITS and 0 < value < MEMORY_SETTING_LIMITS[key]:
            yield f"memory.{key}", 2 * value, with_settings(machine, {f"memory.{key}": 2 * value})


def schedule_candidates(compiled: Compiled, region: CompiledRegion) -> Iterator[tuple[str, Schedule]]:
    """Yield flags with the schedule that they make: more lanes of an outer loop, writers in lanes, another order, or more or less
    fusion."""
    schedule = compiled.schedule
    if schedule.parallel and schedule.writers != "lanes" and not region.private:
        yield "--writers lanes", schedule.lower(writers="lanes")
    if region.einsums:
        lanes = scheduled_lanes(schedule, region.fused)
        for index in region.fused.order[:MAX_LOOPS]:
            count = GROWTH_FACTOR * lanes.get(index, 1)
            key = f"{region.name}.{index}" if len(compiled.regions) > 1 else index
            if count <= region.fused.sizes[index]:
                yield f"--par {key}={count}", schedule.par(**{key: count})
        cheapest = sorted((c for c in region.fused.compared if c.cost is not None), key=lambda c: c.rank)
        for candidate in [c for c in cheapest if c.order != region.fused.order][:MAX_ORDERS]:
            order = ",".join(candidate.order)
            yield f"--order {region.name}={order}", schedule.order(region.name, order)
    for granularity in ("none", "layerwise", "full", "best"):
        if (granularity,) != schedule.fuse_regions and (granularity != "best" or not schedule.leaves_cut):
            yield f"--fuse {granularity}", replace(schedule, fuse_regions=(granularity,), orders=())
