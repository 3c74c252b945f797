"""Products with selections, as the second, dense trace of a model runs them; see `selections`."""

from __future__ import annotations

from math import prod

import torch
from torch import Tensor


def product_along(selection: Tensor, x: Tensor, dim: int) -> Tensor:
    """Multiply dimension `dim` of `x` by a matrix from the left, which takes or adds up rows."""
    if x.dim() == 1:
        return torch.mm(selection, x.unsqueeze(1)).squeeze(1)
    x = x.movedim(dim, -2)
    if x.dim() == 2:
        return torch.mm(selection, x).movedim(-2, dim)
    batch, rest = x.shape[:-2], x.shape[-2:]
    flat = x.reshape(prod(batch), *rest)
    taken = torch.bmm(selection.expand(flat.shape[0], *selection.shape), flat)
    return taken.reshape(*batch, selection.shape[0], rest[-1]).movedim(-2, dim)


def extreme_along(selection: Tensor, empty: Tensor, x: Tensor, dim: int, start: Tensor | float, largest: bool) -> Tensor:
    """Return the largest or the smallest of the entries along `dim` that each row of a selection has, and `start` where it has
    none, as `empty` marks."""
    x = x.movedim(dim, 0)
    absent = float("-inf") if largest else float("inf")
    stored = selection.reshape(*selection.shape, *[1] * (x.dim() - 1))
    candidates = torch.where(stored == 0, absent, x.unsqueeze(0))
    extreme = candidates.amax(1) if largest else candidates.amin(1)
    base = start.movedim(dim, 0) if isinstance(start, Tensor) else start
    return torch.where(empty.reshape(-1, *[1] * (x.dim() - 1)) == 0, extreme, base).movedim(0, dim)


def multiplied_along(selection: Tensor, empty: Tensor, x: Tensor, dim: int, start: Tensor | float) -> Tensor:
    """Return the product of the entries along `dim` that each row of a selection has, and `start` if it has none (`empty`)."""
    x = x.movedim(dim, 0)
    factors = torch.where(selection.reshape(*selection.shape, *[1] * (x.dim() - 1)) == 0, 1.0, x.unsqueeze(0))
    base = start.movedim(dim, 0) if isinstance(start, Tensor) else start
    return torch.where(empty.reshape(-1, *[1] * (x.dim() - 1)) == 0, factors.prod(1), base).movedim(0, dim)


def overwrite_along(hit: Tensor, written: Tensor, base: Tensor, dim: int) -> Tensor:
    """Return `written` in the rows along `dim` that are hit, and `base` in all others."""
    shape = [1] * base.dim()
    shape[dim] = -1
    return torch.where(hit.reshape(shape) == 0, base, written)
