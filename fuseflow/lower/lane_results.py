"""Notices of results that are written once although the schedule asks for a writer in each lane, and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from fuseflow.samml.lane_writers import LaneWriter
from fuseflow.samml.nodes import Graph, WriteValues
from fuseflow.schedule import Schedule


class DealtRegion(Protocol):
    """A region with its graph, and in `places` the lanes of those of its nodes that are in lanes."""

    @property
    def graph(self) -> Graph: ...
    @property
    def places(self) -> Mapping[str, object]: ...


def writer_notices(schedule: Schedule, regions: Iterable[DealtRegion]) -> tuple[str, ...]:
    """Return sentences about `writers: lanes` where it has no effect: on a program without lanes, and on a result that cannot be written
    so."""
    if schedule.writers != "lanes":
        return ()
    graphs = [region.graph for region in regions if region.places]
    if not graphs:
        return ("writers in lanes have no effect: no loop is dealt over lanes (`--par i=4`)",)
    return tuple(
        f"`{node.tensor}` is written once, not in lanes: {_why(graph, node)}"
        for graph in graphs
        for node in graph.nodes
        if isinstance(node, WriteValues) and not isinstance(node, LaneWriter)
    )


def _why(graph: Graph, node: WriteValues) -> str:
    """Return why each lane cannot write its part of a result."""
    tensor = graph.declared[node.tensor]
    if any(level.text != "dense" for level in tensor.format.levels):
        return (
            f"it is stored {tensor.format.short()}, and only where all coordinates are stored a lane knows the place of its own"
        )
    return "no lane has whole rows of it, since the lanes are of a loop that is summed over, or of stored coordinates"
