"""The partial-order graph: which loops must enclose which (rule F2), and what a cycle or an illegal order means to the user."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

import networkx as nx

from fuseflow.einsum.nodes import TensorType
from fuseflow.errors import FusionError
from fuseflow.fusion.tree import Reduction, View


def constraints(
    indices: Iterable[str],
    views: Iterable[View],
    stored: Mapping[str, TensorType],
    merged: Iterable[tuple[Reduction, str]] = (),
    chains: Iterable[tuple[str, tuple[str, ...]]] = (),
) -> nx.DiGraph[str]:
    """The graph over `indices`. Edges, each with the reason as its attribute `why` (and the stored `tensor`, if it is one's order):

    - into a compressed level, from every level stored above it: its fibers are reached through their references. Dense levels are
      located and add none;
    - from every free index of a merged reduction to the index it was merged with: its value must be there when that loop starts;
    - along each chain `(reason, indices)`: what the user ordered, or the declared storage of a result.
    """
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(indices)
    for view in views:
        for above, below in storage_edges(view.indices, stored[view.tensor]):
            graph.add_edge(above, below, why=f"{view} is stored {stored_order(view, stored)}", tensor=view.tensor)
    for reduction, index in merged:
        for v in reduction.free:
            graph.add_edge(v, index, why=f"{reduction} must be complete before loop {index}")
    for reason, chain in chains:
        for above, below in pairwise(chain):
            graph.add_edge(above, below, why=reason)
    return graph


def storage_edges(indices: Sequence[str], tensor: TensorType) -> list[tuple[str, str]]:
    """Pairs (above, below) of indices where `below` is a level that can only be reached through the levels above it."""
    if tensor.format is None:
        return []
    stored = [indices[d] for d in tensor.format.order]
    return [(above, stored[p]) for p, level in enumerate(tensor.format.levels) if not level.full for above in stored[:p]]


def stored_order(view: View, stored: Mapping[str, TensorType]) -> str:
    """`i before k (csr)`: how the view's tensor is stored, in the view's indices."""
    format = stored[view.tensor].format
    if format is None:
        return "anyhow"
    return " before ".join(view.indices[d] for d in format.order) + f" ({format.short()})"


def refuse_cycle(graph: nx.DiGraph[str], region: str) -> None:
    """Raise `FusionError` if the constraints contradict each other, naming every edge of a shortest cycle."""
    if nx.is_directed_acyclic_graph(graph):
        return
    cycle = min(nx.simple_cycles(graph, length_bound=_girth(graph)), key=sorted)
    edges = list(zip(cycle, [*cycle[1:], cycle[0]], strict=True))
    raise FusionError(
        f"region `{region}` has no legal order: it needs " + ", ".join(f"{u} before {v}" for u, v in edges),
        notes=[f"{u} before {v}: {graph.edges[u, v]['why']}" for u, v in edges],
        hint=_way_out([graph.edges[u, v].get("tensor") for u, v in edges]),
    )


def _way_out(tensors: Sequence[str | None]) -> str:
    """What breaks a cycle through these stored tensors."""
    names = [t for t in dict.fromkeys(tensors) if t is not None]
    if not names:
        return "order fewer loops"
    dense = " or ".join(f"`--format {name}=dense`" for name in names)
    return f"fuse fewer Einsums, read a transposed copy (an input of its own), or store the tensor dense: {dense}"


def refuse_order(graph: nx.DiGraph[str], order: Sequence[str], region: str, legal: Iterable[Sequence[str]]) -> None:
    """Raise `FusionError` if a complete order breaks a constraint."""
    place = {v: p for p, v in enumerate(order)}
    for u, v in graph.edges:
        if place[u] > place[v]:
            shown = "  ".join(",".join(o) for o in legal)
            raise FusionError(
                f"order {','.join(order)} of region `{region}` puts {v} before {u}, but {graph.edges[u, v]['why']}",
                hint=f"legal orders: {shown}",
            )


def _girth(graph: nx.DiGraph[str]) -> int:
    """The length of a shortest cycle."""
    lengths = [int(nx.shortest_path_length(graph, v, u)) + 1 for u, v in graph.edges if nx.has_path(graph, v, u)]
    return min(lengths)
