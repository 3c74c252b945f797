"""Products with selections, and operators on values of edges that are matrices, as the second, dense trace of a model runs them.

See `selections` and `edge_matrix`. The two dimensions of a matrix of edges, targets and sources, stand at `dim` and `dim + 1` of each
value.
"""

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


def placed(places: Tensor, values: Tensor) -> Tensor:
    """Return the dense form of a sparse tensor with the number `values[e]` where `places[..., e]` is 1. Entries of one place are
    added up. A value may be an array, whose dimensions come last."""
    rest = [1] * (values.dim() - 1)
    return (places.reshape(*places.shape, *rest) * values).sum(places.dim() - 1)


def entries_at(places: Tensor, x: Tensor) -> Tensor:
    """Return the values of x at the places where `places[e, ...]` is 1, for each entry e."""
    dims = list(range(1, places.dim()))
    rest = [1] * (x.dim() - len(dims))
    return torch.where(places.reshape(*places.shape, *rest) == 0, 0.0, x.unsqueeze(0)).sum(dims)


def at_edges(pattern: Tensor, x: Tensor, dim: int) -> Tensor:
    """Return `x` at all edges, which `pattern` stores, and zero elsewhere. `x` may have extent 1 in either dimension."""
    return _beside(pattern, x, dim) * x


def scores_at_edges(pattern: Tensor, x: Tensor, dim: int, absent: float) -> Tensor:
    """Return `x` at all edges, and `absent` elsewhere, such as minus infinity where a softmax follows."""
    return torch.where(_beside(pattern, x, dim) == 0, absent, x)


def extreme_at_edges(
    pattern: Tensor, empty: Tensor, x: Tensor, dim: int, over: int, start: Tensor | float, largest: bool
) -> Tensor:
    """Return the largest or smallest value of the edges along `over`, and `start` where there is no edge, as `empty` marks."""
    scores = scores_at_edges(pattern, x, dim, float("-inf") if largest else float("inf"))
    extreme = scores.amax(over) if largest else scores.amin(over)
    return torch.where(empty.reshape(-1, *[1] * (extreme.dim() - dim - 1)) == 0, extreme, start)


def weighted_rows(weights: Tensor, x: Tensor) -> Tensor:
    """Add up rows of `x`, of shape (sources, heads, features), by weights of shape (targets, sources, heads, 1). There may be no heads."""
    weights = weights.squeeze(-1)
    if x.dim() == 2:
        return torch.mm(weights, x)
    return torch.matmul(weights.movedim((0, 1), (-2, -1)), x.movedim(0, -2)).movedim(-2, 0)


def linear_of_edges(x: Tensor, weight: Tensor) -> Tensor:
    """Multiply the last dimension of a value of edges by the transpose of a matrix of weights."""
    return torch.matmul(x, weight.t().expand(*x.shape[:-2], *weight.t().shape))


def _beside(pattern: Tensor, x: Tensor, dim: int) -> Tensor:
    return pattern.reshape(*pattern.shape, *[1] * (x.dim() - dim - 2))
