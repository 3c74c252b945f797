"""Divides regions that the user did not name and that repeat too much of their work.

Fusion computes values again that it does not store. A convolution over windows of nine, fused with earlier convolutions, computes
each of their results up to nine times, so that a network of them fused as one region would run for years. A region that the user
names stays. Regions that `layerwise` and `full` form are divided in the middle, as long as one is expected to take more cycles
than `MOST_REPEATS` times the loops of its Einsums, all dense and one after the other. Fused sparse models take far fewer cycles.
Regions that cannot be lowered are divided so, too: a region without a loop order, or with an Einsum that it would compute too
many times.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from fuseflow.lower.partition import PartitionedProgram
from fuseflow.lower.program import user_orders
from fuseflow.lower.regions import CompiledRegion
from fuseflow.schedule import Region
from fuseflow.schedule.region_size import RegionDivider

MOST_REPEATS = 100
"""The most cycles of a region, as a multiple of the work of its Einsums. The models of the paper need at most 63, and most less
than one."""


def divided_regions(partitioned: PartitionedProgram, lowered: Sequence[CompiledRegion]) -> tuple[Region, ...]:
    """Return the regions, with each region that repeats too much divided in halves. `lowered` are these regions as they were
    lowered. It is the same tuple if none does. A region stays whole if the user ordered its loops."""
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
