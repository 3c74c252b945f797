"""Partial orders come apart into series, parallel and prime parts, and mean the same."""

from __future__ import annotations

import random

import networkx as nx
import posets
import pytest

from fuseflow.fusion.order_decomposition import ParallelOrder, PartialOrder, PrimeOrder, SeriesOrder, decompose


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
