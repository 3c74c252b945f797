"""`fifos`: list the edges that must hold a whole fiber (rule L13).

A stream that is used both before and after a reduction of itself (softmax, norms) waits at its second use until the fiber has been
reduced. Precondition: a verified graph. Effect: `Graph.fiber_fifos` is computed afresh; nothing else changes.

    red = reduce(mask) max;  rep = repeat(red, M_j.crd);  sub = alu(mask, rep)
    ->  fiber_fifos: rep input 1 (M_j.crd), sub input 0 (mask)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from operator import or_

from fuseflow.samml.nodes import Accumulate, Edge, Graph, Permute, Port, Reduce


@dataclass(frozen=True, slots=True)
class _Fold:
    """A node that holds a whole fiber back: where, and which nodes stream while it does (a bit mask)."""

    bit: int
    streams: int


def fifos(graph: Graph) -> Graph:
    types = graph.types()
    above: dict[str, int] = {}  # node -> bit mask of itself and everything upstream
    deepest = max((t.depth for t in types.values()), default=0)
    deep = [0] * (deepest + 2)  # depth -> bit mask of the nodes that emit there or deeper
    folds: list[_Fold] = []
    held = 0  # bit mask of the folds
    edges: list[Edge] = []
    for place, node in enumerate(graph.nodes):
        bit = 1 << place
        feeding = [above[p.node] for p in node.inputs]
        for k, mine in enumerate(feeding):
            others = reduce(or_, feeding[:k] + feeding[k + 1 :], 0) & held & ~mine
            if others and any(others & f.bit and mine & f.streams for f in folds):
                edges.append(Edge(node.name, k))
        above[node.name] = reduce(or_, feeding, bit)
        if isinstance(node, Reduce | Accumulate | Permute):
            depth = types[node.inputs[0]].depth
            # Upstream, what emits at least one token for every element of the folded fiber.
            folds.append(_Fold(bit, above[node.name] & deep[depth]))
            held |= bit
        emitted = max((types[Port(node.name, k)].depth for k in range(len(node.port_names()))), default=-1)
        for depth in range(emitted + 1):
            deep[depth] |= bit
    return replace(graph, fiber_fifos=tuple(edges))
