"""Which index every level of every stream runs over, given those of the scans and ranges that make the levels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import zip_longest
from typing import TypeAlias

from fuseflow.samml.nodes import Accumulate, Flatten, Graph, Node, Permute, Port, Range, Reduce, Scan, SplitLevel

Levels: TypeAlias = tuple[frozenset[str], ...]
"""Of a stream, outermost level first: the indices that run there. They are several where loops share a scan, none where a level is made of
two or of a part."""

Loops: TypeAlias = Mapping[str, frozenset[str]]
"""The indices of the level that each scan and range makes, by node name."""

NONE: frozenset[str] = frozenset()


def levels(graph: Graph, loops: Loops) -> dict[Port, Levels]:
    """The levels of every stream."""
    found: dict[Port, Levels] = {}
    types = graph.types()
    for node in graph.nodes:
        below = _made(node, common(found[p] for p in node.inputs), [types[p].depth for p in node.inputs], loops)
        for k in range(len(node.port_names())):
            port = Port(node.name, k)
            found[port] = below[: types[port].depth]
    return found


def common(streams: Iterable[Levels]) -> Levels:
    """The levels of streams that are nested in each other: at each of them the indices on which all agree that have it."""
    shared = []
    for level in zip_longest(*streams):
        first, *others = (indices for indices in level if indices is not None)
        shared.append(first.intersection(*others))
    return tuple(shared)


def _made(node: Node, around: Levels, depths: list[int], loops: Loops) -> Levels:
    """The levels of the deepest output; the others are those above them."""
    match node:
        case Scan() | Range():
            return (*around, loops.get(node.name, NONE))
        case Reduce():
            return around[:-1]
        case Accumulate():
            return (*around[: depths[0] - 1], *around[depths[0] :])
        case Permute():
            outer, inner = around[: depths[0] - 1], around[depths[0] - 1 :]
            return (*outer, *(inner[level] for level in node.order))
        case Flatten():
            return (*around[:-2], NONE)
        case SplitLevel():
            return (*around[:-1], NONE, NONE)
        case _:
            return around
