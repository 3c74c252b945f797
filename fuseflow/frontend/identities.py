"""Operators as formulas of other operators, where torch-mlir has no lowering for them, or one that needs loop indices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

aten = torch.ops.aten


def _remainder(rounding: str) -> Callable[..., Tensor]:
    """Return the function that gives what is left of x, less y times their rounded quotient."""

    def left(x: Tensor, y: Tensor | float) -> Tensor:
        return x - torch.div(x, y, rounding_mode=rounding) * y

    return left


def _logaddexp(x: Tensor, y: Tensor) -> Tensor:
    return torch.maximum(x, y) + torch.log1p(torch.exp(-(x - y).abs()))


def _sign_of(x: Tensor, y: Tensor | float) -> Tensor:
    """Return x with the sign of y. Zero has no sign here."""
    return torch.where(torch.as_tensor(y) < 0, -x.abs(), x.abs())


def _step(x: Tensor, at_zero: Tensor) -> Tensor:
    return torch.where(x == 0, at_zero, torch.where(x < 0, 0.0, 1.0))


def _x_log_y(x: Tensor | float, y: Tensor | float) -> Tensor:
    x, y = torch.as_tensor(x), torch.as_tensor(y)
    return torch.where(x == 0, 0.0, x * torch.log(y))


def _area_sine(x: Tensor) -> Tensor:
    """Return asinh(x) by the logarithm of a positive number, which is exact to rounding for either sign."""
    half = torch.log(x.abs() + torch.sqrt(x * x + 1))
    return torch.where(x < 0, -half, half)


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


def _vector_norm(x: Tensor, p: float | None, dim: list[int], keepdim: bool = False) -> Tensor:
    norm: Tensor = torch.linalg.vector_norm(x, 2 if p is None else p, dim, keepdim)
    return norm


def _places_below(boundaries: Tensor, x: Tensor, right: bool) -> Tensor:
    """Return how many boundaries lie below each element, or also at it."""
    x = x.unsqueeze(-1)
    return torch.where(boundaries <= x if right else boundaries < x, 1, 0).sum(-1)


def _bucketize(x: Tensor, boundaries: Tensor, *, out_int32: bool = False, right: bool = False) -> Tensor:
    return _places_below(boundaries, x, right).to(torch.int32 if out_int32 else torch.int64)


def _search_sorted(
    boundaries: Tensor, x: Tensor, *, out_int32: bool = False, right: bool = False, side: str | None = None, sorter: None = None
) -> Tensor:
    assert sorter is None, "a sorted sequence"
    rows = boundaries if boundaries.dim() == 1 else boundaries.unsqueeze(-2)
    return _places_below(rows, x, right or side == "right").to(torch.int32 if out_int32 else torch.int64)


def _adaptive_max_pool(rank: int) -> Callable[..., tuple[Tensor, None]]:
    """Return the function that takes the largest of parts of the last dimensions, one dimension after the other. The positions are left
    out."""

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


def _adaptive_max_pool1d(x: Tensor, size: int | list[int]) -> tuple[Tensor, None]:
    return _adaptive_max_pool(1)(x, size)


IDENTITIES: dict[object, Callable[..., Any]] = {
    **dict.fromkeys((aten.remainder.Tensor, aten.remainder.Scalar), _remainder("floor")),
    **dict.fromkeys((aten.fmod.Tensor, aten.fmod.Scalar), _remainder("trunc")),
    **dict.fromkeys((aten.copysign.Tensor, aten.copysign.Scalar), _sign_of),
    **dict.fromkeys((aten.xlogy.Tensor, aten.xlogy.Scalar_Self, aten.xlogy.Scalar_Other), _x_log_y),
    aten.isnan.default: lambda x: x != x,
    aten.erfc.default: lambda x: 1 - torch.erf(x),
    aten.asinh.default: _area_sine,
    aten.acosh.default: lambda x: torch.log(x + torch.sqrt(x * x - 1)),
    aten.atanh.default: lambda x: 0.5 * torch.log((1 + x) / (1 - x)),
    aten.logaddexp.default: _logaddexp,
    aten.fmax.default: torch.maximum,
    aten.fmin.default: torch.minimum,
    aten.ldexp.Tensor: lambda x, y: x * torch.exp2(y.to(x.dtype)),
    aten.heaviside.default: _step,
    aten.dist.default: lambda x, y, p=2: (x - y).norm(p),
    aten.addbmm.default: lambda c, x, y, *, beta=1, alpha=1: beta * c + alpha * torch.bmm(x, y).sum(0),
    aten.linalg_cross.default: lambda x, y, *, dim=-1: _cross(x, y, dim),
    aten.cross.default: lambda x, y, dim=None: _cross(x, y, x.shape.index(3) if dim is None else dim),
    aten.block_diag.default: _block_diagonal,
    aten.cov.default: _covariance,
    aten.corrcoef.default: _correlation,
    **dict.fromkeys((aten.bucketize.Tensor,), _bucketize),
    **dict.fromkeys((aten.searchsorted.Tensor,), _search_sorted),
    aten.adaptive_max_pool1d.default: _adaptive_max_pool1d,
    aten.adaptive_max_pool2d.default: _adaptive_max_pool(2),
    aten.adaptive_max_pool3d.default: _adaptive_max_pool(3),
    aten.rrelu.default: lambda x, lower=0.125, upper=1 / 3, *_: F.leaky_relu(x, (lower + upper) / 2),
}
"""Replacements of operators. Each is the operator without its options that change nothing here."""

INNER_IDENTITIES: dict[Any, Callable[..., Any]] = {
    aten.isnan.default: IDENTITIES[aten.isnan.default],
    aten.norm.ScalarOpt_dim: _vector_norm,
    aten.empty_like.default: lambda x, **_: torch.zeros_like(x),
}
"""Those of operators that stand inside others, where only the decomposition of these others meets them."""
