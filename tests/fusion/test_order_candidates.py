"""Which orders are considered, and which is taken."""

from __future__ import annotations

import random
from dataclasses import dataclass

import networkx as nx
import posets
import pytest

from fuseflow.einsum.nodes import TensorType
from fuseflow.errors import FusionError
from fuseflow.fusion.order_candidates import (
    MAX_CANDIDATES,
    adjacent_orders,
    candidate_orders,
    enumerate_orders,
    first_order,
)
from fuseflow.fusion.order_graph import OrderEdge, graph_edges, with_storage_order
from fuseflow.fusion.tree import View
from fuseflow.tensors import Format


@dataclass(frozen=True)
class Cost:
    rank: float


def inversions(order: tuple[str, ...]) -> Cost:
    """Return the number of inversions, which is zero for the alphabet."""
    return Cost(sum(u > v for k, u in enumerate(order) for v in order[k + 1 :]))


def free(names: str) -> dict[str, dict[str, OrderEdge]]:
    return {name: {} for name in names}


def test_candidates_are_the_nearest_and_a_sample_in_the_order_of_the_program():
    graph = posets.fence(9)
    orders = candidate_orders(graph, sorted(graph))
    assert (
        len(set(orders)) == MAX_CANDIDATES
        and orders[0] == tuple(nx.lexicographical_topological_sort(graph))
        and list(orders) == sorted(orders)
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
    assert {(above, below) for above, below, _ in graph_edges(graph)} == {("i", "j"), ("i", "k")}  # B's j before i contradicts A
