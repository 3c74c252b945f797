"""Lowers a program: it is cut into the regions of its schedule, and one region after the other becomes a table and a graph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from fuseflow.collection import collection_paused
from fuseflow.einsum.nodes import Program
from fuseflow.errors import FusionError, ScheduleError, did_you_mean
from fuseflow.lower.buffers import refuse_preloads, refuse_unknown_buffers
from fuseflow.lower.depths import refuse_unknown_depths
from fuseflow.lower.lanes import refuse_unknown_lanes
from fuseflow.lower.partition import PartitionedProgram, partition_program
from fuseflow.lower.regions import CompiledRegion, lower_region
from fuseflow.lower.residents import refuse_computed_residents, refuse_resident_copy, refuse_unread_residents
from fuseflow.lower.state import LoweringMemo, RegionRequest, initial_state
from fuseflow.schedule import Region, Schedule
from fuseflow.tensors import Tensor


def lower(
    program: Program, schedule: Schedule, tensors: Mapping[str, Tensor], regions: tuple[Region, ...] | None = None
) -> tuple[Program, tuple[CompiledRegion, ...]]:
    """Return the program with all formats inferred, and its regions in the order in which they run.

    `tensors` may be empty: their statistics only rank loop orders. Without `regions`, the regions of the schedule are taken. No
    costs can be expected without a machine, so `fuse: best` makes the regions of `layerwise`. Raises `ProgramError`,
    `ScheduleError` or `FusionError`.
    """
    if schedule.leaves_cut:
        schedule = replace(schedule, fuse_regions=("layerwise",))
    with collection_paused():
        partitioned = partition_program(program, schedule, regions)
        return partitioned.program, tuple(lower_regions(partitioned, tensors))


def lower_regions(
    partitioned: PartitionedProgram,
    tensors: Mapping[str, Tensor],
    memo: LoweringMemo | None = None,
    refused: list[FusionError] | None = None,
) -> Iterator[CompiledRegion]:
    """Yield the regions in the order in which they run. Each is yielded before the next one is lowered, so that an observer sees
    the regions before an error. `memo` has decisions of the same schedule. With a list `refused`, the errors of regions that
    cannot be lowered are added to it, and the other regions are lowered as if these had run.
    """
    requests = region_requests(partitioned)
    state = initial_state(partitioned, tensors, memo)
    lowered: list[CompiledRegion] = []
    for request in requests:
        with collection_paused():
            try:
                regions, state = lower_region(state, request)
            except FusionError as error:
                if refused is None or request.order:
                    raise
                error.region = request.name
                refused.append(error)
                regions, state = (), state.after_assumed({name: state.declared[name] for name in request.results})
        for region in regions:
            if not region.einsums:
                refuse_resident_copy(partitioned, region.fused)
            lowered.append(region)
            yield region
    if refused:
        return
    refuse_unknown_lanes(partitioned.schedule, [region for region in lowered if region.einsums])
    graphs = {region.name: (region.graph, region.places) for region in lowered if region.einsums}
    refuse_unknown_depths(partitioned.schedule, graphs)
    refuse_unread_residents(partitioned, [region.graph for region in lowered])
    refuse_unknown_buffers(partitioned, [region.graph for region in lowered])
    refuse_preloads(partitioned, [region.graph for region in lowered])


def region_requests(partitioned: PartitionedProgram) -> tuple[RegionRequest, ...]:
    """Return requests for the regions that are lowered: the regions with a result that is read. Raises `ScheduleError` for an
    order that no region can have, for zeros that cannot be dropped, and for a resident tensor that is no input.
    """
    schedule, results, orders = partitioned.schedule, partitioned.results, user_orders(partitioned)
    for region in partitioned.regions:
        if region.name in orders and not results[region.name]:
            raise _unread(region, schedule)
    refuse_computed_residents(partitioned)
    _refuse_unwritten(partitioned, {name for region in partitioned.regions if results[region.name] for name in region.einsums})
    return tuple(
        RegionRequest(region.name, region.einsums, results[region.name], orders.get(region.name, ()))
        for region in partitioned.regions
        if results[region.name]
    )


def user_orders(partitioned: PartitionedProgram) -> dict[str, tuple[str, ...]]:
    """Return the loop order that the user stated, by region. An order of an Einsum that is alone in its region is that of the
    region. Raises `ScheduleError` for a target without a region, and for a region that is ordered twice."""
    alone = {r.einsums[0]: r.name for r in partitioned.regions if len(r.einsums) == 1}
    names = {r.name for r in partitioned.regions}
    orders: dict[str, tuple[str, ...]] = {}
    for target, order in partitioned.schedule.orders:
        region = target if target in names else alone.get(target)
        if region is None or target in partitioned.reshapes.aliases:
            raise _unordered(target, partitioned, names | alone.keys())
        if region in orders:
            raise ScheduleError(
                f"region `{region}` is ordered twice, as {','.join(orders[region])} and as {','.join(order)}",
                span=partitioned.schedule.place("order", target),
            )
        orders[region] = order
    if partitioned.schedule.fuse_regions == ("layerwise",):
        stated = dict(partitioned.source.region_orders)
        orders = {name: order for name, order in stated.items() if name in names} | orders
    return orders


def _unordered(target: str, partitioned: PartitionedProgram, targets: set[str]) -> ScheduleError:
    """Return the error that says why no region has the order that the user states for `target`. `targets` are the names that may
    have one."""
    aliases = partitioned.reshapes.aliases
    region = next((r for r in partitioned.regions if target in r.einsums), None)
    if target in aliases:
        message = f"it has no loops, it is `{aliases[target]}` seen in other dimensions"
        hint = f"order the region that computes `{aliases[target]}`"
    elif region is not None:
        message = f"it is fused into region `{region.name}` with {len(region.einsums) - 1} other Einsums"
        hint = f"order the region: `--order {region.name}=...`"
    else:
        message, hint = "no region or Einsum has this name", did_you_mean(target, targets)
    return ScheduleError(f"order of `{target}`: {message}", hint=hint, span=partitioned.schedule.place("order", target))


def _unread(region: Region, schedule: Schedule) -> ScheduleError:
    """Return the error for an order of a region of which no result is read. Such a region is not lowered, and its order would be
    silently ignored.
    """
    return ScheduleError(
        f"order of `{region.name}`: nothing that it computes is read, so that it never runs",
        hint="leave the order out, or make a result of it an output of the program",
        span=schedule.place("order", region.name) or schedule.place("order", region.einsums[0]),
    )


def _refuse_unwritten(partitioned: PartitionedProgram, computed: set[str]) -> None:
    """Raise `ScheduleError` if the schedule drops zeros of a tensor that no region computes. `computed` are those that regions
    compute."""
    program, schedule = partitioned.program, partitioned.schedule
    for name in schedule.drop_zeros:
        if name in computed:
            continue
        if name in partitioned.views:
            message, hint = "it is written in the parts of its dimensions, and seen whole", "leave it out"
        elif name in program.defined:
            message, hint = "nothing reads it, so that it is never computed", "leave it out"
        else:
            message, hint = "the program computes no such tensor", did_you_mean(name, program.defined)
        raise ScheduleError(f"zeros of `{name}` cannot be dropped: {message}", hint=hint, span=schedule.place("drop_zeros", name))
