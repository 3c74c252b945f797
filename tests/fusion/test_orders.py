"""Which orders are considered, and which is taken."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

import networkx as nx
import posets
import pytest

from fuseflow.einsum.nodes import TensorType
from fuseflow.errors import FusionError
from fuseflow.fusion.order_graph import with_storage_order
from fuseflow.fusion.orders import (
    MAX_CANDIDATES,
    OrderCandidate,
    adjacent_orders,
    best_order,
    candidate_orders,
    compare_orders,
    enumerate_orders,
    first_order,
    nearest_order,
)
from fuseflow.fusion.tree import View
from fuseflow.tensors import Format


@dataclass(frozen=True)
class Cost:
    rank: float


def inversions(order: tuple[str, ...]) -> Cost:
    """Return the number of inversions, which is zero for the alphabet."""
    return Cost(sum(u > v for k, u in enumerate(order) for v in order[k + 1 :]))


def free(names: str) -> nx.DiGraph[str]:
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(names)
    return graph


def test_candidates_are_the_nearest_and_a_sample_in_the_order_of_the_program():
    graph = posets.fence(9)
    orders = candidate_orders(graph, sorted(graph))
    assert (
        len(set(orders)) == MAX_CANDIDATES and orders[0] == nearest_order(graph, sorted(graph)) and list(orders) == sorted(orders)
    )


def test_candidates_of_an_order_that_cannot_be_counted_are_a_sample_too():
    crown: nx.DiGraph[str] = nx.DiGraph([(f"a{k}", f"b{m}") for k in range(16) for m in range(16) if k != m])
    orders = candidate_orders(crown, sorted(crown), 10)
    assert len(set(orders)) == 10 and orders == candidate_orders(crown, sorted(crown), 10)
    assert all(order.index(u) < order.index(v) for order in orders for u, v in crown.edges)


@pytest.mark.parametrize("seed", range(20))
def test_neighbours_differ_by_the_place_of_one_index(seed):
    graph = posets.random_order(random.Random(seed), 5)
    legal = set(enumerate_orders(graph, sorted(graph)))
    order = min(legal, default=())

    def without(order: tuple[str, ...], v: str) -> list[str]:
        return [w for w in order if w != v]

    near = {o for o in legal if o != order and any(without(o, v) == without(order, v) for v in order)}
    assert set(adjacent_orders(graph, order)) == near


def test_few_orders_are_all_compared_the_nearest_first():
    compared = compare_orders(free("abcd"), "abcd", inversions, "r")
    assert [c.order for c in compared] == list(enumerate_orders(free("abcd"), "abcd"))
    assert all(c.cost == inversions(c.order) for c in compared)


def test_many_orders_are_searched_from_the_cheapest():
    """Of 362,880 orders 24 random ones hold none near the least; moving one index at a time does."""
    names = "ihgfedcba"
    trials = []
    compared = compare_orders(free(names), names, lambda order: trials.append(order) or inversions(order), "r", limit=200)
    assert len(trials) == len(set(trials)) == len(compared) == 200
    assert min(c.rank for c in compared) == 0
    assert compared == compare_orders(free(names), names, inversions, "r", limit=200)


def test_refused_orders_keep_their_reasons():
    def cost(order: tuple[str, ...]) -> Cost:
        if order[0] == "a":
            raise FusionError(f"not {','.join(order)}")
        return inversions(order)

    compared = compare_orders(free("abc"), "abc", cost, "r")
    assert [c.refusal for c in compared if c.cost is None] == ["not a,b,c", "not a,c,b"]
    assert best_order(compared) == ("b", "a", "c")


def test_a_legal_order_is_searched_among_refused_ones():
    def cost(order: tuple[str, ...]) -> Cost:
        if order.index("g") != 0:
            raise FusionError("g must be outermost")
        return inversions(order)

    compared = compare_orders(free("abcdefg"), "abcdefg", cost, "r")
    assert best_order(compared)[0] == "g"


def test_if_all_are_refused_the_first_reason_is_given():
    def cost(order: tuple[str, ...]) -> Cost:
        raise FusionError(f"not {','.join(order)}")

    with pytest.raises(FusionError, match="not a,b,c"):
        compare_orders(free("abc"), "abc", cost, "r")


@pytest.mark.parametrize(("ranks", "taken"), [((104, 100, 100), "a"), ((106, 104, 100), "b"), ((math.inf, 200, 100), "c")])
def test_a_gain_of_five_percent_is_not_worth_leaving_the_program(ranks, taken):
    assert best_order([OrderCandidate((v,), Cost(rank)) for v, rank in zip("abc", ranks, strict=True)]) == (taken,)


def test_an_order_of_infinite_cost_is_taken_before_a_refused_one():
    assert best_order([OrderCandidate(("a",), None, "no"), OrderCandidate(("b",), Cost(math.inf))]) == ("b",)


def test_the_first_legal_order_ends_the_search():
    def cost(order: tuple[str, ...]) -> Cost:
        if order[0] != "b":
            raise FusionError(f"{order} refused")
        return Cost(1.0)

    candidates = first_order(free("abc"), "abc", cost, "r", 10)
    assert [c.order for c in candidates] == [("a", "b", "c"), ("a", "c", "b"), ("b", "a", "c")]
    assert [c.cost for c in candidates] == [None, None, Cost(1.0)] and "refused" in candidates[0].refusal
    with pytest.raises(FusionError, match=r"\('a', 'b', 'c'\) refused"):
        first_order(free("abc"), "abc", cost, "r", 2)


def test_tensors_are_read_as_they_are_stored_as_far_as_they_agree():
    stored = {
        "A": TensorType("A", (2, 2), Format.parse("dense", 2)),
        "B": TensorType("B", (2, 2), Format.parse("(dense, dense) order (1, 0)", 2)),
    }
    graph = with_storage_order(free("ijk"), [View("A", ("i", "j")), View("B", ("i", "j")), View("B", ("k", "i"))], stored)
    assert set(graph.edges) == {("i", "j"), ("i", "k")}  # B's j before i contradicts A
