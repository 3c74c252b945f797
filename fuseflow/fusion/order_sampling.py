"""Random loop orders: every linear extension of a partial-order graph is as likely as any other."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import assert_never

import networkx as nx

from fuseflow.fusion.extension_count import MAX_DOWN_SETS, count_fillings
from fuseflow.fusion.order_decomposition import ParallelOrder, PartialOrder, PrimeOrder, SeriesOrder, decompose

LoopOrder = tuple[str, ...]
"""A loop order: indices, outermost first."""
Fillings = tuple[dict[int, int], ...]
"""The number of ways to fill each down-set, a dictionary for each size of a down-set (`extension_count.count_fillings`)."""

SAMPLING_ERROR = 0.01
"""The distance of the orders of the Markov chain from a uniform sample, at most, in total variation."""


@dataclass(frozen=True, slots=True)
class OrderSampler:
    """A sampler of the linear extensions of a partial order. `ways` has the counted fillings of each prime part that has not too many."""

    partial_order: PartialOrder
    ways: Mapping[PrimeOrder, Fillings]

    @classmethod
    def of(cls, graph: nx.DiGraph[str], limit: int = MAX_DOWN_SETS) -> OrderSampler:
        """Return the sampler for an acyclic graph, which counts up to `limit` down-sets of each prime part."""
        partial_order = decompose(graph)
        counted = {part: tuple(count_fillings(part, limit)) for part in _primes(partial_order)}
        return cls(partial_order, {part: ways for part, ways in counted.items() if len(ways) > part.size})

    @property
    def exact(self) -> bool:
        """Whether orders are exactly uniform. Else they are within `SAMPLING_ERROR` of it for each prime part that could not be counted."""
        return all(part in self.ways for part in _primes(self.partial_order))

    def draw(self, rng: random.Random) -> LoopOrder:
        """Return a random linear extension."""
        return tuple(self._draw(self.partial_order, rng))

    def _draw(self, partial_order: PartialOrder, rng: random.Random) -> list[str]:
        match partial_order:
            case PrimeOrder():
                ways = self.ways.get(partial_order)
                return _chain(partial_order, rng) if ways is None else _exact(partial_order, ways, rng)
            case SeriesOrder() | ParallelOrder():
                return self._draw_parts(partial_order, rng)
            case unknown:
                assert_never(unknown)

    def _draw_parts(self, partial_order: SeriesOrder | ParallelOrder, rng: random.Random) -> list[str]:
        """Draw an order of each part. Those of parallel parts are interleaved at random."""
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


def sample_orders(graph: nx.DiGraph[str], number: int, seed: int = 0, limit: int = MAX_DOWN_SETS) -> tuple[LoopOrder, ...]:
    """Return `number` random linear extensions of an acyclic graph, independent of each other (some may be equal). They are the same for
    the same seed.

    They are exactly uniform while no prime part has more than `limit` down-sets, else within `SAMPLING_ERROR` of uniform.
    """
    sampler, rng = OrderSampler.of(graph, limit), random.Random(seed)
    return tuple(sampler.draw(rng) for _ in range(number))


def _exact(part: PrimeOrder, ways: Sequence[dict[int, int]], rng: random.Random) -> list[str]:
    """Draw an order from its last index to its first: v is the last of a down-set D as often as D - v can be filled."""
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


def _chain(part: PrimeOrder, rng: random.Random) -> list[str]:
    """Draw an order by a Markov chain: from a linear extension (the one that the indices are numbered by), swap neighbours where the order
    allows it, often enough.

    The chain is that of Karzanov and Khachiyan (1991), with the places chosen as by Bubley and Dyer (Faster random generation of linear
    extensions, 1999): place p of n, between the p-th index and the next, with a probability proportional to p (n - p), and a swap there
    with probability 1/2. Then two coupled chains come closer by a factor 1 - 1/K in each step, K = (n^3 - n) / 6, and start at most n (n -
    1) / 2 swaps apart, so K ln(n^2 / 2 SAMPLING_ERROR) steps bring the distance from uniform below SAMPLING_ERROR.
    """
    n = part.size
    order = list(range(n))
    weights = list(accumulate(p * (n - p) for p in range(1, n)))
    steps = math.ceil(weights[-1] * math.log(n * n / (2 * SAMPLING_ERROR))) if n > 1 else 0
    for _ in range(steps):
        (p,) = rng.choices(range(1, n), cum_weights=weights)
        if rng.getrandbits(1) and not part.predecessors[order[p]] >> order[p - 1] & 1:
            order[p - 1], order[p] = order[p], order[p - 1]
    return [part.names[v] for v in order]
