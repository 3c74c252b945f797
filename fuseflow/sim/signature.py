"""The signature of a graph holds everything that determines its cycles. Graphs with the same signature are simulated, or
estimated, only once.

The streams of a graph are references, coordinates and values. Only a `drop` of values decides by values which tokens are emitted.
To all other nodes a value is a token like any other, and takes its time whatever it is. So two graphs pass the same tokens in the
same cycles if they are equal up to names and read tensors of equal shapes, formats and patterns. The patterns of their results
are equal, too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, fields

import numpy as np

from fuseflow.memory.layout import used_tensors
from fuseflow.samml.nodes import Graph, TensorDecl
from fuseflow.tensors import Tensor


@dataclass(frozen=True, slots=True)
class RegionRepeat:
    """A region with the same signature as an earlier one. `tensors` maps the names of the earlier region's tensors to the names
    of the matching tensors in this region."""

    name: str
    einsums: tuple[str, ...]
    tensors: Mapping[str, str]


def signature(graph: Graph, read: Mapping[str, Tensor]) -> Hashable | None:
    """Return the signature of a graph, which is equal for graphs that differ only in names and values. It is None if the cycles depend
    on values, too. `read` holds the tensors that the graph reads, by name."""
    if any(node.by_value for node in graph.nodes):
        return None
    names = {name: n for n, name in enumerate(used_tensors(graph))}
    place = {node.name: n for n, node in enumerate(graph.nodes)}
    nodes = tuple(
        (
            type(node).__name__,
            tuple((place[port.node], port.output) for port in node.inputs),
            tuple(
                names[value] if field.name == "tensor" else value
                for field in fields(node)
                if field.name not in ("name", "inputs")
                for value in (getattr(node, field.name),)
            ),
        )
        for node in graph.nodes
    )
    tensors = tuple(_declared(graph.declared[name], read.get(name)) for name in names)
    shared = tuple(
        (names[name], names.get(decl.outer[0]), decl.outer[1]) for name in names if (decl := graph.declared[name]).outer
    )
    written = tuple(names[name] for name in graph.outputs)
    depths = tuple((place[edge.node], edge.input, depth) for edge, depth in graph.depths)
    hops = tuple((place[edge.node], edge.input, hops.count, hops.slots) for edge, hops in graph.hops)
    turns = tuple((place[name], turn) for name, turn in graph.turns)
    inside = tuple((place[name], hops) for name, hops in graph.node_hops)
    return repr(nodes), tensors, shared, written, depths, hops, turns, inside


def _declared(declared: TensorDecl, tensor: Tensor | None) -> Hashable:
    arrays = [a for level in tensor.levels for a in level.arrays.values()] if tensor is not None else []
    pattern = tuple(hashlib.sha256(np.ascontiguousarray(array).data).hexdigest() for array in arrays)
    return declared.shape, str(declared.format), declared.dtype, repr(declared.fill), declared.tile, declared.placement, pattern
