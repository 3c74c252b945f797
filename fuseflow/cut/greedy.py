"""A good partition of a sequence of units from few costs: each region grows while that pays."""

from __future__ import annotations

from collections.abc import Callable

from fuseflow.cut.units import UnitPartition, UnitRange


def grown_partition(count: int, cost: Callable[[UnitRange], float]) -> tuple[float, UnitPartition]:
    """Return a partition of `count` units with the sum of its costs. From the first unit on, a range takes the next unit in, as long as the
    longer range costs no more than the range and that unit apart. So at most two costs are asked for each unit.

    >>> grown_partition(3, lambda part: {1: 2.0, 2: 3.0, 3: 9.0}[part[1] - part[0]])
    (5.0, ((0, 2), (2, 3)))
    """
    parts, costs = list[UnitRange](), list[float]()
    for unit in range(count):
        alone = cost((unit, unit + 1))
        if parts and (together := cost((parts[-1][0], unit + 1))) <= costs[-1] + alone:
            parts[-1], costs[-1] = (parts[-1][0], unit + 1), together
        else:
            parts.append((unit, unit + 1))
            costs.append(alone)
    return sum(costs), tuple(parts)
