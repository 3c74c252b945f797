"""Loop orders: linear extensions of the partial-order graph. The nearest to the program, a bounded set of candidates, the best."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

import networkx as nx

from fuseflow.errors import FusionError

Order = tuple[str, ...]
CANDIDATES = 24
"""How many orders are compared before one is chosen, unless the caller says otherwise."""
NEAR = 1.05
"""Costs within this factor are taken as equal."""


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
    """Up to `limit` orders: all of them if they are few, else the nearest to the program and a repeatable sample of the rest."""
    few = tuple(islice(enumerate_orders(graph, program_order), limit + 1))
    if len(few) <= limit:
        return few
    rng = random.Random(0)
    found = {nearest(graph, program_order): None}
    for _ in range(4 * limit):
        if len(found) == limit:
            break
        key = {v: rng.random() for v in program_order}
        found[tuple(nx.lexicographical_topological_sort(graph, key=lambda v, key=key: key[v]))] = None
    return tuple(found)


def best(orders: Sequence[Order], cost: Callable[[Order], float], region: str) -> Order:
    """The first of the orders that cost no more than `NEAR` times the least: a small gain is not worth leaving the program's order.

    `cost` may refuse an order with a `FusionError`; if it refuses all of them, that of the first order is raised.
    """
    prices: dict[Order, float] = {}
    refused: FusionError | None = None
    for order in orders:
        try:
            prices[order] = cost(order)
        except FusionError as error:
            refused = refused or error
    if not prices:
        raise refused or FusionError(f"region `{region}` has no legal order")
    least = min(prices.values())
    return next(order for order, price in prices.items() if price <= NEAR * least)
