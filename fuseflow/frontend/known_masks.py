"""Triangles and diagonals: what a known mask leaves of a tensor, and the elements at known places of two dimensions."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.fx import Node

from fuseflow.frontend import fx_origin
from fuseflow.frontend.known_positions import Handler
from fuseflow.frontend.selections import Selections, described, gathered, named


def masked(mask: Tensor, x: Tensor) -> Tensor:
    """Return x where the mask is true, and else 0."""
    return torch.where(mask, x, 0.0)


def _option(node: Node, position: int, name: str, default: int) -> int:
    value: Any = node.args[position] if len(node.args) > position else node.kwargs.get(name, default)
    assert isinstance(value, int)
    return value


def _triangle(selections: Selections, node: Node) -> Node | None:
    x = node.args[0]
    assert isinstance(x, Node)
    shaped = described(x)
    if not shaped.is_floating_point():
        return None
    whole = torch.ones(shaped.shape[-2:], dtype=torch.bool)
    cut = torch.tril if fx_origin.short_name(node.target).startswith("tril") else torch.triu
    mask = selections.mask(cut(whole, _option(node, 1, "diagonal", 0)), named(node, "triangle"))
    return selections.call(node, masked, (mask, x), shaped.shape)


def _diagonal(selections: Selections, node: Node) -> Node | None:
    offset, first, second = (
        _option(node, n + 1, name, d) for n, (name, d) in enumerate((("offset", 0), ("dim1", 0), ("dim2", 1)))
    )
    x = node.args[0]
    assert isinstance(x, Node)
    return _taken(selections, node, x, offset, first, second)


def _taken(selections: Selections, node: Node, x: Node, offset: int, first: int, second: int) -> Node | None:
    """Return a diagonal of two dimensions of x, which becomes the last dimension."""
    shaped = described(x)
    if not shaped.is_floating_point():
        return None
    rows, columns = shaped.shape[first], shaped.shape[second]
    places = torch.arange(rows * columns).reshape(rows, columns).diagonal(offset)
    others = [d for d in range(shaped.dim()) if d not in (first % shaped.dim(), second % shaped.dim())]
    order = [*others, first % shaped.dim(), second % shaped.dim()]
    outer = tuple(shaped.shape[d] for d in others)
    x = selections.call(node, torch.ops.aten.permute.default, (x, order), (*outer, rows, columns))
    x = selections.call(node, torch.ops.aten.reshape.default, (x, [*outer, rows * columns]), (*outer, rows * columns))
    return gathered(selections, node, x, len(outer), places)


def _diag(selections: Selections, node: Node) -> Node | None:
    x = node.args[0]
    assert isinstance(x, Node)
    offset = _option(node, 1, "diagonal", 0)
    if described(x).dim() == 2:
        return _taken(selections, node, x, offset, 0, 1)
    return _spread(selections, node, x) if offset == 0 else None


def _diag_embed(selections: Selections, node: Node) -> Node | None:
    x = node.args[0]
    assert isinstance(x, Node)
    return _spread(selections, node, x) if len(node.args) == 1 and not node.kwargs else None


def _spread(selections: Selections, node: Node, x: Node) -> Node | None:
    """Return matrices with the last dimension of x on their diagonals."""
    shaped = described(x)
    if not shaped.is_floating_point():
        return None
    extent = shaped.shape[-1]
    mask = selections.mask(torch.eye(extent, dtype=torch.bool), named(node, "diagonal"))
    column = selections.call(node, torch.ops.aten.unsqueeze.default, (x, -1), (*shaped.shape, 1))
    return selections.call(node, masked, (mask, column), (*shaped.shape, extent))


def _trace(selections: Selections, node: Node) -> Node | None:
    x = node.args[0]
    assert isinstance(x, Node)
    diagonal = _taken(selections, node, x, 0, 0, 1)
    return None if diagonal is None else selections.call(node, torch.ops.aten.sum.default, (diagonal,), ())


MASKS: dict[str, Handler] = {
    "tril": _triangle,
    "triu": _triangle,
    "diagonal": _diagonal,
    "linalg_diagonal": _diagonal,
    "diag": _diag,
    "diag_embed": _diag_embed,
    "trace": _trace,
}
"""For each operator, by name, what replaces it."""
