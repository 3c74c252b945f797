"""`share`: one node for several that do the same.

Precondition: a verified graph. Effect: a node that equals an earlier one in all but its name leaves, and its readers read the earlier one;
writes stay. Values stay the same.

    a = load(A_i.ref) A;  b = load(A_i.ref) A;  c = alu(a, b) add
    ->  a = load(A_i.ref) A;  c = alu(a, a) add
"""

from __future__ import annotations

from dataclasses import replace

from fuseflow.samml.nodes import Graph, Node, WriteLevel, WriteValues


def share(graph: Graph) -> Graph:
    kept: dict[Node, str] = {}  # a node without its name -> the first that is like it
    names: dict[str, str] = {}
    nodes = []
    for node in graph.nodes:
        node = replace(node, inputs=tuple(port._replace(node=names[port.node]) for port in node.inputs))
        first = kept.setdefault(replace(node, name=""), node.name)
        names[node.name] = node.name if isinstance(node, WriteLevel | WriteValues) else first
        if names[node.name] == node.name:
            nodes.append(node)
    return replace(graph, nodes=tuple(nodes))
