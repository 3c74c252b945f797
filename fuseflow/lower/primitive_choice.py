"""Decides about public primitives before the regions of a program are lowered: whether to use them, and in which order dense
tensors are stored, if the order in which a region reads one decides whether the region has a public form."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from fuseflow.einsum.nodes import Program
from fuseflow.einsum.phases import carried_inputs
from fuseflow.errors import FusionError, ScheduleError
from fuseflow.fusion.refusal import Refusal, attempt
from fuseflow.garbage_collection import collection_paused
from fuseflow.lower.partition import PartitionedProgram, partition_program
from fuseflow.lower.program import divided_regions, halved_regions, lower_regions
from fuseflow.lower.regions import CompiledRegion
from fuseflow.lower.state import LoweringMemo
from fuseflow.machine.machine import Machine
from fuseflow.schedule import Schedule
from fuseflow.tensors import Format, Tensor

ROUNDS = 4
"""The number of times that tensors are ordered anew: if a region reads one in another order, earlier regions may have to write it so."""


def with_primitives(schedule: Schedule, machine: Machine) -> Schedule:
    """Return the schedule with `auto` replaced, for a machine: its primitives, whether outermost levels are scanned again in
    every loop, and whether lanes write. The primitives of the public simulator keep no level, and write once. Raises
    `ScheduleError` if the schedule asks for public primitives and for something that only fuseflow's own ones can do."""
    public = schedule.primitives == "public" or (schedule.primitives == "auto" and machine.rules == "comal")
    for section, value, effect, other in (
        ("rescan", "never", "keeps levels", "every"),
        ("writers", "lanes", "writes what each lane has", "once"),
    ):
        if public and getattr(schedule, section) == value:
            raise ScheduleError(
                f"`{section}: {value}` {effect} with a primitive of our own, and the regions are to have public primitives alone",
                hint=f"use `{section}: {other}`, or `primitives: own`",
            )
    as_public = public or machine.rules == "comal"
    rescan, writers = ("every", "once") if as_public else ("never", "auto")
    return replace(
        schedule,
        primitives="public" if public else "own",
        rescan=rescan if schedule.rescan == "auto" else schedule.rescan,
        writers=writers if schedule.writers == "auto" else schedule.writers,
    )


@collection_paused()
def lower_for(
    program: Program,
    schedule: Schedule,
    machine: Machine,
    tensors: Mapping[str, Tensor],
    memo: LoweringMemo | None = None,
) -> tuple[PartitionedProgram, Iterator[CompiledRegion]]:
    """Return the program in the regions of a schedule, for a machine, and the regions, lowered one by one.

    Public primitives locate a coordinate in the loop that emits it, below the levels of the loops around it. So a dense tensor
    that the schedule did not order is stored in the order of the loops of its reader, if more regions have a public form then.
    Only regions whose tensors are stored anew are fused anew for that.

    The collector of cyclic garbage is paused while regions are lowered here. `memo` has decisions about the same program.
    """
    memo, partitioned = memo or LoweringMemo(), partition_program(program, with_primitives(schedule, machine))
    public = partitioned.schedule.primitives == "public"
    if not public and not partitioned.grows_regions:
        return partitioned, lower_regions(partitioned, tensors, memo)
    is_step = partitioned.grows_regions and carried_inputs(partitioned.original)
    divided = _divided_step if is_step else _without_refusals
    partitioned, lowered = divided(program, partitioned, tensors, memo)
    if not public and not is_step:
        partitioned, lowered = _without_repetition(program, partitioned, lowered, tensors, memo)
    if isinstance(lowered, Refusal):
        return partitioned, lower_regions(partitioned, tensors)  # which yields the regions before the one that is refused
    if not public:
        return partitioned, iter(lowered)
    best, trial, fewest, current = partitioned, partitioned, lowered, lowered
    for _ in range(ROUNDS):
        wanted = dict(_wanted_formats(trial, current))
        if not wanted:
            break
        trial = _with_formats(trial, wanted, current)
        outcome = attempt(tuple, lower_regions(trial, tensors, memo.for_other_formats()))
        if isinstance(outcome, Refusal):
            break
        current = outcome
        if _private(current) < _private(fewest):
            best, fewest = trial, current
    return best, iter(fewest)


LoweredProgram: TypeAlias = tuple[PartitionedProgram, tuple[CompiledRegion, ...] | Refusal]
"""A program in its regions, and these regions as they were lowered, or the refusal of one."""


