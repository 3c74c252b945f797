"""Auxiliary tensors: inputs that a graph declares itself, where a primitive of the public schema needs a tensor and fuseflow's
primitive needs none.

There is one kind: a dense vector whose scan emits every coordinate of a dimension. Only its size matters, and no graph loads its
values, so users need not provide it: its name has the size. The names have an `@`, which no name of a program can have.
"""

from __future__ import annotations

import numpy as np

from fuseflow.samml.graph import Graph
from fuseflow.samml.stream_tensor_types import TensorDecl
from fuseflow.tensors import Format, Tensor, pack


def dense_dimension(size: int) -> TensorDecl:
    """Return the declaration of the auxiliary vector whose scan emits the coordinates 0 to size - 1."""
    return TensorDecl(f"dimension@{size}", (size,), Format.dense(1))


def is_auxiliary(decl: TensorDecl) -> bool:
    """Return whether a tensor is auxiliary."""
    return len(decl.shape) == 1 and decl == dense_dimension(decl.shape[0])


def auxiliary_tensors(graph: Graph) -> dict[str, Tensor]:
    """Return the auxiliary tensors of a graph by name."""
    return {t.name: pack(np.zeros(t.shape, dtype=np.float32), t.format) for t in graph.tensors if is_auxiliary(t)}
