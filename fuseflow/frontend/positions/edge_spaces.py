"""Which dimensions of a traced model are the same index, and which of these indices run over the edges of a graph.

For example, in `(a[target] + b[source]).relu()` the first dimension of the sum, of the relu and of both gathers is one index, and the two
selections say that it runs over edges: each of its coordinates has one target and one source.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import prod
from typing import TypeAlias

import torch
from torch import Tensor
from torch.fx import Node

from fuseflow.frontend.positions.selection_products import extreme_along, product_along
from fuseflow.frontend.positions.selections import Selections
from fuseflow.frontend.trace import fx_origin
from fuseflow.frontend.trace.dependence import described_tensor

Slot: TypeAlias = tuple[Node, int]
"""A dimension of a value."""

UNARY = frozenset({"detach", "dropout", "clone", "contiguous", "alias"})
"""Operators beside the pointwise ones whose result has the dimensions of their operand."""
RESHAPES = frozenset({"view", "reshape", "_unsafe_view", "unsqueeze", "squeeze"})
LINEAR = frozenset({"linear"})
SUMS = frozenset({"sum", "mean"})
_SELECTIONS = (product_along, extreme_along)


@dataclass(frozen=True, slots=True)
class EdgeSpace:
    """An index over edges. Edge e goes to row `target[e]` and column `source[e]` of a matrix of this `shape`, and no two go to one
    place. `dims` has the values that have the index, with its dimension in each."""

    target: Tensor
    source: Tensor
    shape: tuple[int, int]
    dims: dict[Node, int]

    def is_target(self, positions: Tensor) -> bool:
        return torch.equal(positions, self.target)


def is_pointwise(node: Node) -> bool:
    return isinstance(node.target, torch._ops.OpOverload) and torch.Tag.pointwise in node.target.tags


def is_leaf(selections: Selections, node: Node) -> bool:
    """Return whether the numbers of a value are known before import, so that they can be moved to other places then."""
    return node in selections.traced.arguments or selections.dependences.get(node) == "structure"


def positions_of(selection: Tensor, dim: int) -> Tensor | None:
    """Return where each coordinate of dimension `dim` of a sparse matrix has its one entry, or None if some have none or several."""
    entries = selection.to_sparse().coalesce().indices()
    order = torch.argsort(entries[dim], stable=True)
    if not torch.equal(entries[dim][order], torch.arange(selection.shape[dim])):
        return None
    return entries[1 - dim][order]


def next_edge_space(selections: Selections) -> EdgeSpace | None:
    """Return an index of the model that runs over edges, or None if there is none that can become a matrix."""
    indices = _Indices(selections)
    for node in selections.traced.graph_module.graph.nodes:
        indices.read(node)
    for slots in indices.classes():
        space = _edge_space(selections, slots)
        if space is not None:
            return space
    return None


def _edge_space(selections: Selections, slots: list[Slot]) -> EdgeSpace | None:
    matrices = {node for node, _ in slots if _is_selection(node)}
    ends = [(node, dim) for node, dim in slots if node in matrices]
    dims = {node: dim for node, dim in slots if node not in matrices}
    if {dim for _, dim in ends} != {0, 1} or len(dims) + len(ends) != len(slots):
        return None
    if any(node.target in _SELECTIONS and _selected_dim(node) != dim for node, dim in dims.items()):
        return None  # it is selected from along another dimension
    different: list[tuple[Tensor, int]] = []
    for node, dim in sorted(ends, key=lambda end: -end[1]):  # scatters first: they add up to the target
        tensor = selections.tensor_of(node)
        positions = positions_of(tensor, dim)
        if positions is None or (dim == 0 and not bool((tensor.values() == 1).all())):
            return None
        if not any(torch.equal(positions, other) for other, _ in different):
            different.append((positions, tensor.shape[1 - dim]))
    if len(different) != 2:
        return None
    (target, rows), (source, columns) = different
    if len(torch.unique(target * columns + source)) < len(target):
        return None  # two edges between the same nodes
    return EdgeSpace(target, source, (rows, columns), dims)


def _is_selection(node: Node) -> bool:
    return any(user.target in _SELECTIONS and user.args[0] is node for user in node.users)


@dataclass(slots=True)
class _Indices:
    """Sets of dimensions that are one index. A dimension that an operator treats in a way that is not known here is `opaque`."""

    selections: Selections
    parents: dict[Slot, Slot] = field(default_factory=dict)
    opaque: set[Slot] = field(default_factory=set)

    def classes(self) -> Iterator[list[Slot]]:
        """Yield the indices that no operator treats in an unknown way, each with its dimensions."""
        closed = {self.root(slot) for slot in self.opaque}
        members: dict[Slot, list[Slot]] = {}
        for slot in list(self.parents):
            members.setdefault(self.root(slot), []).append(slot)
        yield from (slots for root, slots in members.items() if root not in closed)

    def root(self, slot: Slot) -> Slot:
        while self.parents.setdefault(slot, slot) != slot:
            slot = self.parents[slot]
        return slot

    def read(self, node: Node) -> None:
        """Join the dimensions of an operator's result with the dimensions of its operands."""
        if node.op == "placeholder" or (node.op == "call_function" and is_leaf(self.selections, node)):
            return
        pairs = list(_pairs(node))
        for a, b in pairs:
            self.parents[self.root(a)] = self.root(b)
        joined = {slot for pair in pairs for slot in pair}
        for value in [node, *node.all_input_nodes]:
            described = described_tensor(value)
            for dim, extent in enumerate(described.shape if described is not None else ()):
                if extent != 1 and (value, dim) not in joined:
                    self.opaque.add((value, dim))


