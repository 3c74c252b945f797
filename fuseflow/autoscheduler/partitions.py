"""The cheapest partitions of a row of units: a dynamic program over cuts, since cycles of regions add up."""

from __future__ import annotations

import math
from collections.abc import Callable
from heapq import nsmallest

from fuseflow.autoscheduler.units import UnitPartition, UnitRange


def cheapest_partitions(count: int, cost: Callable[[UnitRange], float], keep: int) -> tuple[tuple[float, UnitPartition], ...]:
    """The `keep` partitions of `count` units with the least sum of `cost`, best first; of equal ones those of fewer regions.

    A prefix of one of the best is one of the best, so that `keep` of each suffice. An infinite cost is that of a range that cannot be a
    region.

    >>> cheapest(3, lambda part: {1: 2.0, 2: 3.0, 3: 9.0}[part[1] - part[0]], 2)
    ((5.0, ((0, 1), (1, 3))), (5.0, ((0, 2), (2, 3))))
    """
    best: list[list[tuple[float, UnitPartition]]] = [[(0.0, ())]]
    for end in range(1, count + 1):
        costs = [(start, cost((start, end))) for start in range(end)]
        found = (
            (before + more, (*parts, (start, end))) for start, more in costs if more < math.inf for before, parts in best[start]
        )
        best.append(nsmallest(keep, found, key=lambda one: (one[0], len(one[1]), one[1])))
    return tuple(best[count])
