"""The number of loop orders: the number of linear extensions of a partial order. It is counted over the down-sets of the order.

A down-set holds, with every index, all that must come before it: it is the set of indices of some prefix of a legal order. It can
be filled in as many ways as the down-sets that lack one of its last indices, taken together:

    ways({}) = 1,    ways(D) = sum of ways(D - v) over the v in D that nothing in D must follow

The number of legal orders is `ways` of the set of all indices. It is computed for the prime parts of the order
(`fusion.order_decomposition`). Counting is #P-complete (Brightwell and Winkler 1991), and a prime part may have almost 2^n
down-sets. So their number is bounded, and beyond that a proven lower bound is returned instead.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import assert_never

import networkx as nx

from fuseflow.fusion.order_decomposition import ParallelOrder, PartialOrder, PrimeOrder, SeriesOrder, decompose

MAX_DOWN_SETS = 1_000_000
"""The most down-sets of one prime part that are visited; with more, its count is a lower bound. That many take some seconds."""


@dataclass(frozen=True, slots=True)
class ExtensionCount:
    """A number of orders, or a proven lower bound of it."""

    orders: int
    exact: bool = True

    def __str__(self) -> str:
        return f"{self.orders:,}" if self.exact else f"at least {self.orders:,}"


def count_extensions(graph: nx.DiGraph[str], limit: int = MAX_DOWN_SETS) -> ExtensionCount:
    """Return the number of linear extensions. It is 0 if the graph has a cycle, and a lower bound if a prime part has more than `limit`
    down-sets.

    >>> fence = nx.DiGraph([("a", "b"), ("c", "b"), ("c", "d")])
    >>> print(count_extensions(fence), "or", count_extensions(fence, limit=3))
    5 or at least 4
    """
    return _count(decompose(graph), limit) if nx.is_directed_acyclic_graph(graph) else ExtensionCount(0)


def _count(partial_order: PartialOrder, limit: int) -> ExtensionCount:
    match partial_order:
        case PrimeOrder():
            return _count_prime(partial_order, limit)
        case SeriesOrder():
            interleavings = 1
        case ParallelOrder():
            interleavings = math.factorial(partial_order.size) // math.prod(
                math.factorial(part.size) for part in partial_order.parts
            )
        case unknown:
            assert_never(unknown)
    parts = [_count(part, limit) for part in partial_order.parts]
    return ExtensionCount(interleavings * math.prod(part.orders for part in parts), all(part.exact for part in parts))


def _count_prime(part: PrimeOrder, limit: int) -> ExtensionCount:
    ways = None
    for level in count_fillings(part, limit):
        ways = level.get(part.whole)
    return ExtensionCount(lower_bound(part), exact=False) if ways is None else ExtensionCount(ways)


def count_fillings(part: PrimeOrder, limit: int = MAX_DOWN_SETS) -> Iterator[dict[int, int]]:
    """Yield, for 0, 1, 2, ... indices, the number of ways to fill each down-set of that size (bits of indices). The iteration
    ends early once there are more than `limit` down-sets."""
    level = {0: 1}
    visited = 1
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
