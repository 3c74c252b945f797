"""A partial order taken apart: into parts one after the other, parts side by side, and what is neither.

The linear extensions of a series of parts are those of the parts, one after the other; those of parallel parts are theirs, interleaved
in any way. Constraints of models are mostly such: chains that share a result's index. What is left to enumeration is small.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import networkx as nx


@dataclass(frozen=True, slots=True)
class PrimeOrder:
    """One index, or several that come apart in neither way. They are numbered: `before[v]` has a bit for each that must precede v."""

    names: tuple[str, ...]
    predecessors: tuple[int, ...]

    @property
    def size(self) -> int:
        return len(self.names)

    @property
    def whole(self) -> int:
        """All indices, as bits."""
        return (1 << self.size) - 1


@dataclass(frozen=True, slots=True)
class SeriesOrder:
    """Every index of a part precedes all of the next part."""

    parts: tuple[PartialOrder, ...]
    size: int


@dataclass(frozen=True, slots=True)
class ParallelOrder:
    """No index of a part has to precede one of another."""

    parts: tuple[PartialOrder, ...]
    size: int


PartialOrder: TypeAlias = PrimeOrder | SeriesOrder | ParallelOrder


def decompose(graph: nx.DiGraph[str]) -> PartialOrder:
    """The shape of the partial order of an acyclic graph; an empty graph is a series of nothing.

    >>> shape = decompose(nx.DiGraph([("n", "a"), ("a", "c"), ("n", "b"), ("b", "c")]))
    >>> [part.size for part in shape.parts], shape.parts[1].__class__.__name__
    ([1, 2, 1], 'Parallel')
    """
    place = {v: p for p, v in enumerate(graph)}
    names = tuple(nx.lexicographical_topological_sort(graph, key=lambda v: place[v]))
    number = {v: p for p, v in enumerate(names)}
    before = [0] * len(names)
    for v, name in enumerate(names):
        for u in map(number.__getitem__, graph.predecessors(name)):
            before[v] |= before[u] | 1 << u
    related = list(before)
    for v, mask in enumerate(before):
        for u in set_bits(mask):
            related[u] |= 1 << v

    def shape(members: int) -> PartialOrder:
        size = members.bit_count()
        if size > 1 and len(parts := _connected(members, lambda v: related[v])) > 1:
            return ParallelOrder(tuple(map(shape, parts)), size)
        if size > 1 and len(parts := _connected(members, lambda v: ~related[v])) > 1:
            return SeriesOrder(tuple(map(shape, parts)), size)
        inside = tuple(set_bits(members))
        bit = {v: 1 << k for k, v in enumerate(inside)}
        return PrimeOrder(
            tuple(names[v] for v in inside), tuple(sum(bit[u] for u in set_bits(before[v] & members)) for v in inside)
        )

    return shape((1 << len(names)) - 1) if names else SeriesOrder((), 0)


def _connected(members: int, joined: Callable[[int], int]) -> list[int]:
    """The connected parts of the members (bits), by their first member: `joined` gives those that one is joined with.

    Members are numbered as some linear extension, so that parts in series stand in their order.
    """
    parts: list[int] = []
    left = members
    while left:
        part = new = left & -left
        while new:
            found = 0
            for v in set_bits(new):
                found |= joined(v)
            new = found & left & ~part
            part |= new
        parts.append(part)
        left &= ~part
    return parts


def set_bits(mask: int) -> Iterator[int]:
    """The numbers of the bits that are set, ascending."""
    while mask:
        yield (mask & -mask).bit_length() - 1
        mask &= mask - 1
