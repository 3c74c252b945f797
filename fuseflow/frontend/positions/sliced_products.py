"""Slices of products with known matrices, as products with the rows that are wanted: a layer that keeps the lowest frequencies of a
Fourier transform computes no others."""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Node

from fuseflow.frontend.positions.selection_operators import product_along
from fuseflow.frontend.positions.selections import Selections, described
from fuseflow.frontend.trace.dependence import Memories, remove_unused
from fuseflow.frontend.trace.fx_origin import is_whole_slice

aten = torch.ops.aten
_SUMS = (aten.add.Tensor, aten.sub.Tensor)


def slice_matrices(selections: Selections) -> None:
    """Replace, in place, every slice of a product with a known matrix, or of a sum of such products, if nothing reads the rest of it."""
    graph = selections.traced.graph_module.graph
    slicer = _Slicer(selections, Memories(graph))
    for node in list(graph.nodes):
        operand = node.args[0] if node.target is aten.slice.Tensor and not is_whole_slice(node) else None
        if (
            isinstance(operand, Node)
            and slicer.takes(operand)
            and all(user.target is aten.slice.Tensor for user in operand.users)
        ):
            with graph.inserting_before(node):
                node.replace_all_uses_with(slicer.sliced(node, operand, *node.args[1:]))
    remove_unused(selections.traced)


def _is_part(node: Node) -> bool:
    return node.target is aten.slice.Tensor and not is_whole_slice(node)


class _Slicer:
    """Adds slices of values. Equal slices are one node."""

    def __init__(self, selections: Selections, memories: Memories) -> None:
        self._selections = selections
        self._memories = memories
        self._added: dict[tuple[Any, ...], Node] = {}

    def takes(self, x: Node) -> bool:
        """Return whether a value is a product or a sum, which nothing writes to and only products, sums and slices read."""
        if self._memories.writers(self._memories.root(x)):
            return False
        if any(user.target not in (product_along, aten.slice.Tensor, *_SUMS) for user in x.users):
            return False
        if x.target in _SUMS:
            return not x.kwargs and all(isinstance(y, Node) and described(y).shape == described(x).shape for y in x.args)
        return x.target is product_along and x.args[0] in self._selections.traced.arguments

    def sliced(self, origin: Node, x: Node, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Node:
        """Return a slice of a value, with the origin of the slice that it is a part of."""
        dim %= described(x).dim()
        key = x, dim, start, end, step
        if key not in self._added:
            self._added[key] = self._slice(origin, *key)
        return self._added[key]

    def _slice(self, origin: Node, x: Node, dim: int, start: Any, end: Any, step: int) -> Node:
        if not self.takes(x):
            return self._selections.computed(origin, aten.slice.Tensor, (x, dim, start, end, step))
        if x.target in _SUMS:
            operands = [self.sliced(origin, y, dim, start, end, step) for y in x.args if isinstance(y, Node)]
            return self._selections.computed(x, x.target, tuple(operands))
        matrix, y, along = x.args
        assert isinstance(matrix, Node) and isinstance(y, Node) and isinstance(along, int)
        if along % described(x).dim() == dim:
            weights = self._selections.tensor_of(matrix).to_dense()[start:end:step]
            rows, columns = weights.nonzero(as_tuple=True)
            shape, name = (weights.shape[0], weights.shape[1]), self._selections.traced.arguments[matrix].name
            matrix = self._selections.matrix(rows, columns, weights[rows, columns], shape, name)
        else:
            y = self.sliced(origin, y, dim, start, end, step)
        return self._selections.computed(x, product_along, (matrix, y, along))
