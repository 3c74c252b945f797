"""Which loops of a region the schedule deals over lanes, and how evenly the lanes worked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from fuseflow.errors import ScheduleError, did_you_mean
from fuseflow.fusion import FusedRegion
from fuseflow.fusion.fuse import own_names
from fuseflow.samml.nodes import Graph
from fuseflow.schedule import Schedule
from fuseflow.sim.statistics import NodeStatistics
from fuseflow.table import FusionTable
from fuseflow.transform import Parallel, parallelize

Places = Mapping[str, tuple[tuple[str, int], ...]]
"""By node, the lanes that it is in, outermost first, as index and number."""


def with_lanes(graph: Graph, table: FusionTable, fused: FusedRegion, schedule: Schedule) -> Parallel:
    """The graph of a region with the lanes that the schedule asks for."""
    asked = lanes(schedule, fused)
    try:
        return parallelize(graph, table.loops, asked)
    except ScheduleError as error:
        error.span = error.span or schedule.place("par", schedule.parallel[0][0])
        raise


def lanes(schedule: Schedule, fused: FusedRegion) -> dict[str, int]:
    """The lanes of each index of a region, outermost first: those of `REGION.INDEX`, else those of `INDEX`."""
    keys = _keys(fused)
    found: dict[str, int] = {}
    for index in fused.order:
        count = next((n for key in keys[index] for name, n in schedule.parallel if name == key), None)
        if count is not None:
            found[index] = count
    return found


def refuse_missing(schedule: Schedule, regions: Iterable[FusedRegion]) -> None:
    """Raise `ScheduleError` for lanes of an index that no region has."""
    known = {key: None for region in regions for keys in _keys(region).values() for key in keys}
    for name, count in schedule.parallel:
        if name not in known:
            where, dot, index = name.rpartition(".")
            message = f"no region `{where}` has an index `{index}`" if dot else "no region has this index"
            raise ScheduleError(
                f"{count} lanes of `{name}`: {message}", hint=_nearest(name, known), span=schedule.place("par", name)
            )


def _nearest(name: str, known: Iterable[str]) -> str:
    """A name with a region is near to names with one, else to bare ones."""
    dotted = "." in name
    return did_you_mean(name, [key for key in known if ("." in key) == dotted])


def _keys(fused: FusedRegion) -> dict[str, tuple[str, ...]]:
    """By index, what a schedule may call it, first what wins: with the name of its region, or of the Einsum that is alone there (which may
    use names of its own), and bare."""
    found = {index: [f"{fused.name}.{index}"] for index in fused.order}
    if len(fused.einsums) == 1:
        (einsum,) = fused.einsums
        for name in dict.fromkeys((*fused.local.get(einsum, {}), *fused.order)):
            (index,) = own_names((name,), fused.local.get(einsum, {}), fused.indices)
            if index in found:
                found[index].append(f"{einsum}.{name}")
    return {index: (*dict.fromkeys(keys), index) for index, keys in found.items()}


@dataclass(frozen=True, slots=True)
class LaneLoad:
    """What the nodes of one lane did: all their firings, and the cycles that the busiest of them takes at least."""

    lane: int
    nodes: int
    firings: int
    busy: int


def loads(places: Places, nodes: Iterable[NodeStatistics]) -> dict[str, tuple[LaneLoad, ...]]:
    """The load of every lane, by index. A lane inside lanes of another index stands for all that have its number."""
    found: dict[tuple[str, int], LaneLoad] = {}
    for node in nodes:
        for index, lane in places.get(node.name, ()):
            before = found.get((index, lane), LaneLoad(lane, 0, 0, 0))
            found[index, lane] = LaneLoad(lane, before.nodes + 1, before.firings + node.firings, max(before.busy, node.occupied))
    indices = dict.fromkeys(index for index, _ in found)
    return {index: tuple(sorted((load for (i, _), load in found.items() if i == index), key=_lane)) for index in indices}


def _lane(load: LaneLoad) -> int:
    return load.lane


def imbalance(loads: Iterable[LaneLoad]) -> float:
    """How much more the lane that fires most does than the mean: 1 where all do the same."""
    firings = [load.firings for load in loads]
    return max(firings) * len(firings) / sum(firings) if sum(firings) else 1.0