def _without_repetition(
    program: Program,
    partitioned: PartitionedProgram,
    lowered: tuple[CompiledRegion, ...] | Refusal,
    tensors: Mapping[str, Tensor],
    memo: LoweringMemo,
) -> LoweredProgram:
    """Return the program, cut so that no region that the user did not name repeats too much work, and the lowered regions."""
    while not isinstance(lowered, Refusal):
        regions = divided_regions(partitioned, lowered)
        if regions is partitioned.formed:
            break
        partitioned = replace(partition_program(program, partitioned.schedule, regions), notices=partitioned.notices)
        lowered = attempt(tuple, lower_regions(partitioned, tensors, memo))
    return partitioned, lowered


def _divided_step(
    program: Program, partitioned: PartitionedProgram, tensors: Mapping[str, Tensor], memo: LoweringMemo
) -> LoweredProgram:
    """Return a training step, cut so that no region is expected to take much longer than its Einsums one by one, and the lowered
    regions. The cut does not depend on lanes and depths."""
    from fuseflow.lower.step_division import StepDivision  # which programs without steps do without

    schedule = partitioned.schedule
    serial = replace(schedule, parallel=(), depths=())
    partitioned, lowered = _without_refusals(program, replace(partitioned, schedule=serial), tensors, memo)
    division = StepDivision.of(program, partitioned, schedule, tensors, memo)
    while not isinstance(lowered, Refusal):
        regions = division.divided(partitioned, lowered)
        if regions is partitioned.formed:
            notices = (*partitioned.notices, *division.notices(lowered))
            partitioned = replace(partitioned, schedule=schedule, notices=notices)
            return partitioned, lowered if schedule == serial else attempt(tuple, lower_regions(partitioned, tensors, memo))
        partitioned = replace(partition_program(program, serial, regions), notices=partitioned.notices)
        partitioned, lowered = _without_refusals(program, partitioned, tensors, memo)
    return partitioned, lowered


def _without_refusals(
    program: Program, partitioned: PartitionedProgram, tensors: Mapping[str, Tensor], memo: LoweringMemo
) -> LoweredProgram:
    """Return the program, cut so that no region that the user did not name is refused, and the lowered regions or the refusal of
    one. A region is refused that has no loop order, or would compute an Einsum too many times."""
    refused: list[FusionError] = []
    may_divide = refused if partitioned.grows_regions else None
    while True:
        lowered = attempt(tuple, lower_regions(partitioned, tensors, memo, may_divide))
        if not refused:  # else a later region may be refused only because of assumptions about their results
            return partitioned, lowered
        if carried_inputs(partitioned.original):
            from fuseflow.lower.step_division import divided_at_producers

            regions = divided_at_producers(partitioned, {error.region: error.producer for error in refused})
        else:
            regions = halved_regions(partitioned, [error.region for error in refused])
        if regions is partitioned.formed:
            return partitioned, Refusal(refused[0])
        notices = (*partitioned.notices, *(f"{error.message}, so it is divided" for error in refused))
        partitioned = replace(partition_program(program, partitioned.schedule, regions), notices=notices)
        refused.clear()


def _private(regions: Iterable[CompiledRegion]) -> int:
    return sum(bool(region.private) for region in regions)


def _with_formats(
    partitioned: PartitionedProgram, formats: Mapping[str, Format], regions: Iterable[CompiledRegion]
) -> PartitionedProgram:
    """Return the program in these formats, as if the user chose them. Private regions that read them keep their orders."""
    schedule = partitioned.schedule
    for region in regions:
        if region.private and region.einsums and any(view.tensor in formats for view in region.fused.views):
            schedule = schedule.order(region.name, region.fused.order)
    program = partitioned.program
    declared = tuple(replace(t, format=formats.get(t.name, t.format)) for t in program.tensors)
    chosen = partitioned.user_formats | formats.keys()
    return replace(partitioned, schedule=schedule, program=replace(program, tensors=declared), user_formats=chosen)


def _wanted_formats(partitioned: PartitionedProgram, regions: Sequence[CompiledRegion]) -> Iterator[tuple[str, Format]]:
    """Yield the dense tensors that regions without a public form read in another order than they are stored, with the order of
    the loops. Views, and tensors with views, are left out."""
    viewed = {*partitioned.sources, *partitioned.sources.values()}
    ordered = {name for name, _ in partitioned.schedule.formats}
    for region in regions:
        fused = region.fused
        for view in fused.views if region.private else ():
            name, format = view.tensor, fused.declared[view.tensor].format
            if name in viewed or name not in partitioned.program.declared or partitioned.user_names.get(name, name) in ordered:
                continue
            order = tuple(sorted(range(len(view.indices)), key=lambda d: fused.order.index(view.indices[d])))
            if format is not None and format.all_dense and order != format.order:
                yield name, Format.of(*["dense"] * len(order), order=order)
