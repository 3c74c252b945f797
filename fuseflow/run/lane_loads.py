"""How evenly the lanes of a region worked, from what a simulator measured of each node."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from fuseflow.lower.lanes import LaneAssignment
from fuseflow.sim.outcome.statistics import NodeStatistics


@dataclass(frozen=True, slots=True)
class LaneLoad:
    """What the nodes of one lane did: all their firings, and the cycles that the busiest of them takes at least."""

    lane: int
    nodes: int
    firings: int
    busy: int


def lane_loads(places: LaneAssignment, nodes: Iterable[NodeStatistics]) -> dict[str, tuple[LaneLoad, ...]]:
    """The load of every lane, by index. A lane inside lanes of another index stands for all that have its number."""
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
    """How much more the lane that fires most does than the mean: 1 where all do the same."""
    firings = [load.firings for load in loads]
    return max(firings) * len(firings) / sum(firings) if sum(firings) else 1.0
