"""Lanes: the loops of a region that the schedule deals over several copies of the nodes inside them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from fuseflow.errors import ScheduleError, did_you_mean
from fuseflow.fusion import FusedRegion
from fuseflow.fusion.fuse import to_region_names
from fuseflow.samml.nodes import Graph
from fuseflow.schedule import Schedule
from fuseflow.table import FusionTable
from fuseflow.transform import LaneGraph, parallelize

LaneAssignment: TypeAlias = Mapping[str, tuple[tuple[str, int], ...]]
"""The lanes that each node is in, by node, outermost first, as index and number."""


def with_lanes(graph: Graph, table: FusionTable, fused: FusedRegion, schedule: Schedule) -> LaneGraph:
    """Return the graph of a region with the lanes that the schedule asks for."""
    try:
        return parallelize(graph, table.loops, scheduled_lanes(schedule, fused))
    except ScheduleError as error:
        error.span = error.span or schedule.place("par", schedule.parallel[0][0])
        raise


def scheduled_lanes(schedule: Schedule, fused: FusedRegion) -> dict[str, int]:
    """Return the number of lanes of each index of a region, outermost first: those of `REGION.INDEX`, else those of `INDEX`."""
    keys = _keys(fused)
    lanes: dict[str, int] = {}
    for index in fused.order:
        count = next((n for key in keys[index] for name, n in schedule.parallel if name == key), None)
        if count is not None:
            lanes[index] = count
    return lanes


def without_lanes(node: str, place: Iterable[tuple[str, int]]) -> str:
    """Return the name that a node in these lanes has in the graph without lanes."""
    for index, lane in place:
        node = node.replace(f"/{index}{lane}", "", 1)
    return node


def refuse_unknown_lanes(schedule: Schedule, regions: Iterable[FusedRegion]) -> None:
    """Raise `ScheduleError` for lanes of an index that no region has."""
    names = {key: None for region in regions for keys in _keys(region).values() for key in keys}
    for name, count in schedule.parallel:
        if name not in names:
            where, dot, index = name.rpartition(".")
            message = f"no region `{where}` has an index `{index}`" if dot else "no region has this index"
            raise ScheduleError(
                f"{count} lanes of `{name}`: {message}", hint=_nearest(name, names), span=schedule.place("par", name)
            )


def _nearest(name: str, names: Iterable[str]) -> str:
    """Return a hint with the nearest name. A name with a region is compared with names of that form, and a bare name with bare ones."""
    dotted = "." in name
    return did_you_mean(name, [key for key in names if ("." in key) == dotted])


def _keys(fused: FusedRegion) -> dict[str, tuple[str, ...]]:
    """Return, by index, the names that a schedule may use for it, those first that win: with the name of its region, or of the Einsum that
    is alone there (which may use names of its own), and bare.
    """
    names = {index: [f"{fused.name}.{index}"] for index in fused.order}
    if len(fused.einsums) == 1:
        (einsum,) = fused.einsums
        for name in dict.fromkeys((*fused.local_names.get(einsum, {}), *fused.order)):
            (index,) = to_region_names((name,), fused.local_names.get(einsum, {}), fused.indices)
            if index in names:
                names[index].append(f"{einsum}.{name}")
    return {index: (*dict.fromkeys(keys), index) for index, keys in names.items()}
