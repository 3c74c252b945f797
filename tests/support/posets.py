"""Partial orders for tests: random ones, and families whose number of linear extensions is known in closed form."""

from __future__ import annotations

import random
from itertools import combinations

import networkx as nx


def random_order(rng: random.Random, most: int) -> nx.DiGraph[str]:
    """An acyclic graph of up to `most` nodes, of any density, its nodes in no particular order."""
    names = "abcdefghij"[: rng.randint(0, most)]
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(rng.sample(names, len(names)))
    share = rng.random()
    graph.add_edges_from(pair for pair in combinations(names, 2) if rng.random() < share)
    return graph


def antichain(n: int) -> nx.DiGraph[str]:
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(f"v{k}" for k in range(n))
    return graph


def chains(*lengths: int, ends: bool = False) -> nx.DiGraph[str]:
    """Chains side by side; with `ends`, between one first and one last element that all share."""
    graph: nx.DiGraph[str] = nx.DiGraph()
    for k, n in enumerate(lengths):
        inner = [f"v{k}.{p}" for p in range(n)]
        nx.add_path(graph, ["first", *inner, "last"] if ends else inner)
    return graph


def grid(rows: int, columns: int) -> nx.DiGraph[str]:
    """The product of two chains: its linear extensions are the standard Young tableaux of a rectangle."""
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(f"{r},{c}" for r in range(rows) for c in range(columns))
    graph.add_edges_from((f"{r},{c}", f"{r + 1},{c}") for r in range(rows - 1) for c in range(columns))
    graph.add_edges_from((f"{r},{c}", f"{r},{c + 1}") for r in range(rows) for c in range(columns - 1))
    return graph


def binary_tree(depth: int) -> nx.DiGraph[str]:
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_node("1")
    graph.add_edges_from((str(k // 2), str(k)) for k in range(2, 2**depth))
    return graph


def fence(n: int) -> nx.DiGraph[str]:
    """v0 < v1 > v2 < v3 ...: its linear extensions are the alternating permutations."""
    graph = antichain(n)
    graph.add_edges_from((f"v{k}", f"v{k + 1}") if k % 2 == 0 else (f"v{k + 1}", f"v{k}") for k in range(n - 1))
    return graph
