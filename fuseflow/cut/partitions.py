"""The cheapest partitions of a sequence of units, by dynamic programming over cuts, because the cycles of regions add up."""

from __future__ import annotations

import math
from collections.abc import Callable
from heapq import nsmallest

from fuseflow.cut.units import UnitPartition, UnitRange


def cheapest_partitions(count: int, cost: Callable[[UnitRange], float], keep: int) -> tuple[tuple[float, UnitPartition], ...]:
    """Return the `keep` partitions of `count` units with the least sum of `cost`, best first, equal ones by fewer regions.

    Each prefix of one of the best partitions is one of the best of its length, so `keep` of each length suffice. A range that cannot be
    a region has an infinite cost.

    >>> cheapest_partitions(3, lambda part: {1: 2.0, 2: 3.0, 3: 9.0}[part[1] - part[0]], 2)
    ((5.0, ((0, 1), (1, 3))), (5.0, ((0, 2), (2, 3))))
    """
    best: list[list[tuple[float, UnitPartition]]] = [[(0.0, ())]]
    for end in range(1, count + 1):
        costs = [(start, cost((start, end))) for start in range(end)]
        candidates = (
            (before + range_cost, (*parts, (start, end)))
            for start, range_cost in costs
            if range_cost < math.inf
            for before, parts in best[start]
        )
        best.append(nsmallest(keep, candidates, key=lambda one: (one[0], len(one[1]), one[1])))
    return tuple(best[count])
