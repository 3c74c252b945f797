"""Divides a program into the regions that its schedule chooses, in an order in which they can run."""

from __future__ import annotations

from collections.abc import Collection

from fuseflow.einsum.nodes import Program
from fuseflow.einsum.reshapes import eliminate_reshapes
from fuseflow.errors import ScheduleError
from fuseflow.schedule.granularities import full_regions, layerwise_regions
from fuseflow.schedule.named_regions import find_members, has_regions, named_regions, written_regions
from fuseflow.schedule.partition import Region
from fuseflow.schedule.schedule import Schedule


def form_regions(program: Program, schedule: Schedule, kept: Collection[str] = ()) -> tuple[Region, ...]:
    """Return the regions of the program, each Einsum in exactly one, in an order in which they can run. Tensors in `kept` are
    stored in the user's dimensions, so that a reshape of them ends a region (`eliminate_reshapes`).

    Raises `ScheduleError` for a name that the program does not have, for Einsums that two regions claim, for a reshape inside a
    region of the user, and for a region that would have to be left and entered again.
    """
    match schedule.fuse_regions:
        case ("layerwise",) if has_regions(program):
            return named_regions(program, written_regions(program, eliminate_reshapes(program, kept).barriers), kept)
        case ("layerwise",):
            return layerwise_regions(program, kept)
        case ("full",):
            return full_regions(program, kept)
        case ("none",):
            return named_regions(program, {}, kept)
        case ("best",):
            raise ScheduleError(
                "`fuse: best` is chosen by estimate, for a machine",
                hint="say what is fused: none, layerwise, full, or names of regions",
            )
        case names:
            barriers = eliminate_reshapes(program, kept).barriers
            members = {name: find_members(program, schedule, name, barriers) for name in names}
            return named_regions(program, members, kept)


def grows(program: Program, schedule: Schedule) -> bool:
    """Return whether neither the user nor the program's text says which regions there are, so that they may be divided."""
    return schedule.grows_regions and not (schedule.fuse_regions == ("layerwise",) and has_regions(program))


def region_results(program: Program, regions: tuple[Region, ...]) -> dict[str, tuple[str, ...]]:
    """Return, by region name, the results that it must write, because another region or the user reads them."""
    home = {einsum: region.name for region in regions for einsum in region.einsums}
    wanted = set(program.outputs)
    for einsum in program.einsums:
        wanted |= {name for name in einsum.operands if name not in home or home[name] != home.get(einsum.name)}
    return {region.name: tuple(name for name in region.einsums if name in wanted) for region in regions}
