"""The search for the best loop order of a region. It prices no order further than its decisions need.

    order   rank           is it the best?
    i,k,j   1000           the least so far
    k,i,j   at least 1500  no: it was not priced to its end, since it is too expensive already
    i,j,k   980            yes

Of orders that make the same table (`region.LoopDependence`) one is compared, and many that are expected to do more work (`nest_work`) get
no price. So the order that is taken need not be the cheapest of all. But it is the one that the same search takes if it prices
each order that it considers to its end.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Literal, TypeAlias

from fuseflow.errors import FusionError
from fuseflow.fusion.linear_extensions import Enclosing, LoopOrder
from fuseflow.fusion.order_candidates import (
    MAX_CANDIDATES,
    OrderCandidate,
    OrderCost,
    adjacent_orders,
    candidate_orders,
    enumerate_orders,
)
from fuseflow.fusion.refusal import Refusal, attempt

SAMPLED_SHARE = 3
"""One in this number of the compared orders is drawn at random; the others are found from the cheapest."""
PRICED_SHARE = 4
"""Up to `limit // PRICED_SHARE` orders from which the search starts are priced although more work is expected of them, if `LIKELY`."""
LIKELY = 1.25
"""An order is likely to be cheaper if its expected work is at most this many times the work of the cheapest so far. (In 117
regions of models and 261 of random programs, the chosen order costs 3.9 and 1.9 % more on average than the best that is known,
and 5.4 and 2.7 % if all of up to 24 orders are priced, which are two to three times as many.)"""
NEAR_SHARE = 6
"""Up to `limit // NEAR_SHARE` orders adjacent to the cheapest are priced although more work is expected of them, if they are `LIKELY`."""
WORTHWHILE = 0.97
"""The most expected work of a promising order, as a share of the work of the cheapest order."""
SAME_WORK = 0.003
"""Works that differ by at most this share count as equal."""
COST_TOLERANCE = 1.05
"""Costs within this factor count as equal."""
LIMIT_GROWTH = 1.5
"""The factor by which the limit of an order grows each time that it is priced again because its bound is the least of all."""


@dataclass(frozen=True, slots=True)
class CostBound:
    """A cost whose rank is at least `rank`; nothing else is known about it."""

    rank: float


@dataclass(frozen=True, slots=True)
class OrderRules:
    """The rules by which a search judges orders without their prices. Orders of one `trace` cost the same. `work` is the expected
    work of an order; if it is always 0, all orders are worth a price. `guess` is a guess of the best order."""

    trace: Callable[[LoopOrder], Hashable] = tuple
    work: Callable[[LoopOrder], float] = lambda order: 0.0
    guess: Sequence[str] = ()


NO_RULES = OrderRules()

OrderPrice: TypeAlias = Callable[[LoopOrder, float], OrderCost | CostBound]
"""A function that returns the cost of an order, or a bound of it, if its rank is above a limit. It may refuse the order with a
`FusionError`."""
UNKNOWN = CostBound(0.0)
"""The bound for an order that is not priced."""


OrderExtent: TypeAlias = Literal["all", "sample", "first"]
"""Which legal orders were compared: `all` means that any other one makes the same table as one of them. For `sample`, some were
drawn, and others found from the cheapest. `first` means that the search ended at the first one that was not refused."""


@dataclass(frozen=True, eq=False, slots=True)
class ComparedOrders:
    """The orders that were compared, the nearest to the program first. An order that the search has not priced to its end is
    priced by `price` when it is asked for (`candidate`)."""

    orders: tuple[LoopOrder, ...]
    price: Callable[[LoopOrder], OrderCandidate]
    known: dict[LoopOrder, OrderCandidate] = field(default_factory=dict)
    extent: OrderExtent = "all"

    @classmethod
    def of(cls, candidates: Sequence[OrderCandidate], extent: OrderExtent = "all") -> ComparedOrders:
        """Return compared orders that are all priced already."""
        known = {candidate.order: candidate for candidate in candidates}
        return cls(tuple(known), known.__getitem__, known, extent)

    def candidate(self, order: LoopOrder) -> OrderCandidate:
        """Return one of the orders with its cost."""
        if order not in self.known:
            self.known[order] = self.price(order)
        return self.known[order]

    def __len__(self) -> int:
        return len(self.orders)

    def __iter__(self) -> Iterator[OrderCandidate]:
        return map(self.candidate, self.orders)


@dataclass(frozen=True, slots=True)
class OrderChoice:
    """The best order, and the `outcomes` of the orders that it was compared with, the nearest to the program first. They are
    `complete` if any other legal order makes the same table as one of them."""

    order: LoopOrder
    outcomes: Mapping[LoopOrder, OrderCost | CostBound | Refusal]
    complete: bool

    @property
    def priced(self) -> dict[LoopOrder, OrderCandidate]:
        """The orders that were priced to their ends, or refused."""
        known = ((order, outcome) for order, outcome in self.outcomes.items() if not isinstance(outcome, CostBound))
        return {order: OrderCandidate.of(order, outcome) for order, outcome in known}


@dataclass(slots=True)
class OrderSearch:
    """A search among the legal orders of a region. `outcomes` has the costs, bounds or refusals of the orders priced so far, and
    `others` the orders that were found and did not promise enough. `traces` are the traces of all of these, and `least` is the
    least rank so far."""

    graph: Enclosing
    price: OrderPrice
    rules: OrderRules
    traces: set[Hashable] = field(default_factory=set)
    outcomes: dict[LoopOrder, OrderCost | CostBound | Refusal] = field(default_factory=dict)
    others: dict[LoopOrder, None] = field(default_factory=dict)
    least: float = math.inf

    def rank(self, order: LoopOrder) -> float:
        """Return the rank of an order, or the bound of it that is known. A refused order has the rank infinity."""
        outcome = self.outcomes[order]
        return math.inf if isinstance(outcome, Refusal) else outcome.rank

    def consider(self, order: LoopOrder, limit: float) -> None:
        """Price an order, up to a limit of its rank."""
        self.others.pop(order, None)
        self.outcomes[order] = attempt(self.price, order, limit)
        if not isinstance(self.outcomes[order], CostBound):
            self.least = min(self.least, self.rank(order))

    def cheapest(self, orders: Collection[LoopOrder]) -> LoopOrder:
        """Return the cheapest of some orders that were considered, the first if several are. It is priced to its end."""
        while True:
            order = min(orders, key=self.rank)
            if not isinstance(self.outcomes[order], CostBound):
                return order
            self.consider(order, max(self.least, LIMIT_GROWTH * self.rank(order)))

    def begin(self, program_order: Sequence[str], limit: int) -> bool:
        """Consider the orders from which the search starts. Return whether no legal order has another trace.

        The search starts from all orders if they are few, else from the nearest to the program, a sample of the others, and the
        nearest to the guess; from one of each trace, the nearest to the program. The likely ones are priced in any case, and
        others if they are promising.
        """
        few = tuple(islice(enumerate_orders(self.graph, program_order), limit + 1))
        complete = len(few) <= limit
        orders = few if complete else candidate_orders(self.graph, program_order, max(1, limit // SAMPLED_SHARE))
        if not orders:
            return complete
        trace, work, guess = self.rules.trace, self.rules.work, self.rules.guess
        near_guess = next(enumerate_orders(self.graph, guess), ()) if guess else ()
        by_trace: dict[Hashable, LoopOrder] = {}
        for order in (*orders, near_guess) if near_guess and not complete else orders:
            by_trace.setdefault(trace(order), order)
        first = by_trace.get(trace(near_guess), orders[0]) if near_guess else orders[0]
        by_work = sorted(by_trace.values(), key=work)
        most = LIKELY * work(first)
        likely = [orders[0], *[order for order in by_work if work(order) <= most][: max(1, limit // PRICED_SHARE)]]
        self.traces.update(by_trace)
        self.others.update(dict.fromkeys(by_trace.values()))
        for order in (first, *likely, *by_work):
            if order in self.others and (order in likely or self.is_promising(order)):
                self.consider(order, self.least)
        return complete

    def is_promising(self, order: LoopOrder) -> bool:
        """Return whether an order is expected to do less work than the cheapest one so far. While all are refused, every order is."""
        work = self.rules.work
        return self.least == math.inf or work(order) <= WORTHWHILE * work(self.cheapest(self.outcomes))

    def is_worth_a_try(self, order: LoopOrder, cheapest: LoopOrder) -> bool:
        """Return whether an order may be cheaper although it is expected to do more work. If it does as much, it is expected to
        cost as much, so that its price would tell little."""
        work, least = self.rules.work(order), self.rules.work(cheapest)
        return work <= LIKELY * least and abs(work - least) > SAME_WORK * least

    def descend(self, limit: int) -> None:
        """Consider the promising orders adjacent to the cheapest, and a few others, and go on from the first that is cheaper. End
        if none is, or if there are `limit` orders. While all are refused, consider the orders adjacent to one after the other."""
        expanded: set[LoopOrder] = set()
        while len(self.outcomes) < limit and len(expanded) < len(self.outcomes):
            cheapest = self.cheapest([order for order in self.outcomes if order not in expanded])
            expanded.add(cheapest)
            rank, least = self.rank(cheapest), self.least
            near = sorted(islice(self.adjacent(cheapest), limit), key=self.rules.work)
            for n, order in enumerate(near):
                if self.is_promising(order) or (n < limit // NEAR_SHARE and self.is_worth_a_try(order, cheapest)):
                    self.consider(order, rank)
                    if len(self.outcomes) == limit or self.rank(order) < rank:
                        break
            if self.least == least < math.inf:
                return

    def adjacent(self, order: LoopOrder) -> Iterator[LoopOrder]:
        """Yield the orders adjacent to `order` whose traces are new."""
        for near in adjacent_orders(self.graph, order):
            trace = self.rules.trace(near)
            if trace not in self.traces:
                self.traces.add(trace)
                self.others[near] = None
                yield near

    def best(self, orders: Sequence[LoopOrder]) -> LoopOrder:
        """Return the first of some orders that costs no more than `COST_TOLERANCE` times the least: a small gain is not worth
        leaving the program's order. If all are refused, raises the error of the first."""
        most = COST_TOLERANCE * self.rank(self.cheapest(orders))
        for order in orders:
            if self.rank(order) <= most and isinstance(self.outcomes[order], CostBound):
                self.consider(order, most)
            if self.rank(order) <= most and not isinstance(self.outcomes[order], Refusal):
                return order
        outcomes = map(self.outcomes.__getitem__, orders)
        raise next(outcome.error for outcome in outcomes if isinstance(outcome, Refusal))


def compare_orders(
    graph: Enclosing,
    program_order: Sequence[str],
    price: OrderPrice,
    region: str,
    limit: int = MAX_CANDIDATES,
    rules: OrderRules = NO_RULES,
) -> OrderChoice:
    """Return the best of up to `limit` orders: the orders that the search starts from, and orders found from the cheapest by
    moving one index at a time. Of all orders with one trace, only the first is compared.

    `price` may refuse an order with a `FusionError`; if it refuses all of them, the error of the first is raised.
    """
    search = OrderSearch(graph, price, rules)
    complete = search.begin(program_order, limit)
    if not search.outcomes:
        raise FusionError(f"region `{region}` has no legal order")
    if not complete:
        search.descend(limit)
    rank = {v: p for p, v in enumerate(program_order)}
    nearness = lambda order: [rank[v] for v in order]  # noqa: E731
    best = search.best(sorted(search.outcomes, key=nearness))
    others = sorted(search.others, key=rules.work)[: max(0, limit - len(search.outcomes))]
    compared = sorted((*search.outcomes, *others), key=nearness)
    return OrderChoice(best, {order: search.outcomes.get(order, UNKNOWN) for order in compared}, complete)
