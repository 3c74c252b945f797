"""The depths of FIFOs that a schedule states: of all FIFOs of a region (`layer1`), or of one of them (`layer1/mul.1`)."""

from __future__ import annotations

from collections.abc import Mapping

from fuseflow.errors import ScheduleError, did_you_mean
from fuseflow.lower.lanes import LaneAssignment, without_lanes
from fuseflow.samml.nodes import Edge, Graph
from fuseflow.schedule import Schedule
from fuseflow.schedule.section import split_fifo


def with_depths(graph: Graph, region: str, places: LaneAssignment, schedule: Schedule) -> Graph:
    """Return the graph of a region with the depths that the schedule states. A depth of one FIFO takes precedence over that of
    all FIFOs. `places` are the lanes of the nodes."""
    stated = {name: depth for name, depth in schedule.depths if split_fifo(name)[0] == region}
    if not stated:
        return graph
    names = fifo_names(graph, places)
    depths: dict[Edge, int] = {}
    if region in stated:
        depths = {edge: stated[region] for edges in names.values() for edge in edges}
    for name, depth in stated.items():
        depths |= dict.fromkeys(names.get(split_fifo(name)[1], ()), depth)
    return graph.with_depths(depths)


def fifo_names(graph: Graph, places: LaneAssignment) -> Mapping[str, tuple[Edge, ...]]:
    """Return the FIFOs of a graph by name: the name of the node that reads, and the number of its input, as in `mul.1`. All
    copies of a FIFO in lanes also have the name that it has without lanes. `places` are the lanes of the nodes."""
    names: dict[str, list[Edge]] = {}
    for node in graph.nodes:
        for k in range(len(node.inputs)):
            for name in dict.fromkeys((node.name, without_lanes(node.name, places.get(node.name, ())))):
                names.setdefault(f"{name}.{k}", []).append(Edge(node.name, k))
    return {name: tuple(edges) for name, edges in names.items()}


def refuse_unknown_depths(schedule: Schedule, regions: Mapping[str, tuple[Graph, LaneAssignment]]) -> None:
    """Raise `ScheduleError` for the depth of a FIFO or of a region that is not there, which would be silently ignored. `regions` are the
    graphs of all regions by name, each with the lanes that its nodes are in.
    """
    for name, depth in schedule.depths:
        region, fifo = split_fifo(name)
        if region not in regions:
            message, hint = f"no region `{region}`", did_you_mean(region, regions)
        elif fifo and fifo not in (names := fifo_names(*regions[region])):
            message, hint = f"region `{region}` has no FIFO `{fifo}`", did_you_mean(fifo, names)
        else:
            continue
        raise ScheduleError(f"depth {depth} of `{name}`: {message}", hint=hint, span=schedule.place("depth", name))
