"""Operators on values of edges that are matrices, as the second, dense trace of a model runs them; see `edge_matrix`.

The two dimensions of a matrix of edges, targets and sources, stand at `dim` and `dim + 1` of each value.
"""

from __future__ import annotations

import torch
from torch import Tensor


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
