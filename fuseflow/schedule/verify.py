"""Whether a schedule speaks of things that the program has."""

from __future__ import annotations

from collections.abc import Iterable

from fuseflow.einsum.nodes import Program
from fuseflow.einsum.verify import extents, shapes
from fuseflow.errors import FuseFlowError, ScheduleError, did_you_mean
from fuseflow.schedule.partition import Region
from fuseflow.schedule.schedule import Schedule
from fuseflow.tensors import Format


def verify_schedule(program: Program, schedule: Schedule, regions: Iterable[Region]) -> None:
    """Raise `ScheduleError` where an order, a format or a number of lanes names what is not there, with the nearest right name.

    Whether the indices of an order can be nested so is decided when the region is fused, which gives them their names.
    """
    targets = [*(region.name for region in regions), *program.defined]
    for target, _ in schedule.orders:
        if target not in targets:
            raise ScheduleError(f"order of `{target}`: no such region or Einsum", hint=did_you_mean(target, targets))
    ranks = {name: len(shape) for name, shape in shapes(program).items()}
    for tensor, text in schedule.formats:
        if tensor not in ranks:
            raise ScheduleError(f"format of `{tensor}`: no such tensor", hint=did_you_mean(tensor, ranks))
        try:
            Format.parse(text, ranks[tensor])
        except FuseFlowError as error:
            raise ScheduleError(f"format of `{tensor}`: {error.message}", hint=error.hint) from error
    indices = {index for sizes in extents(program).values() for index in sizes}
    for index, _ in schedule.parallel:
        if index not in indices:
            raise ScheduleError(f"lanes of `{index}`: no region has this index", hint=did_you_mean(index, indices))
