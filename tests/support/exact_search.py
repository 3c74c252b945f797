"""The search among loop orders in its plainest form, which prices every order that it compares to its end: the oracle of
`fuseflow.fusion.order_search`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import islice

import networkx as nx

from fuseflow.errors import FusionError
from fuseflow.fusion.order_sampling import LoopOrder
from fuseflow.fusion.order_search import COST_TOLERANCE, SAMPLED_SHARE
from fuseflow.fusion.orders import OrderCandidate, OrderCost, adjacent_orders, candidate_orders, enumerate_orders
from fuseflow.fusion.refusal import Refusal, attempt


def compared_exactly(
    graph: nx.DiGraph[str],
    program_order: Sequence[str],
    cost: Callable[[LoopOrder], OrderCost],
    limit: int,
    guess: Sequence[str] = (),
) -> tuple[OrderCandidate, ...]:
    """Up to `limit` orders with their costs, the nearest to the program first: all of them if they are few, else the nearest, a sample of
    the others, the nearest to a `guess`, and what is met from the cheapest by moving one index at a time."""
    refusals: list[Refusal] = []

    def consider(order: LoopOrder) -> OrderCandidate:
        price = attempt(cost, order)
        if isinstance(price, Refusal):
            refusals.append(price)
        return OrderCandidate.of(order, price)

    few = tuple(islice(enumerate_orders(graph, program_order), limit + 1))
    start = few if len(few) <= limit else candidate_orders(graph, program_order, max(1, limit // SAMPLED_SHARE))
    near_guess = [] if not guess or len(few) <= limit else [next(enumerate_orders(graph, guess), start[0])]
    considered: dict[LoopOrder, OrderCandidate] = {}
    for order in dict.fromkeys((*start, *near_guess)):
        considered[order] = consider(order)
    if len(few) > limit:
        descend(graph, considered, consider, limit)
    if all(candidate.cost is None for candidate in considered.values()):
        raise refusals[0].error if refusals else FusionError("no legal order")
    rank = {v: p for p, v in enumerate(program_order)}
    return tuple(sorted(considered.values(), key=lambda c: [rank[v] for v in c.order]))


def descend(
    graph: nx.DiGraph[str],
    considered: dict[LoopOrder, OrderCandidate],
    consider: Callable[[LoopOrder], OrderCandidate],
    limit: int,
) -> None:
    """Consider the orders adjacent to the cheapest one, and go on from the first that is cheaper, until `limit` orders are considered."""
    expanded: set[LoopOrder] = set()
    while len(considered) < limit and len(expanded) < len(considered):
        cheapest = min((c for c in considered.values() if c.order not in expanded), key=lambda c: c.rank)
        expanded.add(cheapest.order)
        for order in adjacent_orders(graph, cheapest.order):
            if order not in considered:
                considered[order] = consider(order)
                if len(considered) == limit or considered[order].rank < cheapest.rank:
                    break


def best_of(compared: Sequence[OrderCandidate]) -> LoopOrder:
    """The first order that costs no more than the tolerance above the least."""
    least = min((c.rank for c in compared), default=math.inf)
    return next(c.order for c in compared if c.cost is not None and c.rank <= COST_TOLERANCE * least)
