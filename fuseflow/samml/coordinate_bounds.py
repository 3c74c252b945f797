"""Upper bounds of the coordinates of streams. The verifier needs them where coordinates index a level, and workspaces need them
for keys."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from fuseflow.samml import nodes as n
from fuseflow.samml.stream_tensor_types import UNBOUNDED as UNBOUNDED


def stream_bounds(graph: n.Graph) -> dict[n.Port, int]:
    """Return an exclusive upper bound of the coordinates of every stream of a verified graph."""
    limits: dict[n.Port, int] = {}
    declared = graph.declared
    for node in graph.nodes:
        for k, bound in enumerate(node.bounds([limits[port] for port in node.inputs], declared)):
            limits[n.Port(node.name, k)] = bound
    return limits


LEAST_INDEX_BITS, MOST_INDEX_BITS = 8, 32
"""The least and the most bits of a coordinate or a reference in a circuit. The least hold the two levels of a stop; the most are
a word in accelerator memory."""


def index_bits(graph: n.Graph, bounds: Mapping[n.Port, int]) -> int:
    """Return the width of coordinates and references in the circuit of a graph, given the bounds of its streams: enough to number
    the entries of its largest tensor, if every coordinate has an entry."""
    entries = [prod(max(size, 1) for size in tensor.shape) for tensor in graph.tensors]
    most = max((*entries, *(bound for bound in bounds.values() if bound < UNBOUNDED)), default=0)
    return min(max((most + 1).bit_length(), LEAST_INDEX_BITS), MOST_INDEX_BITS)
