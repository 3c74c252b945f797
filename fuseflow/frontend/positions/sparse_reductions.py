"""Operators on the stored elements of a sparse matrix, zeros included: the largest, the smallest and the mean of a row times the columns of
another matrix, as `torch.sparse.mm(a, x, "amax")` gives them, and products and elements that are sampled at its entries."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.fx import Node

from fuseflow.frontend.positions.selections import EXTREMES, Call, Handler, Selections, described


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
