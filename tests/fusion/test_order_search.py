"""Which orders are compared, which is taken, and that it is the same as if every order were priced to its end."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice

import networkx as nx
import posets
import pytest

from fuseflow.errors import FusionError
from fuseflow.fusion.linear_extensions import LoopOrder
from fuseflow.fusion.order_candidates import OrderCandidate, OrderCost, adjacent_orders, candidate_orders, enumerate_orders
from fuseflow.fusion.order_search import (
    COST_TOLERANCE,
    LIKELY,
    NEAR_SHARE,
    PRICED_SHARE,
    SAME_WORK,
    SAMPLED_SHARE,
    UNKNOWN,
    WORTHWHILE,
    ComparedOrders,
    CostBound,
    OrderChoice,
    OrderPrice,
    OrderRules,
    compare_orders,
)
from fuseflow.fusion.refusal import Refusal, attempt


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


@dataclass(frozen=True)
class Cost:
    rank: float


Order = tuple[str, ...]


def inversions(order: Order, limit: float = math.inf) -> Cost:
    """Return the number of inversions, which is zero for the alphabet."""
    return Cost(sum(u > v for k, u in enumerate(order) for v in order[k + 1 :]))


def free(names: str) -> dict[str, str]:
    return dict.fromkeys(names, "")


def ranks_of(choice: OrderChoice) -> list[float]:
    return [candidate.rank for candidate in choice.priced.values()]


def test_few_orders_are_all_compared_the_nearest_first():
    choice = compare_orders(free("abcd"), "abcd", inversions, "r")
    assert list(choice.outcomes) == list(enumerate_orders(free("abcd"), "abcd"))
    assert all(candidate.cost == inversions(order) for order, candidate in choice.priced.items())


def test_many_orders_are_searched_from_the_cheapest():
    """Of 362,880 orders 24 random ones hold none near the least; moving one index at a time does."""
    names = "ihgfedcba"
    trials = []
    price = lambda order, limit: trials.append(order) or inversions(order)  # noqa: E731
    choice = compare_orders(free(names), names, price, "r", limit=200)
    assert len(trials) == len(set(trials)) <= 200
    assert min(ranks_of(choice)) == 0
    assert choice == compare_orders(free(names), names, inversions, "r", limit=200)


def test_refused_orders_keep_their_reasons():
    def price(order: Order, limit: float) -> Cost:
        if order[0] == "a":
            raise FusionError(f"not {','.join(order)}")
        return inversions(order)

    choice = compare_orders(free("abc"), "abc", price, "r")
    assert [c.refusal for c in choice.priced.values() if c.cost is None] == ["not a,b,c", "not a,c,b"]
    assert choice.order == ("b", "a", "c")


def test_a_legal_order_is_searched_among_refused_ones():
    def price(order: Order, limit: float) -> Cost:
        if order.index("g") != 0:
            raise FusionError("g must be outermost")
        return inversions(order)

    assert compare_orders(free("abcdefg"), "abcdefg", price, "r").order[0] == "g"


def test_if_all_are_refused_the_first_reason_is_given():
    def price(order: Order, limit: float) -> Cost:
        raise FusionError(f"not {','.join(order)}")

    with pytest.raises(FusionError, match="not a,b,c"):
        compare_orders(free("abc"), "abc", price, "r", rules=OrderRules(guess="cba"))


def priced_at(ranks: dict[str, float | None]) -> OrderPrice:
    """The price of an order by its first index; None refuses it."""

    def price(order: Order, limit: float) -> Cost:
        rank = ranks[order[0]]
        if rank is None:
            raise FusionError(f"not {order[0]}")
        return Cost(rank)

    return price


@pytest.mark.parametrize(("ranks", "taken"), [((104, 100, 100), "a"), ((106, 104, 100), "b"), ((math.inf, 200, 100), "c")])
def test_a_gain_of_five_percent_is_not_worth_leaving_the_program(ranks, taken):
    assert compare_orders(free("abc"), "abc", priced_at(dict(zip("abc", ranks, strict=True))), "r").order[0] == taken


def test_an_order_of_infinite_cost_is_taken_before_a_refused_one():
    assert compare_orders(free("ab"), "ab", priced_at({"a": None, "b": math.inf}), "r").order == ("b", "a")


def test_an_order_that_is_too_expensive_is_not_priced_to_its_end():
    limits: dict[Order, float] = {}

    def price(order: Order, limit: float) -> Cost | CostBound:
        limits[order] = limit
        return Cost(10.0) if order == ("c", "b", "a") else CostBound(limit + 1)

    choice = compare_orders(free("abc"), "abc", price, "r", rules=OrderRules(guess="cba"))
    assert choice.order == ("c", "b", "a") and list(choice.priced) == [choice.order]
    assert limits.pop(choice.order) == math.inf and set(limits.values()) == {10.0}


def lazily(price: Callable[[Order], Cost], draw: random.Random) -> OrderPrice:
    """A price that says no more of a cost above the limit than that it is above it."""

    def bounded(order: Order, limit: float) -> Cost | CostBound:
        try:
            cost = price(order)
        except FusionError:
            if limit < math.inf and draw.random() < 0.5:
                return CostBound(limit * draw.uniform(1.01, 3))  # it is refused after it is too expensive
            raise
        if cost.rank <= limit:
            return cost
        return CostBound(draw.uniform(limit, cost.rank) if cost.rank < math.inf else 2 * limit + 1)

    return bounded


@pytest.mark.parametrize("seed", range(200))
def test_the_choice_is_that_of_a_search_that_prices_every_order_to_its_end(seed: int):
    draw = random.Random(seed)
    graph = posets.random_order(draw, draw.randint(1, 7))
    names = sorted(graph)
    spread, refused = draw.choice((1.02, 1.2, 3.0, 100.0)), draw.choice((0.0, 0.2, 0.7, 1.0))
    weights = {(u, v): spread ** draw.random() for u in names for v in names}
    secret = draw.random()

    def cost(order: Order) -> Cost:
        if random.Random(f"{secret}{order}").random() < refused:
            raise FusionError(f"not {','.join(order)}")
        return Cost(round(math.prod(weights[u, v] for k, u in enumerate(order) for v in order[k + 1 :]), draw_digits))

    draw_digits = draw.choice((1, 6))
    blur = draw.choice((1.0, 1.1, 2.0))

    def work(order: Order) -> float:
        return (
            math.prod(weights[u, v] for k, u in enumerate(order) for v in order[k + 1 :])
            * blur ** random.Random(f"{order}").random()
        )

    limit, guess = draw.choice((4, 11, 24)), draw.sample(names, len(names)) if draw.random() < 0.8 else ()
    unmoved: Callable[[Order], Order] = lambda order: tuple(v for v in order if v != names[-1])  # noqa: E731
    rules = OrderRules(draw.choice((tuple, tuple, unmoved)), draw.choice((work, work, lambda order: 0.0)), guess)
    try:
        compared, expected = compared_exactly(graph, names, cost, limit, rules)
    except FusionError as error:
        with pytest.raises(FusionError, match=error.message):
            compare_orders(graph, names, lazily(cost, draw), "r", limit, rules)
        return
    choice = compare_orders(graph, names, lazily(cost, draw), "r", limit, rules)
    assert choice.order == best_of(expected)
    assert list(choice.outcomes) == compared
    by_order = {candidate.order: candidate for candidate in expected}
    for order, outcome in choice.outcomes.items():
        if order not in by_order:
            assert outcome == UNKNOWN
        elif isinstance(outcome, CostBound):
            assert outcome.rank <= by_order[order].rank
        else:
            assert by_order[order] == choice.priced[order]
            assert isinstance(outcome, Refusal) == (by_order[order].cost is None)


def test_orders_are_priced_when_someone_looks_at_them():
    asked: list[Order] = []

    def price(order: Order) -> OrderCandidate:
        asked.append(order)
        return OrderCandidate(order, inversions(order))

    known = {("a", "b"): OrderCandidate(("a", "b"), Cost(0))}
    compared = ComparedOrders((("a", "b"), ("b", "a")), price, known)
    assert len(compared) == 2 and compared.candidate(("a", "b")).rank == 0 and not asked
    assert [c.rank for c in compared] == [0, 1] == [c.rank for c in compared] and asked == [("b", "a")]
    assert tuple(compared) == tuple(ComparedOrders.of(tuple(compared)))
