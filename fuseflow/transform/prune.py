"""`prune`: drop what no output needs.

Precondition: a verified graph. Effect: nodes that no write reaches are removed, and tensors that nothing reads or writes any more; the
order and names of the rest stay. Graphs of our own compiler have nothing to prune; graphs of other tools may.
"""

from __future__ import annotations

from dataclasses import replace

from fuseflow.samml.nodes import Graph, Names, Writes, upstream


def prune(graph: Graph) -> Graph:
    writes = [n for n in graph.nodes if isinstance(n, Writes)]
    needed = {n.name for n in writes} | upstream(graph.by_name, (p for n in writes for p in n.inputs))
    nodes = tuple(n for n in graph.nodes if n.name in needed)
    used = {n.tensor for n in nodes if isinstance(n, Names)}
    return replace(
        graph,
        nodes=nodes,
        tensors=tuple(t for t in graph.tensors if t.name in used),
        fiber_fifos=tuple(e for e in graph.fiber_fifos if e.node in needed),
        depths=tuple((e, d) for e, d in graph.depths if e.node in needed),
    )
