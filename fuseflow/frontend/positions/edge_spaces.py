"""Which dimensions of a traced model are the same index, and which of these indices run over the edges of a graph.

For example, in `(a[target] + b[source]).relu()` the first dimension of the sum, of the relu and of both gathers is one index, and the two
selections say that it runs over edges: each of its coordinates has one target and one source. A softmax over the edges of each target is
recognized from its operators.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import TypeAlias

import networkx as nx
import torch
from torch import Tensor
from torch.fx import Node

from fuseflow.frontend.positions.selection_operators import entries_at, extreme_along, placed, product_along
from fuseflow.frontend.positions.selections import Selections, described
from fuseflow.frontend.trace import fx_origin
from fuseflow.frontend.trace.dependence import described_tensor

Slot: TypeAlias = tuple[Node, int]
"""A dimension of a value."""

UNARY = frozenset({"detach", "dropout", "clone", "contiguous", "alias", "to", "_to_copy"})
"""Operators beside the pointwise ones whose result has the dimensions of their operand."""
RESHAPES = frozenset({"view", "reshape", "_unsafe_view", "unsqueeze", "squeeze"})
LINEAR = frozenset({"linear"})
SUMS = frozenset({"sum", "mean"})
_SELECTIONS = (product_along, extreme_along)
OF_ENTRIES = (placed, entries_at)
"""Products with a tensor that has the row and the column of each edge."""
_LARGEST_GUARD = 1e-12
"""The largest number that may be added to a sum. As the sum is at least 1, so small a number is lost in single precision."""


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


def selected(node: Node) -> tuple[Node, Node, int]:
    """Return the selection, the tensor and the dimension of a product with a selection, or of an extreme of a selection."""
    matrix, x, dim = node.args[:3] if node.target is product_along else (node.args[0], *node.args[2:4])
    assert isinstance(matrix, Node) and isinstance(x, Node) and isinstance(dim, int)
    return matrix, x, dim % described(node).dim()


def next_edge_space(selections: Selections) -> EdgeSpace | None:
    """Return an index of the model that runs over edges, or None if there is none that can become a matrix."""
    spaces = (_edge_space(selections, slots) for slots in _indices(selections))
    return next((space for space in spaces if space is not None), None)


def _edge_space(selections: Selections, slots: list[Slot]) -> EdgeSpace | None:
    users = (*_SELECTIONS, *OF_ENTRIES)
    matrices = {node for node, _ in slots if any(user.target in users and user.args[0] is node for user in node.users)}
    ends = [(node, dim) for node, dim in slots if node in matrices]
    dims = {node: dim for node, dim in slots if node not in matrices}
    if len(dims) + len(ends) != len(slots) or not ({dim for _, dim in ends} >= {0, 1} or _has_places(selections, matrices)):
        return None
    if any(node.target in _SELECTIONS and selected(node)[2] != dim for node, dim in dims.items()):
        return None  # it is selected from along another dimension
    different: list[tuple[Tensor, int]] = []
    # Places of entries come first, rows before columns. Scatters come before gathers: they add up to the target.
    for node, dim in sorted(ends, key=lambda end: (-selections.tensor_of(end[0]).dim(), -end[1])):
        places = _places_of(selections.tensor_of(node), dim)
        if not places:
            return None
        for positions, extent in places:
            if not any(extent == size and torch.equal(positions, other) for other, size in different):
                different.append((positions, extent))
    if len(different) != 2:
        return None
    (target, rows), (source, columns) = different
    if len(torch.unique(target * columns + source)) < len(target):
        return None  # two edges between the same nodes
    return EdgeSpace(target, source, (rows, columns), dims)


def _has_places(selections: Selections, matrices: set[Node]) -> bool:
    return any(selections.tensor_of(matrix).dim() == 3 for matrix in matrices)


def _places_of(selection: Tensor, dim: int) -> list[tuple[Tensor, int]]:
    """Return the places from where, or to where, a selection takes each edge, and how many there are: the rows, or the columns, or both.
    Edges are dimension `dim`. There are none if some edge has no place or several."""
    if selection.dim() == 3:
        entries = selection.coalesce().indices()
        order = torch.argsort(entries[dim])
        return [(entries[d][order], selection.shape[d]) for d in range(3) if d != dim]
    positions = positions_of(selection, dim)
    if positions is None or (dim == 0 and not bool((selection.values() == 1).all())):
        return []
    return [(positions, selection.shape[1 - dim])]


def _indices(selections: Selections) -> Iterator[list[Slot]]:
    """Yield the indices that no operator treats in a way that is not known here, each with the dimensions that are that index."""
    same: nx.Graph[Slot] = nx.Graph()
    opaque = set[Slot]()
    for node in selections.traced.graph_module.graph.nodes:
        if node.op == "placeholder" or (node.op == "call_function" and is_leaf(selections, node)):
            continue
        pairs = list(_pairs(node))
        same.add_edges_from((result, operand) for operand, result in pairs)
        joined = {slot for pair in pairs for slot in pair}
        for value in [node, *node.all_input_nodes]:
            tensor = described_tensor(value)
            for dim, extent in enumerate(() if tensor is None else tensor.shape):
                if extent != 1 and (value, dim) not in joined:
                    opaque.add((value, dim))
    order = {slot: position for position, slot in enumerate(same)}
    for slots in nx.connected_components(same):
        if opaque.isdisjoint(slots):
            yield sorted(slots, key=order.__getitem__)


def _pairs(node: Node) -> Iterator[tuple[Slot, Slot]]:
    """Yield pairs of a dimension of an operand and the same dimension of the result."""
    name, result = fx_origin.short_name(node.target).rstrip("_"), described_tensor(node)
    if node.op != "call_function" or result is None:
        return
    is_pointwise = isinstance(node.target, torch._ops.OpOverload) and torch.Tag.pointwise in node.target.tags
    if node.target in _SELECTIONS:
        matrix, x, dim = selected(node)
        yield (matrix, 0), (node, dim)
        yield (matrix, 1), (x, dim)
        yield from (((x, other), (node, other)) for other in range(result.dim()) if other != dim)
    elif node.target in OF_ENTRIES:
        places, operand = node.args
        assert isinstance(places, Node) and isinstance(operand, Node)
        edges, whole = (operand, node) if node.target is placed else (node, operand)
        if described(places).dim() == 3:  # the entries of a matrix
            yield (places, 2 if node.target is placed else 0), (edges, 0)
            yield from (((edges, dim), (whole, dim + 1)) for dim in range(1, described(edges).dim()))
    elif is_pointwise or name in UNARY:
        for operand in node.all_input_nodes:
            shape = described(operand).shape
            more = result.dim() - len(shape)
            yield from (((operand, d), (node, d + more)) for d, extent in enumerate(shape) if extent == result.shape[d + more])
    elif name in RESHAPES:
        yield from _reshape_pairs(node.all_input_nodes[0], node, result)
    elif name in LINEAR:
        assert isinstance(node.args[0], Node)
        yield from (((node.args[0], dim), (node, dim)) for dim in range(result.dim() - 1))
    elif name in SUMS and len(node.args) > 1 and isinstance(node.args[0], Node) and isinstance(node.args[1], list):
        yield from _sum_pairs(node.args[0], node)


def _reshape_pairs(operand: Node, node: Node, result: Tensor) -> Iterator[tuple[Slot, Slot]]:
    """Yield the dimensions that a reshape leaves whole: their extents and the products of the extents before them are equal."""
    shape = described(operand).shape
    places = {(prod(result.shape[:dim]), extent): dim for dim, extent in enumerate(result.shape)}
    for dim, extent in enumerate(shape):
        if (prod(shape[:dim]), extent) in places:
            yield (operand, dim), (node, places[prod(shape[:dim]), extent])


def _sum_pairs(operand: Node, node: Node) -> Iterator[tuple[Slot, Slot]]:
    rank = described(operand).dim()
    assert isinstance(node.args[1], list)
    over = {dim % rank for dim in node.args[1] if isinstance(dim, int)}
    keep = node.args[2] if len(node.args) > 2 else node.kwargs.get("keepdim", False)
    kept = [dim for dim in range(rank) if keep or dim not in over]
    yield from (((operand, dim), (node, place)) for place, dim in enumerate(kept) if dim not in over)


def scores_of_softmax(division: Node) -> tuple[Node, Node] | None:
    """Return the scores whose softmax over the edges of each target the node `division` computes, as graph networks write it, and the
    selection that adds up the exponentials. None for others.

        maximum = scatter_max(scores, target)
        exponentials = exp(scores - maximum[target])
        weights = exponentials / (scatter_sum(exponentials, target) + 1e-16)[target]

    The small number keeps a sum that is at least 1 as it is, since the largest exponential of each target is 1. It is there for targets
    without edges, which have no weights to be divided. Where the edges come from a sparse matrix, the maximum of a target without edges is
    minus infinity and is replaced by a zero, `where(isinf(maximum), 0, maximum)`, which no edge reads: scores are finite numbers.
    """
    exponentials, divisor = _operands(division, "div")
    (shifted,) = _operands(exponentials, "exp")[:1]
    scores, subtracted = _operands(shifted, "sub")
    total, maximum = _without_guard(_gathered(divisor)), _finite(_gathered(subtracted))
    if scores is None or divisor is None or subtracted is None or total is None or maximum is None:
        return None
    if total.target is not product_along or total.args[1] is not exponentials:
        return None
    if maximum.target is not extreme_along or not maximum.args[5] or _plain(maximum.args[2]) is not _plain(scores):
        return None
    selection = total.args[0]
    same_edges = divisor.args[0] is subtracted.args[0] and selection is maximum.args[0]
    return (scores, selection) if same_edges and isinstance(selection, Node) else None


def _operands(node: object, name: str) -> tuple[Node | None, Node | None]:
    """Return the first two operands of an operator of this name that are values. Return None for an operand that is no value, and
    for both operands of any other node."""
    if not isinstance(node, Node) or node.op != "call_function" or fx_origin.short_name(node.target).rstrip("_") != name:
        return None, None
    first, second = (*node.args, None, None)[:2]
    return (first if isinstance(first, Node) else None), (second if isinstance(second, Node) else None)


def _plain(node: object) -> object:
    operand, _ = _operands(node, "detach")
    return node if operand is None else _plain(operand)


def _gathered(node: Node | None) -> Node | None:
    """Return the operand whose rows the gather `node` takes, or None if the node is no gather."""
    if node is not None and node.target is product_along and isinstance(node.args[1], Node):
        return node.args[1]
    return None


def _finite(node: Node | None) -> Node | None:
    """Return the operand of a node that replaces infinities by 0, or the node itself if it does not."""
    condition, *_ = _operands(node, "where")
    tested, _ = _operands(condition, "isinf")
    if node is None or tested is None:
        return node
    return tested if node.args[1] == 0 and node.args[2] is tested else node


def _without_guard(node: Node | None) -> Node | None:
    operand, _ = _operands(node, "add")
    if node is None or operand is None:
        return node
    guard = node.args[1]
    return operand if isinstance(guard, float) and 0 <= guard <= _LARGEST_GUARD else node
