"""The decomposition of a partial order: into parts in series, into parallel parts, and into prime parts, which are neither.

A linear extension of a series of parts is one of each part, one after the other; for parallel parts these are interleaved in any
way. Constraints of models are mostly of these kinds: chains that share a result's index. The prime parts, which are enumerated,
are small.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import networkx as nx


@dataclass(frozen=True, slots=True)
class PrimeOrder:
    """A part of one index, or of several that divide in neither way. Its indices are numbers: `predecessors[v]` has a bit for
    each index that must precede v."""

    names: tuple[str, ...]
    predecessors: tuple[int, ...]

    @property
    def size(self) -> int:
        """The number of indices."""
        return len(self.names)

    @property
    def whole(self) -> int:
        """The set of all indices, as bits."""
        return (1 << self.size) - 1


@dataclass(frozen=True, slots=True)
class SeriesOrder:
    """Parts in series: every index of a part precedes all of the next part."""

    parts: tuple[PartialOrder, ...]
    size: int


@dataclass(frozen=True, slots=True)
class ParallelOrder:
    """Parallel parts: no index of a part has to precede one of another."""

    parts: tuple[PartialOrder, ...]
    size: int


PartialOrder: TypeAlias = PrimeOrder | SeriesOrder | ParallelOrder


def decompose(graph: nx.DiGraph[str]) -> PartialOrder:
    """Return the decomposition of the partial order of an acyclic graph; an empty graph is a series of no parts.

    >>> order = decompose(nx.DiGraph([("n", "a"), ("a", "c"), ("n", "b"), ("b", "c")]))
    >>> [part.size for part in order.parts], order.parts[1].__class__.__name__
    ([1, 2, 1], 'ParallelOrder')
    """
    position = {v: p for p, v in enumerate(graph)}
    names = tuple(nx.lexicographical_topological_sort(graph, key=lambda v: position[v]))
    number = {v: p for p, v in enumerate(names)}
    predecessors = [0] * len(names)
    for v, name in enumerate(names):
        for u in map(number.__getitem__, graph.predecessors(name)):
            predecessors[v] |= predecessors[u] | 1 << u
    related = list(predecessors)
    for v, mask in enumerate(predecessors):
        for u in set_bits(mask):
            related[u] |= 1 << v

    def shape(members: int) -> PartialOrder:
        size = members.bit_count()
        if size > 1 and len(parts := _connected(members, lambda v: related[v])) > 1:
            return ParallelOrder(tuple(map(shape, parts)), size)
        if size > 1 and len(parts := _connected(members, lambda v: ~related[v])) > 1:
            return SeriesOrder(tuple(map(shape, parts)), size)
        numbers = tuple(set_bits(members))
        bit = {v: 1 << k for k, v in enumerate(numbers)}
        return PrimeOrder(
            tuple(names[v] for v in numbers), tuple(sum(bit[u] for u in set_bits(predecessors[v] & members)) for v in numbers)
        )

    return shape((1 << len(names)) - 1) if names else SeriesOrder((), 0)


def _connected(members: int, joined: Callable[[int], int]) -> list[int]:
    """Return the connected parts of some members (bits), by their first members. `joined` returns the members that a member is
    joined with.

    Members are numbered as some linear extension, so that parts in series are in their order.
    """
    parts: list[int] = []
    remaining = members
    while remaining:
        part = frontier = remaining & -remaining
        while frontier:
            reached = 0
            for v in set_bits(frontier):
                reached |= joined(v)
            frontier = reached & remaining & ~part
            part |= frontier
        parts.append(part)
        remaining &= ~part
    return parts


def set_bits(mask: int) -> Iterator[int]:
    """Yield the numbers of the bits that are set, ascending."""
    while mask:
        yield (mask & -mask).bit_length() - 1
        mask &= mask - 1
