"""The partial-order graph, which says which loops must enclose which (rule F2), and messages for a cycle or an illegal order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, TypeAlias

from fuseflow import directed_graphs
from fuseflow.directed_graphs import distances
from fuseflow.einsum.nodes import TensorType
from fuseflow.errors import FusionError, OrdersError, Span
from fuseflow.fusion.linear_extensions import set_bits
from fuseflow.fusion.tree import View


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


class OrderEdge(NamedTuple):
    """An edge of the order graph: the last reason for it, and all its sources."""

    why: str
    by: tuple[ConstraintSource, ...] = ()


OrderGraph: TypeAlias = Mapping[str, Mapping[str, OrderEdge]]
"""For each loop, the loops that it must enclose, and why."""


def build_order_graph(indices: Iterable[str], constraints: Iterable[Constraint]) -> OrderGraph:
    """Build the graph over `indices`."""
    graph: dict[str, dict[str, OrderEdge]] = {v: {} for v in indices}
    edges: dict[tuple[str, str], list[Constraint]] = {}
    for constraint in constraints:
        edges.setdefault((constraint.above, constraint.below), []).append(constraint)
    for (above, below), reasons in edges.items():
        graph.setdefault(below, {})
        graph.setdefault(above, {})[below] = OrderEdge(reasons[-1].why(), tuple([reason.source for reason in reasons]))
    return graph


def storage_edges(indices: Sequence[str], tensor: TensorType) -> list[tuple[str, str]]:
    """Return the pairs (above, below) of indices where `below` is a level that can only be reached through the levels above it."""
    if tensor.format is None:
        return []
    stored = [indices[d] for d in tensor.format.order]
    return [(above, stored[p]) for p, level in enumerate(tensor.format.levels) if not level.full for above in stored[:p]]


def graph_edges(graph: OrderGraph) -> Iterator[tuple[str, str, OrderEdge]]:
    """Yield the edges, each with the loop above and the loop below."""
    return ((above, below, edge) for above, inside in graph.items() for below, edge in inside.items())


def with_storage_order(graph: OrderGraph, views: Iterable[View], stored: Mapping[str, TensorType]) -> OrderGraph:
    """Return the graph with edges along all levels of every view, but for those that contradict earlier views."""
    extended = {v: dict(inside) for v, inside in graph.items()}
    for view in views:
        format = stored[view.tensor].format
        for above, below in pairwise([view.indices[d] for d in format.order] if format else ()):
            if above not in distances(extended, below):
                extended[above].setdefault(below, OrderEdge(""))
    return extended


def storage_reason(view: View, stored: Mapping[str, TensorType]) -> str:
    """Return how the tensor of a view is stored, in the view's indices: `A[i, k] is stored i before k (csr)`."""
    format = stored[view.tensor].format
    assert format is not None
    return f"{view} is stored {' before '.join(view.indices[d] for d in format.order)} ({format.short()})"


def shortest_cycle(graph: OrderGraph) -> list[tuple[str, str]]:
    """Return the edges of a shortest cycle (the first by name), empty if there is no cycle."""
    cycle = directed_graphs.shortest_cycle(graph)
    return list(zip(cycle, [*cycle[1:], *cycle[:1]], strict=True))


def refuse_cycle(graph: OrderGraph, region: str) -> None:
    """Raise `FusionError` if the constraints contradict each other, naming every edge of a shortest cycle."""
    edges = shortest_cycle(graph)
    if not edges:
        return
    sources = [source for u, v in edges for source in graph[u][v].by]
    asked = {order.place: order for order in sources if isinstance(order, AskedOrder)}
    orders = f"the loop orders of {' and '.join(asked)} contradict each other: " if len(asked) > 1 else ""
    raise (OrdersError if asked else FusionError)(
        f"{orders}region `{region}` has no legal order: it needs " + ", ".join(f"{u} before {v}" for u, v in edges),
        notes=[f"{u} before {v}: {graph[u][v].why}" for u, v in edges],
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


def refuse_order(graph: OrderGraph, order: Sequence[str], region: str, legal: Iterable[Sequence[str]]) -> None:
    """Raise `FusionError` if a complete order breaks a constraint. `legal` are some legal orders to name."""
    position = {v: p for p, v in enumerate(order)}
    for u, v, edge in graph_edges(graph):
        if position[u] > position[v]:
            legal_text = "  ".join(",".join(o) for o in legal)
            raise FusionError(
                f"order {','.join(order)} of region `{region}` puts {v} before {u}, but {edge.why}",
                hint=f"legal orders: {legal_text}",
            )


@dataclass(frozen=True, slots=True)
class Precedence:
    """Which loops must enclose which, directly or through others: the order graph without its reasons, which merging views never
    asks for. `bits` has the bit of each loop, and `inside` the bits of all loops that it must enclose."""

    bits: dict[str, int]
    inside: dict[str, int]

    @classmethod
    def of(cls, pairs: Iterable[tuple[str, str]]) -> Precedence | None:
        """Return the order in which the first loop of each pair encloses the second; or None if that is impossible.

        >>> order = Precedence.of([("i", "j"), ("j", "k")])
        >>> order.encloses("i", "k"), order.encloses("k", "i"), Precedence.of([("i", "j"), ("j", "i")])
        (True, False, None)
        """
        bits: dict[str, int] = {}
        directly: dict[str, int] = {}
        for above, below in pairs:
            bits.setdefault(above, 1 << len(bits))
            directly[above] = directly.get(above, 0) | bits.setdefault(below, 1 << len(bits))
        names, inside = tuple(bits), {v: 0 for v in bits if v not in directly}
        complete = sum([bits[v] for v in inside])  # the loops for which all loops inside of them are known
        while directly:
            innermost = [v for v, below in directly.items() if not below & ~complete]
            if not innermost:
                return None
            for loop in innermost:
                inside[loop] = directly.pop(loop)
                for n in set_bits(inside[loop]):
                    inside[loop] |= inside[names[n]]
                complete |= bits[loop]
        return cls(bits, inside)

    def encloses(self, above: str, below: str) -> bool:
        """Return whether the loop `above` must enclose the loop `below`."""
        return self.inside.get(above, 0) & self.bits.get(below, 0) != 0
