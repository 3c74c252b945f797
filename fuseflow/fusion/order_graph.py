"""The partial-order graph, which says which loops must enclose which (rule F2), and messages for a cycle or an illegal order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import NamedTuple, TypeAlias

import networkx as nx

from fuseflow.einsum.nodes import TensorType
from fuseflow.errors import FusionError, OrdersError, Span
from fuseflow.fusion.tree import Reduction, Selection, View


@dataclass(frozen=True, slots=True)
class AskedOrder:
    """The order of the loops of an Einsum that the user wrote with it, in the index names of its region. `span` is its
    location."""

    einsum: str
    indices: tuple[str, ...]
    span: Span | None = None

    def __str__(self) -> str:
        return f"asked for in {self.place}" if self.span else f"asked for with `{self.einsum}`"

    @property
    def place(self) -> str:
        """The file and the line, or the Einsum if the location is not known."""
        return f"{self.span.file}:{self.span.line}" if self.span else f"`{self.einsum}`"


ConstraintSource: TypeAlias = View | str | AskedOrder | None
"""The source of an edge: a view of a stored tensor, a result (its name) that is to be stored in a certain order, an order that
the user wrote with an Einsum, or None if nothing can be changed. The first two can be read from, or written through, a permuted
copy."""


class Constraint(NamedTuple):
    """The loop `above` must enclose the loop `below`, because of `source`. `why` returns the reason in words."""

    above: str
    below: str
    source: ConstraintSource
    why: Callable[[], str]


def order_constraints(
    views: Iterable[View],
    stored: Mapping[str, TensorType],
    merged: Iterable[tuple[Reduction, str]] = (),
    results: Iterable[tuple[str, tuple[str, ...], str]] = (),
    chains: Iterable[tuple[str, tuple[str, ...]]] = (),
    selections: Iterable[Selection] = (),
    asked: Iterable[AskedOrder] = (),
) -> Iterator[Constraint]:
    """Yield the pairs of loops of which one must enclose the other:

    - every level stored above a compressed one encloses it: its fibers are reached through their references. Dense levels are
      located and need nothing;
    - every free index of a merged reduction encloses the index it was merged with: its value must exist when that loop starts;
    - along each of `results`, (name, indices, format): the declared storage order of a result;
    - along each of `chains`, (reason, indices): an order of the user;
    - along the indices over which a selection compares, in its order, and into the first of them from its other indices;
    - along each order in `asked`, which the user wrote with an Einsum.
    """
    for view in views:
        for above, below in storage_edges(view.indices, stored[view.tensor]):
            yield Constraint(above, below, view, partial(_storage_reason, view, stored))
    for reduction, index in merged:
        for v in reduction.free:
            yield Constraint(v, index, None, partial("{} must be complete before loop {}".format, reduction, index))
    for name, chain, format in results:
        for above, below in pairwise(chain):
            yield Constraint(above, below, name, partial("`{}` is to be stored {}".format, name, format))
    for reason, chain in chains:
        for above, below in pairwise(chain):
            yield Constraint(above, below, None, partial(str, reason))
    for node in selections:
        around = ((v, node.over[0]) for v in node.free if node.over and v not in node.over)
        for above, below in (*around, *pairwise(node.over)):
            yield Constraint(above, below, None, partial(_selection_reason, node))
    for order in asked:
        for above, below in pairwise(order.indices):
            yield Constraint(above, below, order, partial(str, order))


def _storage_reason(view: View, stored: Mapping[str, TensorType]) -> str:
    return f"{view} is stored {show_storage_order(view, stored)}"


def _selection_reason(node: Selection) -> str:
    return f"{node} keeps {node.rule} over {', '.join(node.over)}"


def build_order_graph(indices: Iterable[str], constraints: Iterable[Constraint]) -> nx.DiGraph[str]:
    """Build the graph over `indices`. The attribute `why` of each edge is the reason that was yielded last, and `by` has all its
    sources."""
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(indices)
    edges: dict[tuple[str, str], list[Constraint]] = {}
    for constraint in constraints:
        edges.setdefault((constraint.above, constraint.below), []).append(constraint)
    for (above, below), reasons in edges.items():
        graph.add_edge(above, below, why=reasons[-1].why(), by=tuple([reason.source for reason in reasons]))
    return graph


def storage_edges(indices: Sequence[str], tensor: TensorType) -> list[tuple[str, str]]:
    """Return the pairs (above, below) of indices where `below` is a level that can only be reached through the levels above it."""
    if tensor.format is None:
        return []
    stored = [indices[d] for d in tensor.format.order]
    return [(above, stored[p]) for p, level in enumerate(tensor.format.levels) if not level.full for above in stored[:p]]


def with_storage_order(graph: nx.DiGraph[str], views: Iterable[View], stored: Mapping[str, TensorType]) -> nx.DiGraph[str]:
    """Return the graph with edges along the levels of every view, dense levels too. Edges that contradict edges of earlier views
    are left out.
    """
    extended = graph.copy()
    for view in views:
        format = stored[view.tensor].format
        for above, below in pairwise([view.indices[d] for d in format.order] if format else ()):
            if above != below and not nx.has_path(extended, below, above):
                extended.add_edge(above, below)
    return extended


def show_storage_order(view: View, stored: Mapping[str, TensorType]) -> str:
    """Return how the view's tensor is stored, in the view's indices: `i before k (csr)`. It is `anyhow` if it has no format."""
    format = stored[view.tensor].format
    if format is None:
        return "anyhow"
    return " before ".join(view.indices[d] for d in format.order) + f" ({format.short()})"


def shortest_cycle(graph: nx.DiGraph[str]) -> list[tuple[str, str]]:
    """Return the edges of a shortest cycle (the first by name), empty if there is no cycle."""
    if nx.is_directed_acyclic_graph(graph):
        return []
    cycle = min(nx.simple_cycles(graph, length_bound=_girth(graph)), key=sorted)
    start = cycle.index(min(cycle))
    cycle = cycle[start:] + cycle[:start]
    return list(zip(cycle, [*cycle[1:], cycle[0]], strict=True))


def refuse_cycle(graph: nx.DiGraph[str], region: str) -> None:
    """Raise `FusionError` if the constraints contradict each other, naming every edge of a shortest cycle."""
    edges = shortest_cycle(graph)
    if not edges:
        return
    sources = [source for edge in edges for source in graph.edges[edge]["by"]]
    asked = {order.place: order for order in sources if isinstance(order, AskedOrder)}
    orders = f"the loop orders of {' and '.join(asked)} contradict each other: " if len(asked) > 1 else ""
    raise (OrdersError if asked else FusionError)(
        f"{orders}region `{region}` has no legal order: it needs " + ", ".join(f"{u} before {v}" for u, v in edges),
        notes=[f"{u} before {v}: {graph.edges[u, v]['why']}" for u, v in edges],
        hint=_way_out(sources),
        span=next((order.span for order in asked.values()), None),
    )


def _way_out(sources: Sequence[ConstraintSource]) -> str:
    """Return a hint on how to break a cycle whose edges have these sources."""
    names = dict.fromkeys(s.tensor for s in sources if isinstance(s, View))
    if not names and any(isinstance(s, AskedOrder) for s in sources):
        return "fuse fewer Einsums, write the loops in another order, or order the region: `--order REGION=...` wins"
    if not names:
        return "order fewer loops"
    dense = " or ".join(f"`--format {name}=dense`" for name in names)
    return f"allow copies (leave `--no-copies` out), fuse fewer Einsums, or store the tensor dense: {dense}"


def refuse_order(graph: nx.DiGraph[str], order: Sequence[str], region: str, legal: Iterable[Sequence[str]]) -> None:
    """Raise `FusionError` if a complete order breaks a constraint. `legal` are some legal orders to name."""
    position = {v: p for p, v in enumerate(order)}
    for u, v in graph.edges:
        if position[u] > position[v]:
            legal_text = "  ".join(",".join(o) for o in legal)
            raise FusionError(
                f"order {','.join(order)} of region `{region}` puts {v} before {u}, but {graph.edges[u, v]['why']}",
                hint=f"legal orders: {legal_text}",
            )


def _girth(graph: nx.DiGraph[str]) -> int:
    """Return the length of a shortest cycle."""
    lengths = [int(nx.shortest_path_length(graph, v, u)) + 1 for u, v in graph.edges if nx.has_path(graph, v, u)]
    return min(lengths)
