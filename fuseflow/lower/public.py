"""What lowering to public primitives settles before the regions of a program are lowered: whether it is asked for, and in which order dense
tensors are stored, where the order in which a region reads one decides whether the region has a public form.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from fuseflow.einsum.nodes import Program
from fuseflow.errors import FusionError, ProgramError, ScheduleError
from fuseflow.lower.partition import PartitionedProgram, partition_program
from fuseflow.lower.program import lower_regions
from fuseflow.lower.regions import CompiledRegion
from fuseflow.schedule import Schedule
from fuseflow.sim import Machine
from fuseflow.tensors import Format, Tensor


def with_primitives(schedule: Schedule, machine: Machine) -> Schedule:
    """Return the schedule with its primitives chosen for a machine."""
    if schedule.primitives != "auto":
        return schedule
    return replace(schedule, primitives="public" if machine.rules == "comal" else "own")


def partition_for(program: Program, schedule: Schedule, machine: Machine, tensors: Mapping[str, Tensor]) -> PartitionedProgram:
    """Return the program in the regions of a schedule, for a machine.

    Public primitives locate a coordinate in the loop that scans it, or in loops inside that one, and only below the levels around it. So a
    dense tensor that no user ordered is stored as the loops of its reader run, if that gives more regions a public form.
    """
    partitioned = partition_program(program, with_primitives(schedule, machine))
    if partitioned.schedule.primitives != "public":
        return partitioned
    regions = tuple(lower_regions(partitioned, tensors))
    tried: set[tuple[str, str]] = set()
    while wanted := {n: text for n, text in _wanted_formats(partitioned, regions) if (n, text) not in tried}:
        tried |= wanted.items()
        for formats in (wanted, *({name: text} for name, text in wanted.items() if len(wanted) > 1)):
            trial = _trial(program, partitioned.schedule, formats, tensors)
            if trial is not None and _private(trial[1]) < _private(regions):
                partitioned, regions = trial
                break
    return partitioned


def _private(regions: Sequence[CompiledRegion]) -> int:
    return sum(bool(region.private) for region in regions)


def _trial(
    program: Program, schedule: Schedule, formats: Mapping[str, str], tensors: Mapping[str, Tensor]
) -> tuple[PartitionedProgram, tuple[CompiledRegion, ...]] | None:
    """Return the program and its regions with these formats, too; None if they cannot be had."""
    try:
        partitioned = partition_program(program, replace(schedule, formats=(*schedule.formats, *formats.items())))
        return partitioned, tuple(lower_regions(partitioned, tensors))
    except (FusionError, ProgramError, ScheduleError):
        return None


def _wanted_formats(partitioned: PartitionedProgram, regions: Sequence[CompiledRegion]) -> Iterator[tuple[str, str]]:
    """Yield the dense tensors that regions without a public form read in another order than they are stored, in the order of their loops."""
    for region in regions:
        fused = region.fused
        for view in fused.views if region.private else ():
            declared = fused.declared.get(view.tensor)
            name = partitioned.user_names.get(view.tensor, view.tensor)
            if declared is None or declared.format is None or not declared.format.all_dense or name in partitioned.user_formats:
                continue
            dimensions = sorted(range(len(view.indices)), key=lambda d: fused.order.index(view.indices[d]))
            if tuple(dimensions) != declared.format.order and name in partitioned.original.declared:
                yield name, str(Format.of(*["dense"] * len(dimensions), order=tuple(dimensions)))
