"""Sampling linear extensions: legal, repeatable, complete and uniform."""

from __future__ import annotations

import random
from collections import Counter

import networkx as nx
import posets
import pytest

from fuseflow.fusion.order_sampling import LoopOrder, OrderSampler
from fuseflow.fusion.orders import enumerate_orders

SHAPES = {
    "fence": posets.fence(5),  # 16 orders
    "chains": posets.chains(2, 2, ends=True),  # 6
    "parts": nx.union(posets.chains(2), nx.DiGraph([("a", "b"), ("a", "c")])),  # 10 * 2
    "nested": nx.DiGraph([("r", "a"), ("a", "b"), ("c", "b"), ("c", "d"), ("r", "c"), ("r", "e")]),  # 30
}


def sample(graph: nx.DiGraph[str], number: int, seed: int) -> list[LoopOrder]:
    sampler, rng = OrderSampler.of(graph, limit=5_000), random.Random(seed)
    assert sampler is not None
    return [sampler.draw(rng) for _ in range(number)]


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
    assert OrderSampler.of(posets.fence(9), limit=20) is None
