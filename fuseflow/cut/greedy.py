"""A good partition of a sequence of units from few costs: each region grows as long as that saves cycles."""

from __future__ import annotations

from collections.abc import Callable

from fuseflow.cut.units import UnitPartition, UnitRange


def greedy_partition(count: int, cost: Callable[[UnitRange], float]) -> tuple[float, UnitPartition]:
    """Return a partition of `count` units and the sum of its costs. From the first unit on, a range takes in the next units, as
    long as the longer range costs no more than the range and those units apart. It takes in one unit, then two, four and so on;
    where that does not pay, half as many, down to one. So a range of n units asks for about 2 log2(n) costs of ranges.

    >>> greedy_partition(3, lambda part: {1: 2.0, 2: 3.0, 3: 9.0}[part[1] - part[0]])
    (5.0, ((0, 2), (2, 3)))
    """
    total, parts, start = 0.0, list[UnitRange](), 0
    while start < count:
        end, step, spent, growing = start + 1, 1, cost((start, start + 1)), True
        while step and end < count:
            longer = min(end + step, count)
            apart = spent + sum(cost((unit, unit + 1)) for unit in range(end, longer))
            together = cost((start, longer))
            if together <= apart:
                end, spent = longer, together
            else:
                growing = False
            step = step * 2 if growing else step // 2
        total, start = total + spent, end
        parts.append((parts[-1][1] if parts else 0, end))
    return total, tuple(parts)
