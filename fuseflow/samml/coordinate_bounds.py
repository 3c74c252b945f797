"""Upper bounds of the coordinates of streams. The verifier needs them where coordinates index a level, and workspaces for their keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fuseflow.samml import nodes as n
from fuseflow.samml.node import UNBOUNDED as UNBOUNDED


def stream_bounds(graph: n.Graph) -> dict[n.Port, int]:
    """Return an exclusive upper bound of the coordinates of every stream of a verified graph."""
    limits: dict[n.Port, int] = {}
    declared = graph.declared
    for node in graph.nodes:
        for k, bound in enumerate(output_bounds(node, [limits[port] for port in node.inputs], declared)):
            limits[n.Port(node.name, k)] = bound
    return limits


def output_bounds(node: n.Node, inputs: Sequence[int], tensors: Mapping[str, n.TensorDecl]) -> tuple[int, ...]:
    """Return the bound of every output of a node, given those of its inputs. The bound of a full level is its size."""
    return node.bounds(inputs, tensors)
