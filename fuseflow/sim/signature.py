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
from dataclasses import dataclass

import numpy as np

from fuseflow.samml.nodes import Graph
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
    structure = graph.structure
    return structure.key, tuple(_pattern(read.get(name)) for name in structure.tensors)


def _pattern(tensor: Tensor | None) -> tuple[str, ...]:
    """Return a digest of each array that says where entries are."""
    arrays = [a for level in tensor.levels for a in level.arrays.values()] if tensor is not None else []
    return tuple(hashlib.sha256(np.ascontiguousarray(array).data).hexdigest() for array in arrays)
