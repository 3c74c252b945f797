"""The splits that a schedule states: an index of an Einsum becomes two loops in its region."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from fuseflow.einsum.dimensions import RegionSplit
from fuseflow.einsum.nodes import Program
from fuseflow.einsum.reshapes import eliminate_reshapes
from fuseflow.errors import ProgramError, ScheduleError, did_you_mean
from fuseflow.schedule import Region, Schedule


def region_splits(
    program: Program, kept: Collection[str], regions: Iterable[Region], schedule: Schedule
) -> tuple[RegionSplit, ...]:
    """Return the splits that the schedule states, each in the region of its Einsum. Tensors in `kept` are stored in the user's
    dimensions. Raises `ScheduleError` for an index that cannot be split."""
    splits: tuple[RegionSplit, ...] = ()
    members = {name: frozenset(region.einsums) for region in regions for name in region.einsums}
    for target, size in schedule.splits:
        einsum, _, index = target.rpartition(".")
        span = schedule.place("split", target)
        if einsum not in members:
            message, hint = "the program computes no such tensor", did_you_mean(einsum, members)
            raise ScheduleError(f"split of `{target}`: {message}", hint=hint, span=span)
        splits = (*splits, RegionSplit(einsum, index, size, members[einsum]))
        try:
            eliminate_reshapes(program, kept, splits)
        except ProgramError as error:
            raise ScheduleError(f"split of `{target}`: {error.message}", hint=error.hint, span=span) from error
    return splits
