"""The largest, the smallest and the mean of what a row of a sparse matrix stores, times the columns of another, as
`torch.sparse.mm(a, x, "amax")` gives them."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.fx import Node

from fuseflow.frontend.known_positions import Handler
from fuseflow.frontend.selections import EXTREMES, Selections, described, named


def extreme_of_row(a: Tensor, pattern: Tensor, empty: Tensor, x: Tensor, largest: bool) -> Tensor:
    """Return the largest or the smallest of `a[i, k] * x[k, j]` over the entries k that row i stores, and 0 for a row without any."""
    absent = float("-inf") if largest else float("inf")
    products = torch.where(pattern.unsqueeze(-1), a.unsqueeze(-1) * x.unsqueeze(0), absent)
    extreme = products.amax(1) if largest else products.amin(1)
    return torch.where(empty.unsqueeze(-1) == 0, extreme, 0.0)


def mean_of_row(a: Tensor, degrees: Tensor, x: Tensor) -> Tensor:
    """Return the sum of `a[i, k] * x[k, j]` over the entries k that row i stores, divided by how many these are."""
    return torch.mm(a, x) / degrees.unsqueeze(-1)


def _reduced_product(selections: Selections, node: Node) -> Node | None:
    a, x, reduce = node.args[:3] if len(node.args) > 2 else (None, None, None)
    if not isinstance(a, Node) or not isinstance(x, Node) or reduce not in (*EXTREMES, "mean"):
        return None
    pattern = selections.pattern(a)
    if pattern is None:
        return None
    stored = selections.tensor_of(pattern).crow_indices().diff()
    if reduce == "mean":
        degrees = selections.vector(stored.clamp(min=1).to(described(x).dtype), named(node, "degrees"))
        return selections.computed(node, mean_of_row, (a, degrees, x))
    empty = selections.vector((stored == 0).to(torch.int32), named(node, "empty"))
    result = selections.computed(node, extreme_of_row, (a, pattern, empty, x, EXTREMES[str(reduce)] == "max"))
    assert described(result).shape == described(node).shape
    return result


NEIGHBOURS: dict[str, Handler] = {"_sparse_mm": _reduced_product}
"""For each operator, by name, what replaces it."""
