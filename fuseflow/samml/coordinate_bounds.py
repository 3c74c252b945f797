"""How large the coordinates of a stream can be: what the verifier may let index a level, and what keys of a workspace are made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fuseflow.samml import nodes as n
from fuseflow.samml.node import UNBOUNDED as UNBOUNDED


def stream_bounds(graph: n.Graph) -> dict[n.Port, int]:
    """Of every stream of a verified graph, a number that its coordinates are all below."""
    limits: dict[n.Port, int] = {}
    declared = graph.declared
    for node in graph.nodes:
        for k, bound in enumerate(output_bounds(node, [limits[port] for port in node.inputs], declared)):
            limits[n.Port(node.name, k)] = bound
    return limits


def output_bounds(node: n.Node, inputs: Sequence[int], tensors: Mapping[str, n.TensorDecl]) -> tuple[int, ...]:
    """The bound of every output, given those of the inputs. That of a level with every coordinate is its size."""
    return node.bounds(inputs, tensors)
