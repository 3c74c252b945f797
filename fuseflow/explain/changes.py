"""The schedules and machines next to those of a run, and what they are expected to take.

Schedules are estimated (`fuseflow estimate`): the cycles of each region change as its estimate does. Machines are tried."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from fuseflow.errors import FuseFlowError
from fuseflow.estimate.program import Estimator, ProgramEstimate, RegionEstimate
from fuseflow.lower.lanes import scheduled_lanes
from fuseflow.lower.program import lower
from fuseflow.lower.regions import CompiledRegion
from fuseflow.run.compiled import Compiled
from fuseflow.run.result import RegionResult, Result
from fuseflow.schedule import Schedule
from fuseflow.sim import Machine, Simulation, simulate
from fuseflow.sim.events.critical_path import CriticalPath
from fuseflow.tensors import Tensor

MAX_LOOPS = 3
"""Outermost loops of a region that are tried with lanes."""
GROWTH_FACTOR = 4
"""Lanes that are tried, or times as many as there are."""
MAX_ORDERS = 2
"""Other orders that are tried."""
NOTABLE_SHARE = 0.05
"""Share of the critical path that waits for the memory, from which on other memories are tried."""
MEMORY_SETTING_LIMITS = {"channels": 16, "outstanding": 1024, "prefetch": 1024}
"""Settings of a memory that are doubled, below these values."""
MAX_FIRINGS = 20_000_000
"""Firings of a region up to which it is run on other machines."""


@dataclass(frozen=True, slots=True)
class Change:
    """What to change, as flags, and the cycles of the whole program that it is expected to take. With it the program runs by `schedule` on
    `machine`."""

    what: str
    cycles: int
    schedule: Schedule
    machine: Machine
    measured: bool = False


@dataclass(frozen=True, slots=True)
class RegionRun:
    """A region, what it read, the simulation of it and its critical path."""

    region: CompiledRegion
    read: Mapping[str, Tensor]
    simulation: Simulation
    path: CriticalPath


def find_changes(compiled: Compiled, result: Result, ran: RegionRun, times: int) -> tuple[Change, ...]:
    """The changes that compile, the best first. `ran` is the region that takes most of the cycles, and counts `times`."""
    estimator, graphs = Estimator(), tuple(r.graph for r in compiled.regions)
    now = _cycles_by_region(compiled.estimate(estimator))
    found = list(_machine_changes(compiled, result, ran, times))
    for flags, schedule in schedule_candidates(compiled, ran.region):
        with suppress(FuseFlowError):
            made = reschedule(compiled, schedule)
            if tuple(r.graph for r in made.regions) != graphs:
                cycles = scaled_cycles(result, now, _cycles_by_region(made.estimate(estimator)))
                found.append(Change(flags, cycles, schedule, compiled.machine))
    return tuple(sorted(found, key=lambda change: change.cycles))


def reschedule(compiled: Compiled, schedule: Schedule) -> Compiled:
    """The same program by another schedule."""
    program, regions = lower(compiled.source.program, schedule, compiled.source.tensors)
    return replace(compiled, program=program, schedule=schedule, regions=regions)


CyclesByRegion = dict[tuple[str, ...], float]
"""Cycles by the Einsums of a region, which tell it from all others, or by the name of a copy."""


def _cycles_by_region(found: ProgramEstimate) -> CyclesByRegion:
    return {key: region.bound.cycles for region in found.regions for key in _region_keys(region)}


def _region_keys(region: RegionEstimate | RegionResult) -> tuple[tuple[str, ...], ...]:
    """The keys of a region and of those that run like it."""
    return tuple(one.einsums or (one.name,) for one in (region, *region.repeats))


def scaled_cycles(result: Result, now: CyclesByRegion, then: CyclesByRegion) -> int:
    """The cycles of a program that is estimated at `then`, and at `now` as it ran: what the estimate of a region is off by it is off by
    in another order, too; of a region of other Einsums, by what it is off on the whole."""
    ran = {key: region.cycles for region in result.regions for key in _region_keys(region)}
    usual = result.cycles / sum(now.values())
    return round(sum(cycles * (ran[key] / now[key] if key in ran else usual) for key, cycles in then.items()))


def _machine_changes(compiled: Compiled, result: Result, ran: RegionRun, times: int) -> Iterator[Change]:
    """The estimate knows no FIFOs, and no order of requests in the memory: a region that waits for them is run with more."""
    if ran.simulation.firings > MAX_FIRINGS:
        return
    for setting, value, other in machine_candidates(compiled.machine, ran.path):
        with suppress(FuseFlowError):
            cycles = simulate(ran.region.graph, ran.read, other, engine=ran.simulation.engine).cycles
            less = times * (ran.simulation.cycles - cycles)
            yield Change(f"--set {setting}={value}", result.cycles - less, compiled.schedule, other, measured=True)


def machine_candidates(machine: Machine, path: CriticalPath) -> Iterator[tuple[str, int, Machine]]:
    """A setting with a value, and the machine that has it: more of what the path waits for."""
    full = any(
        step.kind == "full" and step.edge is not None for step in path.steps
    )  # a cycle each, but each with all that made it wait
    if full and machine.first_depth is not None:
        key = "fifo_depth_start" if machine.fifo_depth == "auto" else "fifo_depth"
        yield key, GROWTH_FACTOR * machine.first_depth, machine.model_copy(update={key: GROWTH_FACTOR * machine.first_depth})
    if sum(step.cycles for step in path.steps if step.kind == "memory") < NOTABLE_SHARE * path.cycles:
        return
    for key, value in machine.memory.model_dump().items():
        if key in MEMORY_SETTING_LIMITS and 0 < value < MEMORY_SETTING_LIMITS[key]:
            memory = machine.memory.model_copy(update={key: 2 * value})
            yield f"memory.{key}", 2 * value, machine.model_copy(update={"memory": memory})


def schedule_candidates(compiled: Compiled, region: CompiledRegion) -> Iterator[tuple[str, Schedule]]:
    """Flags with the schedule that they make of that of the run: more lanes of an outer loop, another order, more or less fusion."""
    schedule = compiled.schedule
    if region.einsums:
        there = scheduled_lanes(schedule, region.fused)
        for index in region.fused.order[:MAX_LOOPS]:
            count = GROWTH_FACTOR * there.get(index, 1)
            key = f"{region.name}.{index}" if len(compiled.regions) > 1 else index
            if count <= region.fused.sizes[index]:
                yield f"--par {key}={count}", schedule.par(**{key: count})
        cheapest = sorted((c for c in region.fused.compared if c.cost is not None), key=lambda c: c.rank)
        for candidate in [c for c in cheapest if c.order != region.fused.order][:MAX_ORDERS]:
            order = ",".join(candidate.order)
            yield f"--order {region.name}={order}", schedule.order(region.name, order)
    for how in ("none", "layerwise", "full"):
        if (how,) != schedule.fuse_regions:
            yield f"--fuse {how}", replace(schedule, fuse_regions=(how,), orders=())
