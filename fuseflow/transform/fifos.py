"""`fifos`: list the edges that must hold a whole fiber (rule L13).

A stream that is used both before and after a reduction of itself (softmax, norms) waits at its second use until the fiber has been
reduced. Precondition: a verified graph. Effect: `Graph.fiber_fifos` is computed afresh; nothing else changes.

    red = reduce(mask) max;  rep = repeat(red, M_j.crd);  sub = alu(mask, rep)
    ->  fiber_fifos: rep input 1 (M_j.crd), sub input 0 (mask)
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from fuseflow.samml.nodes import Accumulate, Edge, Graph, Node, Port, Reduce, StreamType


@dataclass(frozen=True, slots=True)
class _Fold:
    """A node that holds a whole fiber back: where, and which nodes stream while it does (a bit mask)."""

    bit: int
    streams: int


def fifos(graph: Graph) -> Graph:
    types = graph.types()
    bit = {n.name: 1 << k for k, n in enumerate(graph.nodes)}
    above: dict[str, int] = {}  # node -> bit mask of itself and everything upstream
    folds: list[_Fold] = []
    edges: list[Edge] = []
    for node in graph.nodes:
        feeding = [above[p.node] for p in node.inputs]
        for k, mine in enumerate(feeding):
            others = 0
            for j, mask in enumerate(feeding):
                others |= mask if j != k else 0
            if any(others & f.bit and not mine & f.bit and mine & f.streams for f in folds):
                edges.append(Edge(node.name, k))
        above[node.name] = bit[node.name]
        for mask in feeding:
            above[node.name] |= mask
        if isinstance(node, Reduce | Accumulate):
            folds.append(_Fold(bit[node.name], _inside(graph, node, types, above, bit)))
    return replace(graph, fiber_fifos=tuple(edges))


def _inside(graph: Graph, node: Node, types: dict[Port, StreamType], above: dict[str, int], bit: dict[str, int]) -> int:
    """Upstream nodes that emit at least one token for every element of the folded fiber: those at its depth or deeper."""
    depth = types[node.inputs[0]].depth
    mask = above[node.name] & ~bit[node.name]
    shallow = (n for n in graph.nodes if bit[n.name] & mask and all(types[p].depth < depth for p in _ports(n, types)))
    for n in shallow:
        mask &= ~bit[n.name]
    return mask


def _ports(node: Node, types: dict[Port, StreamType]) -> list[Port]:
    return [p for k in range(len(node.port_names())) if (p := Port(node.name, k)) in types]
