"""Counting linear extensions: against enumeration, against closed forms, and bounded from below where there are too many."""

from __future__ import annotations

import math
import random
import time

import networkx as nx
import posets
import pytest

from fuseflow.fusion.extension_count import ExtensionCount, count_extensions
from fuseflow.fusion.orders import enumerate_orders


@pytest.mark.parametrize("seed", range(60))
def test_counts_are_those_of_enumeration_and_bounds_are_below(seed):
    graph = posets.random_order(random.Random(seed), 7)
    number = sum(1 for _ in enumerate_orders(graph, sorted(graph)))
    assert count_extensions(graph) == ExtensionCount(number)
    bound = count_extensions(graph, limit=0)
    assert 1 <= bound.orders <= number


def tableaux(rows: int, columns: int) -> int:
    """Return the number of standard tableaux of a rectangle, by the hook length formula."""
    hooks = math.prod(rows - r + columns - c - 1 for r in range(rows) for c in range(columns))
    return math.factorial(rows * columns) // hooks


@pytest.mark.parametrize(
    ("graph", "orders"),
    [
        (nx.DiGraph(), 1),
        (posets.antichain(1), 1),
        (posets.antichain(40), math.factorial(40)),
        (posets.chains(64), 1),
        (posets.chains(5, 7, 3), math.factorial(15) // (math.factorial(5) * math.factorial(7) * math.factorial(3))),
        (posets.chains(4, 4, 4, 4, ends=True), 63_063_000),
        (posets.grid(4, 5), tableaux(4, 5)),
        (posets.grid(3, 3), 42),
        (posets.binary_tree(3), 80),  # 7! / (7 * 3 * 3)
        (posets.binary_tree(4), math.factorial(15) // (15 * 7**2 * 3**4)),
        (posets.fence(9), 7936),  # the Euler zigzag numbers
        (posets.fence(10), 50521),
        (nx.DiGraph([("a", "b"), ("b", "c"), ("c", "a")]), 0),
    ],
)
def test_closed_forms(graph, orders):
    assert count_extensions(graph) == ExtensionCount(orders)


def test_the_paper_s_graph_is_counted_in_milliseconds():
    graph = posets.chains(4, 4, 4, 4, ends=True)
    start = time.perf_counter()
    count_extensions(graph)
    assert time.perf_counter() - start < 0.1


def test_a_bound_says_that_it_is_one():
    bound = count_extensions(posets.fence(9), limit=10)
    assert not bound.exact and bound.orders == math.factorial(9) // 3**4 and str(bound) == "at least 4,480"
    assert str(count_extensions(posets.fence(9))) == "7,936"


def test_what_comes_apart_is_never_enumerated():
    """Orders of series and parallel parts are counted at any size; a prime part beyond the bound leaves the others exact."""
    assert count_extensions(posets.antichain(300), limit=0).orders == math.factorial(300)
    assert count_extensions(posets.binary_tree(9)).exact and count_extensions(posets.chains(*[4] * 50, ends=True)).exact
    both = nx.disjoint_union(posets.fence(9), posets.chains(6))
    assert count_extensions(both, limit=89) == ExtensionCount(math.comb(15, 6) * 7936)
    assert count_extensions(both, limit=88) == ExtensionCount(
        math.comb(15, 6) * count_extensions(posets.fence(9), limit=0).orders, exact=False
    )


def test_the_bound_is_enforced_in_time():
    crown = nx.DiGraph([(f"a{k}", f"b{m}") for k in range(24) for m in range(24) if k != m])
    start = time.perf_counter()
    assert not count_extensions(crown, limit=10_000).exact
    assert time.perf_counter() - start < 1


def test_the_order_of_nodes_does_not_matter():
    graph = posets.fence(8)
    shuffled: nx.DiGraph[str] = nx.DiGraph()
    shuffled.add_nodes_from(sorted(graph, reverse=True))
    shuffled.add_edges_from(graph.edges)
    assert count_extensions(graph) == count_extensions(shuffled) == ExtensionCount(1385)