def _pairs(node: Node) -> Iterator[tuple[Slot, Slot]]:
    """Yield pairs of a dimension of an operand and the same dimension of the result."""
    name, result = fx_origin.short_name(node.target).rstrip("_"), described_tensor(node)
    if node.op != "call_function" or result is None:
        return
    if node.target in _SELECTIONS:
        yield from _selection_pairs(node, result)
    elif is_pointwise(node) or name in UNARY:
        for operand in node.all_input_nodes:
            yield from _aligned(operand, node, result)
    elif name in RESHAPES:
        yield from _reshape_pairs(node.all_input_nodes[0], node, result)
    elif name in LINEAR:
        assert isinstance(node.args[0], Node)
        yield from (((node.args[0], dim), (node, dim)) for dim in range(result.dim() - 1))
    elif name in SUMS and len(node.args) > 1 and isinstance(node.args[0], Node) and isinstance(node.args[1], list):
        yield from _sum_pairs(node.args[0], node)


def _selection_pairs(node: Node, result: Tensor) -> Iterator[tuple[Slot, Slot]]:
    matrix, x, dim = node.args[0], node.args[1 if node.target is product_along else 2], _selected_dim(node)
    assert isinstance(matrix, Node) and isinstance(x, Node)
    yield (matrix, 0), (node, dim)
    yield (matrix, 1), (x, dim)
    yield from (((x, other), (node, other)) for other in range(result.dim()) if other != dim)


def _selected_dim(node: Node) -> int:
    dim, result = node.args[2 if node.target is product_along else 3], described_tensor(node)
    assert isinstance(dim, int) and result is not None
    return dim % result.dim()


def _aligned(operand: Node, node: Node, result: Tensor) -> Iterator[tuple[Slot, Slot]]:
    described = described_tensor(operand)
    assert described is not None
    more = result.dim() - described.dim()
    for dim, extent in enumerate(described.shape):
        if extent == result.shape[dim + more]:
            yield (operand, dim), (node, dim + more)


def _reshape_pairs(operand: Node, node: Node, result: Tensor) -> Iterator[tuple[Slot, Slot]]:
    """Yield the dimensions that a reshape leaves whole, as pairs: both their extents and the products of the extents before them
    are equal."""
    described = described_tensor(operand)
    assert described is not None
    places = {(prod(result.shape[:dim]), extent): dim for dim, extent in enumerate(result.shape)}
    for dim, extent in enumerate(described.shape):
        if (prod(described.shape[:dim]), extent) in places:
            yield (operand, dim), (node, places[prod(described.shape[:dim]), extent])


def _sum_pairs(operand: Node, node: Node) -> Iterator[tuple[Slot, Slot]]:
    described = described_tensor(operand)
    assert described is not None and isinstance(node.args[1], list)
    over = {dim % described.dim() for dim in node.args[1] if isinstance(dim, int)}
    keep = bool(node.args[2]) if len(node.args) > 2 else bool(node.kwargs.get("keepdim", False))
    kept = [dim for dim in range(described.dim()) if keep or dim not in over]
    yield from (((operand, dim), (node, place)) for place, dim in enumerate(kept) if dim not in over)
