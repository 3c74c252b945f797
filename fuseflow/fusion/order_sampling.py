"""Random loop orders: every linear extension of a partial-order graph is as likely as any other."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import networkx as nx

from fuseflow.fusion.extension_count import count_fillings
from fuseflow.fusion.order_decomposition import ParallelOrder, PartialOrder, PrimeOrder, decompose

LoopOrder = tuple[str, ...]
"""A loop order: indices, outermost first."""
Fillings = tuple[dict[int, int], ...]
"""The number of ways to fill each down-set, one dictionary for each size of down-sets (`extension_count.count_fillings`)."""


@dataclass(frozen=True, slots=True)
class OrderSampler:
    """Draws linear extensions of a partial order. `ways` has the counted fillings of each prime part."""

    partial_order: PartialOrder
    ways: Mapping[PrimeOrder, Fillings]

    @classmethod
    def of(cls, graph: nx.DiGraph[str], limit: int) -> OrderSampler | None:
        """Return the sampler for an acyclic graph, or None if a prime part has more than `limit` down-sets."""
        partial_order = decompose(graph)
        counted = {part: tuple(count_fillings(part, limit)) for part in _primes(partial_order)}
        return cls(partial_order, counted) if all(len(ways) > part.size for part, ways in counted.items()) else None

    def draw(self, rng: random.Random) -> LoopOrder:
        """Return a random linear extension."""
        return tuple(self._draw(self.partial_order, rng))

    def _draw(self, partial_order: PartialOrder, rng: random.Random) -> list[str]:
        """Draw an order of each part. The orders of parallel parts are interleaved at random."""
        if isinstance(partial_order, PrimeOrder):
            return _draw_prime(partial_order, self.ways[partial_order], rng)
        orders = [self._draw(part, rng) for part in partial_order.parts]
        turns = [k for k, order in enumerate(orders) for _ in order]
        if isinstance(partial_order, ParallelOrder):
            rng.shuffle(turns)
        rest = [iter(order) for order in orders]
        return [next(rest[k]) for k in turns]


def _primes(partial_order: PartialOrder) -> Iterator[PrimeOrder]:
    if isinstance(partial_order, PrimeOrder):
        yield partial_order
    else:
        for part in partial_order.parts:
            yield from _primes(part)


def _draw_prime(part: PrimeOrder, ways: Sequence[dict[int, int]], rng: random.Random) -> list[str]:
    """Draw an order of a prime part from its last index to its first: v is the last of a down-set D as often as D - v can be
    filled."""
    order: list[str] = []
    remaining = part.whole
    for smaller in reversed(ways[:-1]):
        ticket = rng.randrange(ways[part.size - len(order)][remaining])
        for v, name in enumerate(part.names):
            ticket -= smaller.get(remaining & ~(1 << v), 0) if remaining >> v & 1 else 0
            if ticket < 0:
                order.append(name)
                remaining &= ~(1 << v)
                break
    return order[::-1]
