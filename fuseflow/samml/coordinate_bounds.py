"""How large the coordinates of a stream can be: what the verifier may let index a level, and what keys of a workspace are made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fuseflow.samml import nodes as n

UNKNOWN = 1 << 62
"""The bound of streams that hold no coordinates."""


def bounds(graph: n.Graph) -> dict[n.Port, int]:
    """Of every stream of a verified graph, a number that its coordinates are all below."""
    found: dict[n.Port, int] = {}
    declared = graph.declared
    for node in graph.nodes:
        for k, bound in enumerate(below(node, [found[port] for port in node.inputs], declared)):
            found[n.Port(node.name, k)] = bound
    return found


def below(node: n.Node, inputs: Sequence[int], tensors: Mapping[str, n.TensorDecl]) -> tuple[int, ...]:
    """The bound of every output, given those of the inputs. That of a level with every coordinate is its size."""
    match node:
        case n.Scan(tensor=tensor, level=level):
            decl = tensors[tensor]
            return decl.shape[decl.format.order[level]], UNKNOWN
        case n.Range(size=size):
            return (size,)
        case n.Join(kind=kind):
            sides = [inputs[crd] for crd, _ in node.sides()]
            joined = {"intersect": min(sides), "union": max(sides), "left": sides[0]}[kind]
            return (joined, *(inputs[k] for _, payloads in node.sides() for k in payloads))
        case n.Align():
            return (inputs[2],)
        case n.Repeat():
            return (inputs[0],)
        case n.Accumulate():
            return (*inputs[1:-1], UNKNOWN)
        case n.Permute(order=order):
            return (*(inputs[level] for level in order), UNKNOWN)
        case n.Drop():
            return tuple(inputs)
        case n.Flatten(size=size):
            outer, inner = inputs
            return (max(outer - 1, 0) * size + inner,)
        case n.SplitLevel(size=size):
            return -(-inputs[0] // size), min(inputs[0], size)
        case n.Fork(lanes=lanes):
            return (inputs[0],) * lanes
        case n.Merge():
            return (max(inputs),)
        case _:
            return (UNKNOWN,) * len(node.port_names())
