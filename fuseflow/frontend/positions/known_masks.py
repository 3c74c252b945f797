"""Triangles and diagonals: the elements of a tensor that a known mask keeps, and elements at known places of two dimensions."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.fx import Node

from fuseflow.frontend.positions.known_positions import Handler
from fuseflow.frontend.positions.selections import Selections, described, gathered, named, reshaped
from fuseflow.frontend.trace import fx_origin


def masked(mask: Tensor, x: Tensor) -> Tensor:
    """Return x where the mask is true, and else 0."""
    return torch.where(mask, x, 0.0)


def _triangle(selections: Selections, node: Node, x: Node, diagonal: int = 0) -> Node | None:
    shaped = described(x)
    if not shaped.is_floating_point():
        return None
    whole = torch.ones(shaped.shape[-2:], dtype=torch.bool)
    cut = torch.tril if fx_origin.short_name(node.target).startswith("tril") else torch.triu
    mask = selections.mask(cut(whole, diagonal), named(node, "triangle"))
    return selections.computed(node, masked, (mask, x))


def _diagonal(selections: Selections, node: Node, x: Node, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Node | None:
    """Return the replacement of a diagonal of two dimensions of x, which becomes the last dimension."""
    shaped = described(x)
    first, second = dim1 % shaped.dim(), dim2 % shaped.dim()
    if not shaped.is_floating_point():
        return None
    rows, columns = shaped.shape[first], shaped.shape[second]
    places = torch.arange(rows * columns).reshape(rows, columns).diagonal(offset)
    others = [d for d in range(shaped.dim()) if d not in (first, second)]
    order = [*others, first, second]
    outer = tuple(shaped.shape[d] for d in others)
    x = selections.computed(node, torch.ops.aten.permute.default, (x, order))
    return gathered(selections, node, reshaped(selections, node, x, (*outer, rows * columns)), len(outer), places)


def _diag(selections: Selections, node: Node, x: Node, diagonal: int = 0) -> Node | None:
    if described(x).dim() == 2:
        return _diagonal(selections, node, x, diagonal)
    return _diag_embed(selections, node, x) if diagonal == 0 else None


def _diag_embed(selections: Selections, node: Node, x: Node, *others: Any) -> Node | None:
    """Return the replacement of matrices with the last dimension of x on their diagonals."""
    shaped = described(x)
    if others or not shaped.is_floating_point():
        return None
    extent = shaped.shape[-1]
    mask = selections.mask(torch.eye(extent, dtype=torch.bool), named(node, "diagonal"))
    column = selections.computed(node, torch.ops.aten.unsqueeze.default, (x, -1))
    return selections.computed(node, masked, (mask, column))


def _trace(selections: Selections, node: Node, x: Node) -> Node | None:
    diagonal = _diagonal(selections, node, x)
    return None if diagonal is None else selections.computed(node, torch.ops.aten.sum.default, (diagonal,))


MASKS: dict[str, Handler] = {
    "tril": _triangle,
    "triu": _triangle,
    "diagonal": _diagonal,
    "linalg_diagonal": _diagonal,
    "diag": _diag,
    "diag_embed": _diag_embed,
    "trace": _trace,
}
"""The replacement of each operator, by its name."""
