"""The loads of the lanes of a region, from the numbers that a simulator measured for each node."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fuseflow.lower.lanes import LaneAssignment
    from fuseflow.sim.outcome.statistics import NodeStatistics


@dataclass(frozen=True, slots=True)
class LaneLoad:
    """The load of one lane: how many nodes it has, how often they fired in all, and the cycles that the busiest of them takes at least."""

    lane: int
    nodes: int
    firings: int
    busy: int


def lane_loads(places: LaneAssignment, nodes: Iterable[NodeStatistics]) -> dict[str, tuple[LaneLoad, ...]]:
    """Return the load of every lane, by index. `places` has the lanes of each node. If lanes are inside the lanes of another
    index, those with the same number are added up."""
    loads: dict[tuple[str, int], LaneLoad] = {}
    for node in nodes:
        for index, lane in places.get(node.name, ()):
            before = loads.get((index, lane), LaneLoad(lane, 0, 0, 0))
            loads[index, lane] = LaneLoad(lane, before.nodes + 1, before.firings + node.firings, max(before.busy, node.occupied))
    indices = dict.fromkeys(index for index, _ in loads)
    return {index: tuple(sorted((load for (i, _), load in loads.items() if i == index), key=_lane)) for index in indices}


def _lane(load: LaneLoad) -> int:
    return load.lane


def imbalance(loads: Iterable[LaneLoad]) -> float:
    """Return the firings of the lane that fires most, divided by the mean of all lanes. It is 1 if all lanes fire equally
    often."""
    firings = [load.firings for load in loads]
    return max(firings) * len(firings) / sum(firings) if sum(firings) else 1.0
