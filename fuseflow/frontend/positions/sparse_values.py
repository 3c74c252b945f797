"""Sparse tensors that a model makes of known places and computed numbers, and operators on the entries of sparse tensors.

In a program such a tensor is a matrix that is stored at its places. It is the product of its values with `P[i, j, e]`, which is 1 where
entry e has row i and column j, and the values are the product of the matrix with the same P. Where the values come from rows and columns,
as in `(a[target] + b[source]).exp()`, `edge_matrix` rewrites them as matrices, and no product is left.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.fx import Node

from fuseflow.frontend.positions.selection_operators import entries_at, placed, scores_at_edges
from fuseflow.frontend.positions.selections import EXTREMES, Call, Handler, Selections, described
from fuseflow.frontend.torch_tensors import BLOCKED_LAYOUTS
from fuseflow.frontend.trace import fx_origin
from fuseflow.frontend.trace.dependence import schema_arguments
from fuseflow.frontend.trace.operator_support import SPARSE_CONSTRUCTION
from fuseflow.frontend.trace.stored_places import entry_places

_INFINITY = float("inf")


def _constructed(call: Call, *_: Any, **__: Any) -> Node | None:
    """Return the matrix of a tensor that is made of known indices and of values that are data."""
    stored = call.selections.places.get(call.node)
    values = next((value for argument, value in schema_arguments(call.node) if argument.name == "values"), None)
    if stored is None or not isinstance(values, Node):
        return None
    if stored.layout in BLOCKED_LAYOUTS:
        values = call.computed(torch.ops.aten.reshape.default, values, [-1])
    return call.computed(placed, _ones(call, values, stored, last=True), values)


def _values(call: Call, x: Node) -> Node | None:
    stored = call.selections.places.get(x)
    if stored is None:
        return None
    values = x.args[1] if x.target is placed else call.computed(entries_at, _ones(call, x, stored, last=False), x)
    assert isinstance(values, Node)
    return call.reshaped(values, described(call.node).shape)


def _ones(call: Call, values: Node, stored: Tensor, *, last: bool) -> Node:
    """Return an argument with a one for each entry: at its place and number, or at its number and place."""
    places = entry_places(stored)
    dims, count = places.shape
    numbers, shape = torch.arange(count).unsqueeze(0), tuple(stored.shape[:dims])
    indices = torch.cat((places, numbers) if last else (numbers, places))
    ones = torch.ones(count, dtype=described(values).dtype)
    extents = (*shape, count) if last else (count, *shape)
    return call.argument("places", torch.sparse_coo_tensor(indices, ones, extents).coalesce())


def _softmax(call: Call, x: Node, dim: int, *_: Any, **__: Any) -> Node | None:
    """Return the softmax, or its logarithm, over the stored entries of each row, or column. An absent entry stays absent."""
    name = fx_origin.short_name(call.node.target)
    edges = _stored_ones(call, x)
    if edges is None:
        return None
    scores = call.computed(scores_at_edges, edges, x, 0, -_INFINITY)
    if name == "_sparse_softmax" and edges is not x:
        return call.computed(torch.ops.aten.softmax.int, scores, dim)
    function = torch.ops.aten.softmax.int if name == "_sparse_softmax" else torch.ops.aten.log_softmax.int
    return call.computed(scores_at_edges, edges, call.computed(function, scores, dim), 0, 0.0)


def _stored_ones(call: Call, x: Node) -> Node | None:
    """Return a value that is not 0 where a sparse matrix stores an entry: an argument of ones if its places are known, or the matrix
    itself if it was made of a dense one. None for other tensors."""
    stored = call.selections.places.get(x)
    if stored is None:
        return x if x in call.selections.made_of_dense else None
    places = entry_places(stored)
    if len(places) != 2:
        return None
    ones = torch.ones(places.shape[1], dtype=described(x).dtype)
    return call.matrix(places[0], places[1], ones, (stored.shape[0], stored.shape[1]), "edges")


SPARSE_VALUES: dict[str, Handler] = {
    **dict.fromkeys(SPARSE_CONSTRUCTION.names, _constructed),
    **dict.fromkeys(("values", "_values"), _values),
    **dict.fromkeys(("_sparse_softmax", "_sparse_log_softmax"), _softmax),
}
"""The replacement of each operator, by its name."""


def extreme_of_row(a: Tensor, pattern: Tensor, empty: Tensor, x: Tensor, largest: bool) -> Tensor:
    """Return the largest or the smallest of `a[i, k] * x[k, j]` over the entries k that row i stores, which `pattern` marks, and
    0 for a row without any, which `empty` marks."""
    absent = float("-inf") if largest else float("inf")
    products = torch.where(pattern.unsqueeze(-1), a.unsqueeze(-1) * x.unsqueeze(0), absent)
    extreme = products.amax(1) if largest else products.amin(1)
    return torch.where(empty.unsqueeze(-1) == 0, extreme, 0.0)


def mean_of_row(a: Tensor, degrees: Tensor, x: Tensor) -> Tensor:
    """Return the sum of `a[i, k] * x[k, j]` over the entries k that row i stores, divided by their number, the `degrees`."""
    return torch.mm(a, x) / degrees.unsqueeze(-1)


def _reduced_product(call: Call, a: Node, x: Node, reduce: str = "sum") -> Node | None:
    if reduce not in (*EXTREMES, "mean"):
        return None
    pattern = call.selections.pattern(a)
    if pattern is None:
        return None
    stored = call.selections.tensor_of(pattern).crow_indices().diff()
    if reduce == "mean":
        degrees = call.argument("degrees", stored.clamp(min=1).to(described(x).dtype))
        return call.computed(mean_of_row, a, degrees, x)
    empty = call.argument("empty", (stored == 0).to(torch.int32))
    result = call.computed(extreme_of_row, a, pattern, empty, x, EXTREMES[reduce] == "max")
    assert described(result).shape == described(call.node).shape
    return result


def sampled_product(pattern: Tensor, s: Tensor, a: Tensor, b: Tensor, beta: float, alpha: float) -> Tensor:
    """Return `beta * s + alpha * (a @ b)` at the entries that `s` stores, and 0 elsewhere."""
    sampled = torch.where(pattern, torch.mm(a, b) * alpha, 0.0)
    return sampled if beta == 0 else s * beta + sampled


def sampled_elements(pattern: Tensor, x: Tensor) -> Tensor:
    """Return the elements of `x` at the entries of a pattern, and 0 elsewhere."""
    return torch.where(pattern, x, 0.0)


def _sampled_product(call: Call, s: Node, a: Node, b: Node, *, beta: float = 1.0, alpha: float = 1.0) -> Node | None:
    pattern = _needed_pattern(call.selections, s)
    return None if pattern is None else call.computed(sampled_product, pattern, s, a, b, beta, alpha)


def _sampled_elements(call: Call, x: Node, mask: Node) -> Node | None:
    pattern = _needed_pattern(call.selections, mask)
    return None if pattern is None else call.computed(sampled_elements, pattern, x)


def _needed_pattern(selections: Selections, sparse: Node) -> Node | None:
    """Return the pattern of a sparse matrix that may store zeros. None if it stores none, or if the pattern is not known."""
    argument = selections.traced.arguments.get(sparse)
    if argument is not None:
        tensor = argument.tensor.coalesce() if argument.tensor.layout == torch.sparse_coo else argument.tensor
        if tensor.values().all():
            return None
    return selections.pattern(sparse)


NEIGHBOURS: dict[str, Handler] = {
    "_sparse_mm": _reduced_product,
    "sparse_sampled_addmm": _sampled_product,
    "sparse_mask": _sampled_elements,
}
"""The replacement of each operator, by its name."""
