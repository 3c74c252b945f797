"""Loop orders: linear extensions of the partial-order graph. The nearest to the program, a bounded set of candidates, the best."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Protocol

import networkx as nx

from fuseflow.errors import FusionError
from fuseflow.fusion.sample import Order, Sampler

CANDIDATES = 24
"""How many orders are compared before one is chosen, unless the caller says otherwise."""
NEAR = 1.05
"""Costs within this factor are taken as equal."""
SAMPLED_DOWN_SETS = 5_000
"""Down-sets that are counted for the sake of a uniform sample: some milliseconds of work."""


def nearest(graph: nx.DiGraph[str], program_order: Sequence[str]) -> Order:
    """The legal order nearest to the program: lexicographically first by the position of each index in `program_order`."""
    rank = {v: p for p, v in enumerate(program_order)}
    return tuple(nx.lexicographical_topological_sort(graph, key=lambda v: rank[v]))


def enumerate_orders(graph: nx.DiGraph[str], program_order: Sequence[str]) -> Iterator[Order]:
    """All linear extensions, lazily, in lexicographic order of `program_order`."""
    waiting = {v: graph.in_degree(v) for v in graph}
    prefix: list[str] = []

    def extend() -> Iterator[Order]:
        if len(prefix) == len(waiting):
            yield tuple(prefix)
            return
        for v in program_order:
            if waiting[v] == 0:
                waiting[v] = -1
                for w in graph.successors(v):
                    waiting[w] -= 1
                prefix.append(v)
                yield from extend()
                prefix.pop()
                for w in graph.successors(v):
                    waiting[w] += 1
                waiting[v] = 0

    yield from extend()


def candidates(graph: nx.DiGraph[str], program_order: Sequence[str], limit: int = CANDIDATES) -> tuple[Order, ...]:
    """Up to `limit` orders, the nearest to the program first: all of them if they are few, else the nearest and a repeatable sample.

    The sample is uniform while the orders can be counted in no time (`SAMPLED_DOWN_SETS`); beyond, it sorts by random priorities, which
    reaches every order but prefers some, where a Markov chain would take longer than the rest of compilation.
    """
    few = tuple(islice(enumerate_orders(graph, program_order), limit + 1))
    if len(few) <= limit:
        return few
    rng = random.Random(0)
    sampler = Sampler.of(graph, SAMPLED_DOWN_SETS)
    draw = sampler.draw if sampler.exact else lambda rng: _by_priority(graph, rng)
    found = {few[0]}
    for _ in range(4 * limit):
        if len(found) < limit:
            found.add(draw(rng))
    rank = {v: p for p, v in enumerate(program_order)}
    return tuple(sorted(found, key=lambda order: [rank[v] for v in order]))


def _by_priority(graph: nx.DiGraph[str], rng: random.Random) -> Order:
    key = {v: rng.random() for v in graph}
    return tuple(nx.lexicographical_topological_sort(graph, key=lambda v: key[v]))


class Ranked(Protocol):
    """What an order costs: a lower `rank` is better."""

    @property
    def rank(self) -> float: ...


@dataclass(frozen=True, slots=True)
class Candidate:
    """An order that was considered: what it costs, or (without a cost) why lowering refused it."""

    order: Order
    cost: Ranked | None
    refusal: str = ""


def compare(orders: Sequence[Order], cost: Callable[[Order], Ranked], region: str) -> tuple[Candidate, ...]:
    """Every order with its cost, or the message of the `FusionError` by which `cost` refuses it.

    If all are refused, the error of the first order is raised.
    """
    found: list[Candidate] = []
    refused: FusionError | None = None
    for order in orders:
        try:
            found.append(Candidate(order, cost(order)))
        except FusionError as error:
            refused = refused or error
            found.append(Candidate(order, None, error.message))
    if all(c.cost is None for c in found):
        raise refused or FusionError(f"region `{region}` has no legal order")
    return tuple(found)


def best(compared: Sequence[Candidate]) -> Order:
    """The first of the orders that cost no more than `NEAR` times the least: a small gain is not worth leaving the program's order."""
    ranks = {c.order: c.cost.rank for c in compared if c.cost is not None}
    least = min(ranks.values())
    return next(order for order, rank in ranks.items() if rank <= NEAR * least)
