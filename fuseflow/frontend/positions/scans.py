"""Scans: the reduction of all elements up to each one, as a reduction over a triangle."""

from __future__ import annotations

import operator

import torch
from torch import Tensor
from torch.fx import Node

from fuseflow.frontend.positions.known_positions import Handler
from fuseflow.frontend.positions.selections import Selections, described, named
from fuseflow.frontend.trace import fx_origin


def scanned_along(x: Tensor, triangle: Tensor, dim: int, reduction: str) -> Tensor:
    """Return, as `reduction` says, the products, the largest or the smallest of the elements along `dim` up to each of them, or
    the logarithm of the sum of their exponentials. `triangle[i, j]` is true where j is not behind i."""
    rows = x.movedim(dim, -1).unsqueeze(-2)
    match reduction:
        case "cumprod":
            result = torch.where(triangle, rows, 1.0).prod(-1)
        case "cummax":
            result = torch.where(triangle, rows, float("-inf")).amax(-1)
        case "cummin":
            result = torch.where(triangle, rows, float("inf")).amin(-1)
        case "logcumsumexp":
            largest = torch.where(triangle, rows, float("-inf")).amax(-1, keepdim=True)
            result = torch.where(triangle, torch.exp(rows - largest), 0.0).sum(-1).log() + largest.squeeze(-1)
        case _:
            raise AssertionError(reduction)
    return result.movedim(-1, dim)


def _scan(selections: Selections, node: Node, x: Node, dim: int, *, dtype: torch.dtype | None = None) -> Node | None:
    shaped, name = described(x), fx_origin.short_name(node.target)
    if not shaped.is_floating_point() or shaped.dim() == 0 or dtype is not None:
        return None
    dim %= shaped.dim()
    extent = shaped.shape[dim]
    triangle = selections.mask(torch.ones(extent, extent, dtype=torch.bool).tril(), named(node, "triangle"))
    arguments = (x, triangle, dim, name)
    if name in ("cumprod", "logcumsumexp"):
        return selections.computed(node, scanned_along, arguments)
    values = [user for user in node.users if user.target is operator.getitem]
    if any(user.args[1] == 1 and user.users for user in values):  # the positions are read
        return None
    for user in values:
        user.replace_all_uses_with(selections.computed(node, scanned_along, arguments))
    return None


SCANS: dict[str, Handler] = dict.fromkeys(("cumprod", "cummax", "cummin", "logcumsumexp"), _scan)
"""The replacement of each operator, by its name."""
