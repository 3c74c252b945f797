"""The splits that a schedule asks for: an index of an Einsum is two loops in its region."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from fuseflow.einsum.nodes import Program
from fuseflow.einsum.region_splits import RegionSplit
from fuseflow.einsum.reshapes import ReshapeElimination, eliminate_reshapes
from fuseflow.errors import ProgramError, ScheduleError, did_you_mean
from fuseflow.schedule import Region, Schedule


def without_reshapes(
    program: Program, kept: Collection[str], regions: Iterable[Region], schedule: Schedule
) -> ReshapeElimination:
    """Return the program without reshapes, and with the loops of its `regions` split as the schedule says. The tensors in `kept` are stored
    as they are. Raises `ScheduleError` for an index that cannot be split.
    """
    splits: list[RegionSplit] = []
    members = {name: frozenset(region.einsums) for region in regions for name in region.einsums}
    for target, size in schedule.splits:
        einsum, _, index = target.rpartition(".")
        span = schedule.place("split", target)
        if einsum not in members:
            message, hint = "the program computes no such tensor", did_you_mean(einsum, members)
            raise ScheduleError(f"split of `{target}`: {message}", hint=hint, span=span)
        splits.append(RegionSplit(einsum, index, size, members[einsum]))
        try:
            eliminate_reshapes(program, kept, splits)
        except ProgramError as error:
            raise ScheduleError(f"split of `{target}`: {error.message}", hint=error.hint, span=span) from error
    return eliminate_reshapes(program, kept, splits)
