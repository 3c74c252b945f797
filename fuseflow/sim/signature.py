"""What the cycles of a graph follow from, so that graphs which run alike are simulated, or estimated, once.

The streams of a graph are references, coordinates and values. Of the nodes only a `drop` of values decides by a value which tokens there
are; to all others a value is a token like any other, and takes its time whatever it is. So two graphs that are equal up to names, which
read tensors of equal shapes, formats and patterns, pass the same tokens at the same cycles, and write results of equal patterns.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, fields

from fuseflow.samml.nodes import Graph, TensorDecl
from fuseflow.sim.memory.layout import tensors_in_memory
from fuseflow.tensors import Tensor


@dataclass(frozen=True, slots=True)
class RegionRepeat:
    """A region that runs like another: `tensors` says what the tensors of that one are called here."""

    name: str
    einsums: tuple[str, ...]
    tensors: Mapping[str, str]


def signature(graph: Graph, read: Mapping[str, Tensor]) -> Hashable | None:
    """What decides on the cycles of a graph, equal for graphs that differ in names and values alone. None if values decide too."""
    if any(node.by_value for node in graph.nodes):
        return None
    names = {name: n for n, name in enumerate(tensors_in_memory(graph))}
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
    written = tuple(names[name] for name in graph.outputs)
    depths = tuple((place[edge.node], edge.input, depth) for edge, depth in graph.depths)
    return repr(nodes), tensors, written, depths


def _declared(declared: TensorDecl, tensor: Tensor | None) -> Hashable:
    arrays = [a for level in tensor.levels for a in level.arrays.values()] if tensor is not None else []
    pattern = tuple(hashlib.sha256(array.tobytes()).hexdigest() for array in arrays)
    return declared.shape, str(declared.format), declared.dtype, repr(declared.fill), declared.tile, pattern
