"""The search for the best loop order of a region, which prices no order further than its decisions need.

    order   rank           is it the best?
    i,k,j   1000           the least so far
    k,i,j   at least 1500  no: it was not priced to its end, since it is too expensive already
    i,j,k   980            yes

The decisions are those of a search that prices every order exactly, and so is the order that it takes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TypeAlias, overload

import networkx as nx

from fuseflow.errors import FusionError
from fuseflow.fusion.order_sampling import LoopOrder
from fuseflow.fusion.orders import (
    MAX_CANDIDATES,
    OrderCandidate,
    OrderCost,
    adjacent_orders,
    candidate_orders,
    enumerate_orders,
)
from fuseflow.fusion.refusal import Refusal, attempt

SAMPLED_SHARE = 3
"""One order in so many is drawn at random; the others are found from the cheapest. (On dense chains and on attention, 24 random orders of
120 and of 180 cost up to 40 times the best; with this share the best was found from 15 seeds of 16.)
"""
COST_TOLERANCE = 1.05
"""Costs within this factor are taken as equal."""
LIMIT_GROWTH = 1.5
"""The factor by which the limit of an order grows that is priced again, since its bound is the least of all."""


@dataclass(frozen=True, slots=True)
class CostBound:
    """A cost of which is known only that its rank is at least this one."""

    rank: float


OrderPrice: TypeAlias = Callable[[LoopOrder, float], OrderCost | CostBound]
"""The cost of an order; or a bound above a limit, if the cost is above it. It may refuse the order with a `FusionError`."""
UNKNOWN = CostBound(0.0)
"""What is known of every order."""


@dataclass(frozen=True, eq=False, slots=True)
class ComparedOrders(Sequence[OrderCandidate]):
    """The orders that were compared, the nearest to the program first. Those that the search has not priced to their ends are priced when
    someone looks at them: `price` does it then.
    """

    orders: tuple[LoopOrder, ...]
    price: Callable[[LoopOrder], OrderCandidate]
    known: dict[LoopOrder, OrderCandidate] = field(default_factory=dict)

    @classmethod
    def of(cls, candidates: Sequence[OrderCandidate]) -> ComparedOrders:
        """Return orders that are all priced."""
        known = {candidate.order: candidate for candidate in candidates}
        return cls(tuple(known), known.__getitem__, known)

    def candidate(self, order: LoopOrder) -> OrderCandidate:
        """Return one of the orders with its cost."""
        if order not in self.known:
            self.known[order] = self.price(order)
        return self.known[order]

    def __len__(self) -> int:
        return len(self.orders)

    @overload
    def __getitem__(self, place: int) -> OrderCandidate: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[OrderCandidate, ...]: ...
    def __getitem__(self, place: int | slice) -> OrderCandidate | tuple[OrderCandidate, ...]:
        if isinstance(place, slice):
            return tuple([self.candidate(order) for order in self.orders[place]])
        return self.candidate(self.orders[place])

    def __iter__(self) -> Iterator[OrderCandidate]:
        return map(self.candidate, self.orders)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ComparedOrders) and self.orders == other.orders and tuple(self) == tuple(other)

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True, slots=True)
class OrderChoice:
    """The best order, and what is known of those that it was compared with, the nearest to the program first."""

    order: LoopOrder
    outcomes: Mapping[LoopOrder, OrderCost | CostBound | Refusal]

    @property
    def priced(self) -> dict[LoopOrder, OrderCandidate]:
        """The orders that were priced to their ends, or refused."""
        known = ((order, outcome) for order, outcome in self.outcomes.items() if not isinstance(outcome, CostBound))
        return {order: OrderCandidate.of(order, outcome) for order, outcome in known}


@dataclass(slots=True)
class OrderSearch:
    """A search among the legal orders of a region. `outcomes` has what is known of the orders that it compares."""

    graph: nx.DiGraph[str]
    price: OrderPrice
    outcomes: dict[LoopOrder, OrderCost | CostBound | Refusal] = field(default_factory=dict)
    least: float = math.inf

    def rank(self, order: LoopOrder) -> float:
        """Return the rank of an order as far as it is known, at least. A refused order is the worst."""
        outcome = self.outcomes[order]
        return math.inf if isinstance(outcome, Refusal) else outcome.rank

    def consider(self, order: LoopOrder, limit: float) -> None:
        """Price an order, up to a limit of its rank."""
        self.outcomes[order] = attempt(self.price, order, limit)
        if not isinstance(self.outcomes[order], CostBound):
            self.least = min(self.least, self.rank(order))

    def cheapest(self, orders: Collection[LoopOrder]) -> LoopOrder:
        """Return the cheapest of some orders, and the first of them if several are. It is priced exactly."""
        while True:
            order = min(orders, key=self.rank)
            if not isinstance(self.outcomes[order], CostBound):
                return order
            self.consider(order, max(self.least, LIMIT_GROWTH * self.rank(order)))

    def descend(self, limit: int) -> None:
        """Consider the orders adjacent to the cheapest one, and go on from the first that is cheaper, until there are `limit` orders."""
        expanded: set[LoopOrder] = set()
        while len(self.outcomes) < limit and len(expanded) < len(self.outcomes):
            cheapest = self.cheapest([order for order in self.outcomes if order not in expanded])
            expanded.add(cheapest)
            rank = self.rank(cheapest)
            for order in adjacent_orders(self.graph, cheapest):
                if order not in self.outcomes:
                    self.consider(order, rank)
                    if len(self.outcomes) == limit or self.rank(order) < rank:
                        break

    def best(self, orders: Sequence[LoopOrder]) -> LoopOrder:
        """Return the first of some orders that cost no more than `COST_TOLERANCE` times the least: a small gain is not worth leaving the
        program's order.
        """
        most = COST_TOLERANCE * self.rank(self.cheapest(orders))
        for order in orders:
            if self.rank(order) <= most and isinstance(self.outcomes[order], CostBound):
                self.consider(order, most)
            if self.rank(order) <= most and not isinstance(self.outcomes[order], Refusal):
                return order
        raise next(outcome.error for outcome in self.outcomes.values() if isinstance(outcome, Refusal))


@dataclass(frozen=True, slots=True)
class StartingOrders:
    """The orders from which a search starts. `first` is the one that is priced first; it is () if there are none. They are `complete` if
    there are no others.
    """

    orders: tuple[LoopOrder, ...]
    first: LoopOrder
    complete: bool


def starting_orders(
    graph: nx.DiGraph[str], program_order: Sequence[str], limit: int = MAX_CANDIDATES, guess: Sequence[str] = ()
) -> StartingOrders:
    """Return the orders from which a search for the best of up to `limit` orders starts. These are all orders if they are few, else the
    nearest to the program, a sample of the others, and the nearest to a `guess`.
    """
    few = tuple(islice(enumerate_orders(graph, program_order), limit + 1))
    complete = len(few) <= limit
    orders = few if complete else candidate_orders(graph, program_order, max(1, limit // SAMPLED_SHARE))
    near_guess = next(enumerate_orders(graph, guess), ()) if guess else ()
    if near_guess and not complete:
        orders = (*orders, near_guess)
    return StartingOrders(orders, near_guess if near_guess in orders else next(iter(orders), ()), complete)


def compare_orders(
    graph: nx.DiGraph[str],
    program_order: Sequence[str],
    price: OrderPrice,
    region: str,
    limit: int = MAX_CANDIDATES,
    guess: Sequence[str] = (),
) -> OrderChoice:
    """Return the best of up to `limit` orders: those that the search starts from, and what is found from the cheapest by moving one index
    at a time.

    `price` may refuse an order with a `FusionError`; if it refuses all of them, that of the first is raised.
    """
    start = starting_orders(graph, program_order, limit, guess)
    if not start.orders:
        raise FusionError(f"region `{region}` has no legal order")
    search = OrderSearch(graph, price, dict.fromkeys(start.orders, UNKNOWN))
    search.consider(start.first, math.inf)
    if not start.complete:
        search.descend(limit)
    rank = {v: p for p, v in enumerate(program_order)}
    compared = sorted(search.outcomes, key=lambda order: [rank[v] for v in order])
    best = search.best(compared)
    return OrderChoice(best, {order: search.outcomes[order] for order in compared})
