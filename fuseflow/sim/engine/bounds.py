"""How large the coordinates of a stream can be: keys of a workspace are numbers made of them."""

from __future__ import annotations

from collections.abc import Sequence

from fuseflow.samml import nodes as n

UNKNOWN = 1 << 62


def bounds(graph: n.Graph) -> dict[n.Port, int]:
    """Of every stream of coordinates, a number that they are all below; UNKNOWN for other streams."""
    found: dict[n.Port, int] = {}
    for node in graph.nodes:
        below = _bounds(node, [found[port] for port in node.inputs], graph)
        for k in range(len(node.port_names())):
            found[n.Port(node.name, k)] = below[k] if k < len(below) else UNKNOWN
    return found


def _bounds(node: n.Node, inputs: Sequence[int], graph: n.Graph) -> Sequence[int]:
    match node:
        case n.Scan(tensor=tensor, level=level):
            decl = graph.declared[tensor]
            return (decl.shape[decl.format.order[level]],)
        case n.Range(size=size):
            return (size,)
        case n.Join(kind=kind):
            sides = [inputs[crd] for crd, _ in node.sides()]
            crd = {"intersect": min(sides), "union": max(sides), "left": sides[0]}[kind]
            return (crd, *(inputs[k] for _, payloads in node.sides() for k in payloads))
        case n.Align():
            return (inputs[2],)
        case n.Repeat():
            return (inputs[0],)
        case n.Accumulate():
            return inputs[1:-1]
        case n.Drop():
            return inputs
        case n.Flatten(size=size):
            return (inputs[0] * size,)
        case n.SplitLevel(size=size):
            return (-(-inputs[0] // size), size)
        case _:
            return (inputs[0],) * len(node.port_names()) if inputs else ()
