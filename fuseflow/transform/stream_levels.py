"""The indices of every level of every stream, given the indices of the scans and ranges that make the levels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import zip_longest
from typing import TypeAlias

from fuseflow.samml.nodes import Graph, Port, Primitive

Levels: TypeAlias = tuple[frozenset[str], ...]
"""The indices of each level of a stream, outermost first. A level has several if loops share a scan, and none if it is made of
two levels or of a part of one."""

Loops: TypeAlias = Mapping[str, frozenset[str]]
"""The indices of the level that each scan and range makes, by node name."""

NO_INDICES: frozenset[str] = frozenset()


def stream_levels(graph: Graph, loops: Loops) -> dict[Port, Levels]:
    """Return the indices of each level of every stream."""
    nests: dict[Port, Levels] = {}
    types = graph.types()
    for node in graph.nodes:
        depth = types[node.inputs[0]].depth if node.inputs else 0
        below = node.nested(common_levels(nests[p] for p in node.inputs), depth, loops.get(node.name, NO_INDICES), NO_INDICES)
        nests |= {port: below[: types[port].depth] for port in node.ports}
    return nests


def common_levels(streams: Iterable[Levels]) -> Levels:
    """Return the levels of streams that are nested in each other. Each level has the indices that all streams with this level share."""
    shared, nested = [], tuple(streams)
    if len(nested) == 1:
        return nested[0]
    for level in zip_longest(*nested):
        first, *others = (indices for indices in level if indices is not None)
        shared.append(first.intersection(*others))
    return tuple(shared)


def node_levels(node: Primitive, levels: Mapping[Port, Levels]) -> Iterator[frozenset[str]]:
    """Yield the indices of every level of every stream that a node reads or makes."""
    for port in (*node.inputs, *node.ports):
        yield from levels[port]


def stage_loops(graph: Graph, loops: Loops, stages: Mapping[str, str]) -> dict[str, frozenset[str]]:
    """Return by stage, in the order of the graph, the indices of the loops that its nodes run in. `stages` has the stage of each node."""
    levels, inside = stream_levels(graph, loops), dict[str, frozenset[str]]()
    for node in graph.nodes:
        stage = stages.get(node.name)
        if stage is not None:
            inside[stage] = inside.get(stage, NO_INDICES).union(*node_levels(node, levels))
    return inside
