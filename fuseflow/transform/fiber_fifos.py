"""`mark_fiber_fifos` lists the edges that must hold a whole fiber (rule L13).

A stream that is used both before and after a reduction of itself (softmax, norms) waits at its second use until the fiber has been
reduced. Precondition: a verified graph. Effect: `Graph.fiber_fifos` is computed afresh; nothing else changes.

    red = reduce(mask) max;  rep = repeat(red, M_j.crd);  sub = alu(mask, rep)
    ->  fiber_fifos: rep input 1 (M_j.crd), sub input 0 (mask)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import reduce
from operator import or_

from fuseflow.samml.nodes import Edge, Graph


def mark_fiber_fifos(graph: Graph) -> Graph:
    """Return the graph with `fiber_fifos` computed afresh.

    An input of a node is listed if a fold that holds a fiber back is upstream of another input and not of this one, while a
    stream upstream of this one feeds that fold with at least one token for every element of the fiber. Sets of folds are bit
    masks.
    """
    holding = (node.name for node in graph.nodes if node.holds_back)  # what they emit, until the fiber has ended
    folds = {name: 1 << k for k, name in enumerate(holding)}
    behind: dict[str, int] = {}  # the folds upstream of each node, and the node if it is one
    for node in graph.nodes:
        behind[node.name] = folds.get(node.name, 0) | _union(behind[p.node] for p in node.inputs)
    fed, edges = _fed(graph, folds), list[Edge]()
    for node in graph.nodes:
        folded = [behind[p.node] for p in node.inputs]
        for k, port in enumerate(node.inputs):
            if _union(folded[:k] + folded[k + 1 :]) & ~folded[k] & fed[port.node]:
                edges.append(Edge(node.name, k))
    return replace(graph, fiber_fifos=tuple(edges))


def _fed(graph: Graph, folds: Mapping[str, int]) -> dict[str, int]:
    """Return, for every node, the bits of the folds that it or a node upstream feeds, as deep as the folded fiber or deeper."""
    types = graph.types()
    feeds = dict.fromkeys((node.name for node in graph.nodes), 0)  # the folds downstream
    for node in reversed(graph.nodes):
        onward = feeds[node.name] | folds.get(node.name, 0)
        for port in node.inputs:
            feeds[port.node] |= onward
    shallow: dict[int, int] = {}  # depth -> the folds of fibers there
    for node in graph.nodes:
        if node.name in folds:
            depth = types[node.inputs[0]].depth
            shallow[depth] = shallow.get(depth, 0) | folds[node.name]
    fed: dict[str, int] = {}
    for node in graph.nodes:
        emitted = max((types[port].depth for port in node.ports), default=-1)
        mine = feeds[node.name] & _union(bits for depth, bits in shallow.items() if depth <= emitted)
        fed[node.name] = mine | _union(fed[p.node] for p in node.inputs)
    return fed


def _union(sets: Iterable[int]) -> int:
    return reduce(or_, sets, 0)
