"""Chooses the index of a region that is sampled, so that only some of its coordinates are run: the outermost index that is long
enough, and along which no coordinate depends on another. So it is free in every result, and no `keep` compares its coordinates.

attention, order b,h,i,j,d    one sequence, 12 heads, 1,024 rows i    sampled: i, in each of the 12 heads
"""

from __future__ import annotations

import math

from fuseflow.fusion.region import FusedRegion
from fuseflow.fusion.tree import reductions, selections

FEWEST_COORDINATES = 67
"""The fewest coordinates of a sampled index: five replicates of four coordinates are at most 30 % of them."""
MOST_STARTS = 1024
"""How often the loops around a sampled index may start it again. Each start fills and drains its pipeline, whatever the sample
is."""
SHORT_STARTS = 64
"""How many starts a replicate of the shortest length may have. With more of them, replicates are longer in proportion."""


def sampled_index(fused: FusedRegion) -> str:
    """Return the index whose coordinates are sampled. It is the outermost index of the order if no index is long enough."""
    joined = {index for node in reductions(*fused.trees) for index in node.over}
    joined |= {index for node in selections(*fused.trees) for index in node.over}
    starts = 1
    for index in fused.order:
        coordinates = index_coordinates(fused, index)
        free = index not in joined and all(index in result.indices for result in fused.results)
        if free and coordinates >= FEWEST_COORDINATES:
            return index
        starts *= coordinates
        if starts > MOST_STARTS:
            break
    return fused.order[0]


def replicate_lengthening(fused: FusedRegion) -> int:
    """Return the factor by which replicates must be longer than asked for, so that starts are no more frequent than in other
    regions."""
    around = fused.order[: fused.order.index(sampled_index(fused))]
    return -(-math.prod(index_coordinates(fused, index) for index in around) // SHORT_STARTS)


def index_coordinates(fused: FusedRegion, index: str) -> int:
    """Return how many coordinates an index has, or how many blocks of coordinates if it runs over blocks."""
    return -(-fused.sizes[index] // fused.blocks.get(index, 1))
