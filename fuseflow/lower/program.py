"""Lowers a program: it is cut into the regions of its schedule, and one region after the other becomes a table and a graph."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from fuseflow.costs.statistics import assume_statistics
from fuseflow.einsum.nodes import Program
from fuseflow.errors import FusionError, ScheduleError, did_you_mean
from fuseflow.garbage_collection import collection_paused
from fuseflow.lower.buffers import (
    refuse_computed_residents,
    refuse_preloads,
    refuse_resident_copy,
    refuse_unknown_buffers,
    refuse_unread_residents,
)
from fuseflow.lower.lanes import refuse_unknown_depths, refuse_unknown_lanes
from fuseflow.lower.partition import PartitionedProgram, partition_program
from fuseflow.lower.regions import CompiledRegion, lower_region
from fuseflow.lower.state import LoweringMemo, RegionRequest, initial_state
from fuseflow.schedule import Region, Schedule
from fuseflow.schedule.region_size import RegionDivider
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
    cannot be lowered are added to it, and the other regions are lowered as if these had run."""
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
                types = {name: state.declared[name] for name in request.results}
                regions, state = (), state.after_writing(types, {name: assume_statistics(type) for name, type in types.items()})
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
    order that no region can have, for zeros that cannot be dropped, and for a resident tensor that is no input."""
    schedule, results, orders = partitioned.schedule, partitioned.results, user_orders(partitioned)
    for region in partitioned.regions:
        if region.name in orders and not results[region.name]:  # it is not lowered, and its order would be silently ignored
            raise ScheduleError(
                f"order of `{region.name}`: nothing that it computes is read, so that it never runs",
                hint="leave the order out, or make a result of it an output of the program",
                span=schedule.place("order", region.name) or schedule.place("order", region.einsums[0]),
            )
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
    """Return the error that says why no region has the order of `target`. `targets` are the names that may have one."""
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


def _refuse_unwritten(partitioned: PartitionedProgram, computed: set[str]) -> None:
    """Raise `ScheduleError` if the schedule drops zeros of a tensor that is not among those `computed` in regions."""
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


MOST_REPEATS = 100
"""The most cycles of a region, as a multiple of the work of its Einsums. The models of the paper need at most 63, and most less
than one."""


def divided_regions(partitioned: PartitionedProgram, lowered: Sequence[CompiledRegion]) -> tuple[Region, ...]:
    """Return the regions, with each region that repeats too much of its work divided in halves. `lowered` are these regions as
    they were lowered. It is the same tuple if none does. A region stays whole if the user ordered its loops.

    Fusion computes values again that it does not store. A convolution over windows of nine, fused with earlier convolutions,
    computes each of their results up to nine times, so that a network of them fused as one region would run for years. So a
    region is divided as long as it is expected to take more cycles than `MOST_REPEATS` times the loops of its Einsums, all dense
    and one after the other. Fused sparse models take far fewer cycles.
    """
    cycles, ordered = {region.name: region.estimate.cycles for region in lowered}, user_orders(partitioned)
    repeating = (r.name for r in partitioned.formed if cycles.get(r.name, 0) > MOST_REPEATS * _loops(partitioned, r))
    return halved_regions(partitioned, [name for name in repeating if name not in ordered])


def halved_regions(partitioned: PartitionedProgram, names: Collection[str]) -> tuple[Region, ...]:
    """Return the regions, with each region of these `names` divided in halves. It is the same tuple if each of these has one Einsum."""
    divider, taken = RegionDivider(partitioned.original), {region.name for region in partitioned.formed}
    regions: list[Region] = []
    for region in partitioned.formed:
        if region.name not in names or len(region.einsums) == 1:
            regions.append(region)
            continue
        for half in divider.halves(region.einsums):
            name = next(n for k in range(1, len(taken) + 3) if (n := f"{region.name}-{k}") not in taken)
            taken.add(name)
            regions.append(Region(name, half))
    return partitioned.formed if len(regions) == len(partitioned.formed) else tuple(regions)


def _loops(partitioned: PartitionedProgram, region: Region) -> int:
    """Return how often the innermost loops of the Einsums of a region run, if each runs alone and all tensors are dense. A loop
    without coordinates counts as one with one coordinate: a fiber without coordinates takes cycles, too."""
    statements = partitioned.reshapes.members(region.einsums)
    return sum(math.prod(max(1, extent) for extent in partitioned.extents[name].values()) for name in statements)
