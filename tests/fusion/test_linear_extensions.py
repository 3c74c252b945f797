"""Linear extensions: decomposed, counted (against enumeration and closed forms, bounded where there are too many), and drawn uniformly."""

from __future__ import annotations

import math
import random
import time
from collections import Counter

import networkx as nx
import posets
import pytest

from fuseflow.fusion.linear_extensions import (
    ExtensionCount,
    LoopOrder,
    ParallelOrder,
    PartialOrder,
    PrimeOrder,
    SeriesOrder,
    count_extensions,
    decompose,
    order_sampler,
)
from fuseflow.fusion.order_candidates import enumerate_orders


def relations(shape: PartialOrder) -> tuple[list[str], set[tuple[str, str]]]:
    """Return the indices of a partial order, and the pairs of which the first must precede the second."""
    if isinstance(shape, PrimeOrder):
        pairs = {
            (u, v)
            for v, before in zip(shape.names, shape.predecessors, strict=True)
            for k, u in enumerate(shape.names)
            if before >> k & 1
        }
        return list(shape.names), pairs
    inside = [relations(part) for part in shape.parts]
    names = [v for part, _ in inside for v in part]
    all_pairs = {pair for _, pairs in inside for pair in pairs}
    if isinstance(shape, SeriesOrder):
        all_pairs |= {(u, v) for k, (first, _) in enumerate(inside) for later, _ in inside[k + 1 :] for u in first for v in later}
    return names, all_pairs


@pytest.mark.parametrize("seed", range(60))
def test_a_shape_is_its_order(seed):
    graph = posets.random_order(random.Random(seed), 10)
    names, pairs = relations(shape := decompose(graph))
    assert sorted(names) == sorted(graph) and shape.size == len(graph)
    assert pairs == set(nx.transitive_closure(graph).edges)


def test_kinds():
    assert decompose(posets.antichain(3)) == ParallelOrder(tuple(PrimeOrder((f"v{k}",), (0,)) for k in range(3)), 3)
    chain = decompose(posets.chains(3))
    assert isinstance(chain, SeriesOrder) and [part.names for part in chain.parts] == [("v0.0",), ("v0.1",), ("v0.2",)]
    assert isinstance(decompose(posets.fence(4)), PrimeOrder)
    assert decompose(nx.DiGraph()) == SeriesOrder((), 0)


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


SHAPES = {
    "fence": posets.fence(5),  # 16 orders
    "chains": posets.chains(2, 2, ends=True),  # 6
    "parts": nx.union(posets.chains(2), nx.DiGraph([("a", "b"), ("a", "c")])),  # 10 * 2
    "nested": nx.DiGraph([("r", "a"), ("a", "b"), ("c", "b"), ("c", "d"), ("r", "c"), ("r", "e")]),  # 30
}


def sample(graph: nx.DiGraph[str], number: int, seed: int) -> list[LoopOrder]:
    draw, rng = order_sampler(graph, limit=5_000), random.Random(seed)
    assert draw is not None
    return [draw(rng) for _ in range(number)]


@pytest.mark.parametrize("shape", SHAPES)
def test_orders_are_equally_likely(shape):
    """Pearson's statistic of k - 1 degrees of freedom has mean k - 1 and variance 2 (k - 1): five deviations are allowed."""
    graph = SHAPES[shape]
    legal = set(enumerate_orders(graph, sorted(graph)))
    draws = 150 * len(legal)
    frequencies = Counter(sample(graph, draws, seed=1))
    assert frequencies.keys() == legal
    expected, freedom = draws / len(legal), len(legal) - 1
    statistic = sum((n - expected) ** 2 / expected for n in frequencies.values())
    assert statistic < freedom + 5 * (2 * freedom) ** 0.5


def test_random_priorities_would_not_be_uniform():
    """The check above can fail: sorting by random priorities prefers some orders of the fence."""
    graph, rng, frequencies = SHAPES["fence"], random.Random(1), Counter[tuple[str, ...]]()
    for _ in range(2400):
        key = {v: rng.random() for v in graph}
        frequencies[tuple(nx.lexicographical_topological_sort(graph, key=key.__getitem__))] += 1
    assert sum((n - 150) ** 2 / 150 for n in frequencies.values()) > 15 + 5 * 30**0.5


@pytest.mark.parametrize("seed", range(20))
def test_samples_are_legal_and_repeatable(seed):
    graph = posets.random_order(random.Random(seed), 7)
    orders = sample(graph, 5, seed)
    assert orders == sample(graph, 5, seed)
    for order in orders:
        assert sorted(order) == sorted(graph)
        assert all(order.index(u) < order.index(v) for u, v in graph.edges)


def test_seeds_differ():
    graph = posets.antichain(12)
    assert sample(graph, 3, seed=1) != sample(graph, 3, seed=2)


def test_there_is_no_sampler_of_what_cannot_be_counted():
    assert order_sampler(posets.fence(9), limit=20) is None
