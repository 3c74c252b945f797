"""Operators as formulas of other operators, where torch-mlir has no lowering for them, or one that needs loop indices."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

aten = torch.ops.aten


def _fmod(x: Tensor, y: Tensor | float) -> Tensor:
    """Return the remainder with the sign of x. For numbers that are not negative, `remainder` and `fmod` are equal."""
    left = torch.remainder(x.abs(), y.abs() if isinstance(y, Tensor) else abs(y))
    return torch.where(x < 0, -left, left)


def _floor_divide(x: Tensor, y: Tensor | float) -> Tensor:
    """Return the floor of the exact quotient, as PyTorch computes it: the remainder is subtracted before the division, so that no
    rounding lifts a quotient to the next integer. NaN is never behind -inf in a difference, which would stay -inf."""
    if not x.is_floating_point() and not (isinstance(y, float) or (isinstance(y, Tensor) and y.is_floating_point())):
        return torch.div(x, y, rounding_mode="floor")
    left = _fmod(x, y)
    at_zero = torch.where(x == 0, math.nan, x / y)
    if isinstance(y, Tensor):
        lowered = torch.where(left == 0, 0.0, torch.where((left < 0) != (y < 0), 1.0, 0.0))
        return torch.where(y == 0, at_zero, -torch.round((left - x) / y) - lowered)
    lowered = torch.where(left > 0 if y < 0 else left < 0, 1.0, 0.0)
    return at_zero if y == 0 else -torch.round((left - x) / y) - lowered


def _rounded_quotient(x: Tensor, y: Tensor | float, *, rounding_mode: str | None = None) -> Tensor:
    return _floor_divide(x, y) if rounding_mode == "floor" else torch.div(x, y, rounding_mode=rounding_mode)


def _logaddexp(x: Tensor, y: Tensor) -> Tensor:
    distance = torch.where(x == y, 0.0, (x - y).abs())
    return torch.maximum(x, y) + torch.log1p(torch.exp(-distance))


def _not_nan_extreme(x: Tensor, y: Tensor, is_first: Tensor) -> Tensor:
    """Return x where `is_first` makes it the extreme one, else y, but x where y is NaN. NaN is never the first."""
    return torch.where(is_first, x, torch.where(y != y, x, y))


def _sign_of(x: Tensor, y: Tensor | float) -> Tensor:
    """Return x with the sign of y. A y of zero counts as positive."""
    return torch.where(torch.as_tensor(y) < 0, -x.abs(), x.abs())


def _x_log_y(x: Tensor | float, y: Tensor | float) -> Tensor:
    x, y = torch.as_tensor(x), torch.as_tensor(y)
    return torch.where(x == 0, 0.0, x * torch.log(y))


def _area_sine(x: Tensor) -> Tensor:
    """Return asinh(x) by the logarithm of a positive number, which is exact to rounding for either sign."""
    half = torch.log(x.abs() + torch.sqrt(x * x + 1))
    return torch.where(x < 0, -half, half)


def added(x: Tensor, product: Tensor, beta: float, alpha: float) -> Tensor:
    """Return `beta * x + alpha * product`. With a beta of 0, x is not read, even if it is NaN."""
    product = product if alpha == 1 else product * alpha
    return product if beta == 0 else (x if beta == 1 else x * beta) + product


def _addmv(x: Tensor, matrix: Tensor, vector: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    return added(x, torch.mm(matrix, vector.unsqueeze(1)).squeeze(1), beta, alpha)


def _cross(x: Tensor, y: Tensor, dim: int = -1) -> Tensor:
    def turned(v: Tensor, by: int) -> Tensor:
        return torch.cat([v.narrow(dim, by, 3 - by), v.narrow(dim, 0, by)], dim)

    x, y = x + torch.zeros_like(y), y + torch.zeros_like(x)  # of one shape
    return turned(x, 1) * turned(y, 2) - turned(x, 2) * turned(y, 1)


def _block_diagonal(blocks: list[Tensor]) -> Tensor:
    matrices = [block.reshape(1, -1) if block.dim() < 2 else block for block in blocks]
    width, start, rows = sum(m.shape[1] for m in matrices), 0, []
    for matrix in matrices:
        rows.append(aten.constant_pad_nd.default(matrix, [start, width - start - matrix.shape[1]], 0.0))
        start += matrix.shape[1]
    return torch.cat(rows)


def _covariance(x: Tensor, *, correction: int = 1, fweights: None = None, aweights: None = None) -> Tensor:
    assert fweights is None and aweights is None
    rows = x.reshape(1, -1) if x.dim() < 2 else x
    centred = rows - rows.mean(1, keepdim=True)
    product = (centred @ centred.t()) / (rows.shape[1] - correction)
    return product if x.dim() == 2 else product.reshape(())


def _correlation(x: Tensor) -> Tensor:
    centred = x - x.mean(1, keepdim=True)
    unit = centred / torch.sqrt((centred * centred).sum(1, keepdim=True))
    return torch.clamp(unit @ unit.t(), -1, 1)


def _search_sorted(
    boundaries: Tensor, x: Tensor, *, out_int32: bool = False, right: bool = False, side: str | None = None, sorter: None = None
) -> Tensor:
    """Return how many boundaries lie below each element of x or, on the right side, below or at it. All lie below NaN."""
    assert sorter is None, "a sorted sequence"
    rows, x = boundaries if boundaries.dim() == 1 else boundaries.unsqueeze(-2), x.unsqueeze(-1)
    is_above = rows > x if right or side == "right" else rows >= x
    return torch.where(is_above, 0, 1).sum(-1).to(torch.int32 if out_int32 else torch.int64)


def _adaptive_max_pool(rank: int) -> Callable[..., tuple[Tensor, None]]:
    """Return the function that takes the largest of parts of the last dimensions, one after the other, without the positions."""

    def pool(x: Tensor, sizes: int | list[int]) -> tuple[Tensor, None]:
        extents = [sizes] * rank if isinstance(sizes, int) else list(sizes)
        for dim, parts in zip(range(x.dim() - rank, x.dim()), extents, strict=True):
            x = _largest_of_parts(x, dim, x.shape[dim] if parts is None else parts)
        return x, None

    return pool


def _largest_of_parts(x: Tensor, dim: int, parts: int) -> Tensor:
    extent = x.shape[dim]
    if extent % parts == 0:
        return x.reshape(*x.shape[:dim], parts, extent // parts, *x.shape[dim + 1 :]).amax(dim + 1)
    bounds = [(n * extent // parts, -(-(n + 1) * extent // parts)) for n in range(parts)]
    return torch.cat([x.narrow(dim, low, high - low).amax(dim, keepdim=True) for low, high in bounds], dim)


IDENTITIES: dict[object, Callable[..., Any]] = {
    **dict.fromkeys((aten.fmod.Tensor, aten.fmod.Scalar), _fmod),
    **dict.fromkeys((aten.floor_divide.default, aten.floor_divide.Scalar), _floor_divide),
    **dict.fromkeys((aten.div.Tensor_mode, aten.div.Scalar_mode), _rounded_quotient),
    **dict.fromkeys((aten.copysign.Tensor, aten.copysign.Scalar), _sign_of),
    **dict.fromkeys((aten.xlogy.Tensor, aten.xlogy.Scalar_Self, aten.xlogy.Scalar_Other), _x_log_y),
    aten.isnan.default: lambda x: x != x,
    aten.erfc.default: lambda x: 1 - torch.erf(x),
    aten.asinh.default: _area_sine,
    aten.acosh.default: lambda x: torch.log(x + torch.sqrt(x * x - 1)),
    aten.atanh.default: lambda x: 0.5 * torch.log((1 + x) / (1 - x)),
    aten.logaddexp.default: _logaddexp,
    aten.fmax.default: lambda x, y: _not_nan_extreme(x, y, x >= y),
    aten.fmin.default: lambda x, y: _not_nan_extreme(x, y, x <= y),
    aten.softshrink.default: lambda x, bound=0.5: x - torch.clamp(x, -bound, bound),
    aten.trunc.default: lambda x: torch.where(x < 0, torch.ceil(x), torch.floor(x)) if x.is_floating_point() else x,
    aten.isfinite.default: lambda x: x.abs() < math.inf,
    aten.ldexp.Tensor: lambda x, y: x * torch.exp2(y.to(x.dtype)),
    aten.heaviside.default: lambda x, at_zero: torch.where(x == 0, at_zero, torch.where(x > 0, 1.0, 0.0)),
    aten.dist.default: lambda x, y, p=2: (x - y).norm(p),
    aten.addmv.default: _addmv,
    aten.addbmm.default: lambda c, x, y, *, beta=1, alpha=1: added(c, torch.bmm(x, y).sum(0), beta, alpha),
    aten.linalg_cross.default: lambda x, y, *, dim=-1: _cross(x, y, dim),
    aten.cross.default: lambda x, y, dim=None: _cross(x, y, x.shape.index(3) if dim is None else dim),
    aten.block_diag.default: _block_diagonal,
    aten.cov.default: _covariance,
    aten.corrcoef.default: _correlation,
    aten.bucketize.Tensor: lambda x, boundaries, **options: _search_sorted(boundaries, x, **options),
    aten.searchsorted.Tensor: _search_sorted,
    aten.adaptive_max_pool1d.default: _adaptive_max_pool(1),
    aten.adaptive_max_pool2d.default: _adaptive_max_pool(2),
    aten.adaptive_max_pool3d.default: _adaptive_max_pool(3),
    aten.rrelu.default: lambda x, lower=0.125, upper=1 / 3, *_: F.leaky_relu(x, (lower + upper) / 2),
}
"""Replacements of operators. Each is the operator without its options that change nothing here."""

INNER_IDENTITIES: dict[Any, Callable[..., Any]] = {
    aten.isnan.default: IDENTITIES[aten.isnan.default],
    aten.norm.ScalarOpt_dim: lambda x, p, dim, keepdim=False: torch.linalg.vector_norm(x, 2 if p is None else p, dim, keepdim),
    aten.addmv.default: _addmv,
    aten.empty_like.default: lambda x, **_: torch.zeros_like(x),
}
"""The identities of operators that appear only inside decompositions of other operators."""
