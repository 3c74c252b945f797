"""The resident tensors of a program: inputs that are part of the configuration of the accelerator, also if they are read as
views."""

from __future__ import annotations

from collections.abc import Iterable

from fuseflow.errors import ScheduleError, did_you_mean
from fuseflow.fusion import FusedRegion
from fuseflow.lower.partition import PartitionedProgram
from fuseflow.lower.views import source_of
from fuseflow.samml.nodes import Graph


def resident_tensors(partitioned: PartitionedProgram) -> frozenset[str]:
    """Return the names of the resident tensors, and of their views, which are the same memory."""
    names = set(partitioned.schedule.resident)
    if not names:
        return frozenset()
    for name, view in partitioned.views.items():  # a view of a view comes after it
        if source_of(view).tensor in names:
            names.add(name)
    return frozenset(names)


def refuse_computed_residents(partitioned: PartitionedProgram) -> None:
    """Raise `ScheduleError` if a resident tensor of the schedule is no input of the program."""
    program, schedule = partitioned.original, partitioned.schedule
    inputs = [tensor.name for tensor in program.inputs]
    for name in schedule.resident:
        if name in inputs:
            continue
        message, hint = "the program has no such input", did_you_mean(name, inputs)
        if name in program.defined:
            message, hint = "it is computed, and the configuration is loaded before anything is", "only inputs can be resident"
        raise _refusal(partitioned, name, message, hint)


def refuse_resident_copy(partitioned: PartitionedProgram, region: FusedRegion) -> None:
    """Raise `ScheduleError` if a region that makes a permuted copy reads a resident tensor: other regions would read the copy
    from memory."""
    for name in sorted(resident_tensors(partitioned) & region.stored.keys()):
        message = f"it is not read as it is stored, but from the permuted copy `{region.name}`, which lies in memory"
        raise _refusal(partitioned, name, message, "store it in the order of the loops (`--format`), or order these (`--order`)")


def refuse_unread_residents(partitioned: PartitionedProgram, graphs: Iterable[Graph]) -> None:
    """Raise `ScheduleError` for a resident tensor that no region reads, whose entry would be silently ignored."""
    read = {name for graph in graphs for name in graph.declared}
    views = {name: source_of(view).tensor for name, view in partitioned.views.items()}
    for name in [*read]:
        while name in views:
            name = views[name]
            read.add(name)
    for name in partitioned.schedule.resident:
        if name not in read:
            raise _refusal(partitioned, name, "nothing reads it", "leave it out")


def _refusal(partitioned: PartitionedProgram, name: str, message: str, hint: str) -> ScheduleError:
    place = partitioned.schedule.place("resident", name)
    return ScheduleError(f"`{name}` cannot be resident: {message}", hint=hint, span=place)
