"""The indices that every level of every stream runs over, given those of the scans and ranges that make the levels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import zip_longest
from typing import TypeAlias

from fuseflow.samml.nodes import Graph, Port

Levels: TypeAlias = tuple[frozenset[str], ...]
"""The indices of each level of a stream, outermost first. They are several where loops share a scan, and none where a level is made of two
levels or of a part of one."""

Loops: TypeAlias = Mapping[str, frozenset[str]]
"""The indices of the level that each scan and range makes, by node name."""

NO_INDICES: frozenset[str] = frozenset()


def stream_levels(graph: Graph, loops: Loops) -> dict[Port, Levels]:
    """Return the levels of every stream."""
    nests: dict[Port, Levels] = {}
    types = graph.types()
    for node in graph.nodes:
        depth = types[node.inputs[0]].depth if node.inputs else 0
        below = node.nested(common_levels(nests[p] for p in node.inputs), depth, loops.get(node.name, NO_INDICES), NO_INDICES)
        for k in range(len(node.port_names())):
            port = Port(node.name, k)
            nests[port] = below[: types[port].depth]
    return nests


def common_levels(streams: Iterable[Levels]) -> Levels:
    """Return the levels of streams that are nested in each other. Each level has the indices on which all streams with it agree."""
    shared = []
    for level in zip_longest(*streams):
        first, *others = (indices for indices in level if indices is not None)
        shared.append(first.intersection(*others))
    return tuple(shared)
