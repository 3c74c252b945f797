"""Linear extensions of a partial order, which are the legal loop orders of a region: how many there are, and random ones.

A partial order is decomposed into parts in series, into parallel parts, and into prime parts, which are neither. A linear extension
of a series of parts is one of each part, one after the other; for parallel parts these are interleaved in any way. Constraints of
models are mostly of these kinds: chains that share a result's index. The prime parts, which are enumerated, are small.

The extensions of a prime part are counted over its down-sets. A down-set holds, with every index, all that must come before it: it
is the set of indices of some prefix of a legal order. It can be filled in as many ways as the down-sets that lack one of its last
indices, taken together:

    ways({}) = 1,    ways(D) = sum of ways(D - v) over the v in D that nothing in D must follow

The number of legal orders is `ways` of the set of all indices. Counting is #P-complete (Brightwell and Winkler 1991), and a prime
part may have almost 2^n down-sets. So their number is bounded, and beyond that a proven lower bound is returned instead.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from fuseflow.directed_graphs import shortest_cycle, topological_order

Enclosing: TypeAlias = Mapping[str, Collection[str]]
"""A partial order of indices, as a graph: for each index, indices that must come after it."""
LoopOrder = tuple[str, ...]
"""A loop order: indices, outermost first."""
Fillings = tuple[dict[int, int], ...]
"""The number of ways to fill each down-set, one dictionary for each size of down-sets (`count_fillings`)."""
MAX_DOWN_SETS = 1_000_000
"""The most down-sets of one prime part that are visited; with more, its count is a lower bound. That many take some seconds."""


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


def decompose(graph: Enclosing) -> PartialOrder:
    """Return the decomposition of the partial order of an acyclic graph; an empty graph is a series of no parts.

    >>> order = decompose({"n": "ab", "a": "c", "b": "c", "c": ""})
    >>> [part.size for part in order.parts], order.parts[1].__class__.__name__
    ([1, 2, 1], 'ParallelOrder')
    """
    position = {v: p for p, v in enumerate(graph)}
    names = tuple(topological_order(graph, position.__getitem__))
    number = {v: p for p, v in enumerate(names)}
    predecessors = [0] * len(names)
    for u, name in enumerate(names):
        for v in map(number.__getitem__, graph[name]):
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
    """Return the connected parts of some members (bits), by their first members: parts in series are in their order, since members
    are numbered as some linear extension. `joined` returns the members that a member is joined with."""
    parts: list[int] = []
    while members:
        part = frontier = members & -members
        while frontier:
            reached = 0
            for v in set_bits(frontier):
                reached |= joined(v)
            frontier = reached & members & ~part
            part |= frontier
        parts.append(part)
        members &= ~part
    return parts


def set_bits(mask: int) -> Iterator[int]:
    """Yield the numbers of the bits that are set, ascending."""
    while mask:
        yield (mask & -mask).bit_length() - 1
        mask &= mask - 1


@dataclass(frozen=True, slots=True)
class ExtensionCount:
    """A number of orders, or a proven lower bound of it."""

    orders: int
    exact: bool = True

    def __str__(self) -> str:
        return f"{self.orders:,}" if self.exact else f"at least {self.orders:,}"


def count_extensions(graph: Enclosing, limit: int = MAX_DOWN_SETS) -> ExtensionCount:
    """Return the number of linear extensions: 0 if the graph has a cycle, a lower bound if a prime part has over `limit` down-sets.

    >>> fence = {"a": "b", "c": "bd", "b": "", "d": ""}
    >>> print(count_extensions(fence), "or", count_extensions(fence, limit=3))
    5 or at least 4
    """
    return ExtensionCount(0) if shortest_cycle(graph) else _count(decompose(graph), limit)


def _count(partial_order: PartialOrder, limit: int) -> ExtensionCount:
    if isinstance(partial_order, PrimeOrder):
        ways = [level.get(partial_order.whole) for level in count_fillings(partial_order, limit)]
        exact = ways[-1] if ways else None
        return ExtensionCount(lower_bound(partial_order), exact=False) if exact is None else ExtensionCount(exact)
    parts = [_count(part, limit) for part in partial_order.parts]
    orders = math.prod(part.orders for part in parts)
    if isinstance(partial_order, ParallelOrder):  # whose parts are interleaved in any way
        orders *= math.factorial(partial_order.size) // math.prod(math.factorial(part.size) for part in partial_order.parts)
    return ExtensionCount(orders, all(part.exact for part in parts))


def count_fillings(part: PrimeOrder, limit: int = MAX_DOWN_SETS) -> Iterator[dict[int, int]]:
    """Yield, for 0, 1, 2, ... indices, the number of ways to fill each down-set of that size (bits of indices). The iteration
    ends early once there are more than `limit` down-sets."""
    level, visited = {0: 1}, 1
    while level and visited <= limit:
        yield level
        larger: dict[int, int] = {}
        for v, predecessors in enumerate(part.predecessors):
            last = 1 << v
            for down_set, ways in level.items():
                if down_set & (predecessors | last) == predecessors:
                    larger[down_set | last] = larger.get(down_set | last, 0) + ways
        level = larger
        visited += len(level)


def lower_bound(part: PrimeOrder) -> int:
    """Return a lower bound of the linear extensions of n indices: n! over the product of the sizes of all up-sets, or of all down-sets.

    In a random order, v is the first of its up-set (v and what must follow it) with probability one over the size of that set. All v are so
    at once with at least the product of these probabilities (Hammett and Pittel, How often are two permutations comparable?, Trans. AMS
    360, 2008). The same holds upside down.
    """
    down = math.prod(predecessors.bit_count() + 1 for predecessors in part.predecessors)
    up = math.prod(1 + sum(predecessors >> v & 1 for predecessors in part.predecessors) for v in range(part.size))
    return -(-math.factorial(part.size) // min(down, up))


def order_sampler(graph: Enclosing, limit: int) -> Callable[[random.Random], LoopOrder] | None:
    """Return a function that draws a random linear extension of an acyclic graph. None if a prime part has more than `limit`
    down-sets."""
    partial_order = decompose(graph)
    counted = {part: tuple(count_fillings(part, limit)) for part in _primes(partial_order)}
    if any(len(ways) <= part.size for part, ways in counted.items()):
        return None
    return lambda rng: tuple(_drawn(partial_order, counted, rng))


def _drawn(partial_order: PartialOrder, counted: Mapping[PrimeOrder, Fillings], rng: random.Random) -> list[str]:
    """Draw an order of each part. The orders of parallel parts are interleaved at random."""
    if isinstance(partial_order, PrimeOrder):
        return _draw_prime(partial_order, counted[partial_order], rng)
    orders = [_drawn(part, counted, rng) for part in partial_order.parts]
    turns = [k for k, order in enumerate(orders) for _ in order]
    if isinstance(partial_order, ParallelOrder):
        rng.shuffle(turns)
    rest = [iter(order) for order in orders]
    return [next(rest[k]) for k in turns]


def _primes(partial_order: PartialOrder) -> Iterator[PrimeOrder]:
    if isinstance(partial_order, PrimeOrder):
        yield partial_order
        return
    for part in partial_order.parts:
        yield from _primes(part)


def _draw_prime(part: PrimeOrder, ways: Sequence[dict[int, int]], rng: random.Random) -> list[str]:
    """Draw an order, the last index first: v is the last of a down-set D as often as D - v can be filled."""
    order, remaining = list[str](), part.whole
    for smaller in reversed(ways[:-1]):
        ticket = rng.randrange(ways[part.size - len(order)][remaining])
        for v, name in enumerate(part.names):
            ticket -= smaller.get(remaining & ~(1 << v), 0) if remaining >> v & 1 else 0
            if ticket < 0:
                order.append(name)
                remaining &= ~(1 << v)
                break
    return order[::-1]
