"""The search among loop orders in its plainest form, which prices every order that it considers to its end: the oracle of
`fuseflow.fusion.order_search`."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice

import networkx as nx

from fuseflow.fusion.linear_extensions import LoopOrder
from fuseflow.fusion.order_candidates import OrderCandidate, OrderCost, adjacent_orders, candidate_orders, enumerate_orders
from fuseflow.fusion.order_search import (
    COST_TOLERANCE,
    LIKELY,
    NEAR_SHARE,
    PRICED_SHARE,
    SAME_WORK,
    SAMPLED_SHARE,
    WORTHWHILE,
    OrderRules,
)
from fuseflow.fusion.refusal import attempt


@dataclass
class ExactSearch:
    """What a search knows: the orders that it considered with their costs, and the others that it met, each by its trace."""

    cost: Callable[[LoopOrder], OrderCost]
    rules: OrderRules
    met: dict[Hashable, LoopOrder] = field(default_factory=dict)
    considered: dict[LoopOrder, OrderCandidate] = field(default_factory=dict)

    def meet(self, orders: Iterable[LoopOrder]) -> Iterable[LoopOrder]:
        """Those of some orders whose traces are new."""
        for order in orders:
            if self.rules.trace(order) not in self.met:
                self.met[self.rules.trace(order)] = order
                yield order

    def consider(self, order: LoopOrder) -> None:
        if order not in self.considered:
            self.considered[order] = OrderCandidate.of(order, attempt(self.cost, order))

    @property
    def cheapest(self) -> OrderCandidate:
        return min(self.considered.values(), key=lambda c: c.rank)

    def is_promising(self, order: LoopOrder) -> bool:
        work = self.rules.work
        return self.cheapest.rank == math.inf or work(order) <= WORTHWHILE * work(self.cheapest.order)


def compared_exactly(
    graph: nx.DiGraph[str],
    program_order: Sequence[str],
    cost: Callable[[LoopOrder], OrderCost],
    limit: int,
    rules: OrderRules,
) -> tuple[list[LoopOrder], tuple[OrderCandidate, ...]]:
    """Up to `limit` orders, the nearest to the program first, and those of them that are priced, with their costs.

    The search starts from all orders if they are few, else from the nearest, a sample of the others, and the nearest to a guess. What is
    expected to do little work is priced. Then it prices what it meets from the cheapest by moving one index at a time, and what is expected
    to do less."""
    search, work = ExactSearch(cost, rules), rules.work
    few = tuple(islice(enumerate_orders(graph, program_order), limit + 1))
    guessed = list(islice(enumerate_orders(graph, rules.guess), 1)) if rules.guess else []
    complete = len(few) <= limit
    sample = few if complete else (*candidate_orders(graph, program_order, max(1, limit // SAMPLED_SHARE)), *guessed)
    start = list(search.meet(sample))
    first = search.met[rules.trace(guessed[0])] if guessed else start[0]
    likely = sorted((order for order in start if work(order) <= LIKELY * work(first)), key=work)
    for order in (first, start[0], *likely[: max(1, limit // PRICED_SHARE)]):
        search.consider(order)
    for order in sorted(start, key=work):
        if search.is_promising(order):
            search.consider(order)
    if not complete:
        descend(search, graph, limit)
    rank = {v: p for p, v in enumerate(program_order)}
    if all(candidate.cost is None for candidate in search.considered.values()):
        nearest = min(search.considered, key=lambda order: [rank[v] for v in order])
        cost(nearest)  # which raises why
    unpriced = sorted((order for order in search.met.values() if order not in search.considered), key=work)
    compared = [*search.considered, *unpriced[: max(0, limit - len(search.considered))]]
    compared.sort(key=lambda order: [rank[v] for v in order])
    return compared, tuple([search.considered[order] for order in compared if order in search.considered])


def descend(search: ExactSearch, graph: nx.DiGraph[str], limit: int) -> None:
    """Consider promising orders adjacent to the cheapest one, and go on from the first that is cheaper, until `limit` orders are considered
    or none is cheaper. While all are refused, what is adjacent to each is considered."""
    expanded: set[LoopOrder] = set()
    while len(search.considered) < limit and len(expanded) < len(search.considered):
        cheapest = min((c for c in search.considered.values() if c.order not in expanded), key=lambda c: c.rank)
        expanded.add(cheapest.order)
        work = search.rules.work
        for n, order in enumerate(sorted(islice(search.meet(adjacent_orders(graph, cheapest.order)), limit), key=work)):
            differs = abs(work(order) - work(cheapest.order)) > SAME_WORK * work(cheapest.order)
            likely = n < limit // NEAR_SHARE and differs and work(order) <= LIKELY * work(cheapest.order)
            if not search.is_promising(order) and not likely:
                continue
            search.consider(order)
            if len(search.considered) == limit or search.considered[order].rank < cheapest.rank:
                break
        if search.cheapest is cheapest and cheapest.cost is not None:
            return


def best_of(priced: Sequence[OrderCandidate]) -> LoopOrder:
    """The first order that costs no more than the tolerance above the least."""
    least = min((c.rank for c in priced), default=math.inf)
    return next(c.order for c in priced if c.cost is not None and c.rank <= COST_TOLERANCE * least)
