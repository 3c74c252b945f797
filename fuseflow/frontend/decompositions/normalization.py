"""Means, variances and normalizations by them, as sums and products in the dtype of the operand."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from fuseflow.frontend.derivatives.normalization import centred, of_channels, standardized


def _scaled(y: Tensor, weight: Tensor | None, bias: Tensor | None = None) -> Tensor:
    y = y if weight is None else y * weight
    return y if bias is None else y + bias


def _scaled_by_channel(y: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    """Return y times a weight and plus a bias for each channel, which is dimension 1."""
    y = y if weight is None else y * of_channels(weight, y)
    return y if bias is None else y + of_channels(bias, y)


def layer_norm(
    x: Tensor, shape: Sequence[int], weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5, *_: Any
) -> Tensor:
    """Normalize in the dtype of `x`, where PyTorch's decomposition computes the variance in f64."""
    return _scaled(standardized(x, tuple(range(-len(shape), 0)), eps)[0], weight, bias)


def layer_norm_with_statistics(
    x: Tensor, shape: Sequence[int], weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the layer norm of `x`, its mean, and the inverse of its deviation, which a backward pass reads."""
    dims = tuple(range(-len(shape), 0))
    scale = torch.rsqrt(variance_along(x, list(dims), 0, True) + eps)
    return layer_norm(x, shape, weight, bias, eps), x.mean(dims, keepdim=True), scale


def rms_norm(x: Tensor, shape: Sequence[int], weight: Tensor | None = None, eps: float | None = None) -> Tensor:
    dims, count = tuple(range(-len(shape), 0)), math.prod(shape)
    y = x * torch.rsqrt((x * x).sum(dims, keepdim=True) / count + (torch.finfo(x.dtype).eps if eps is None else eps))
    return _scaled(y, weight)


def channel_norm(outer: Sequence[int]) -> Callable[..., Tensor]:
    """Return a function that normalizes each channel by its stored mean and variance, or by its mean and variance along the
    `outer` dimensions and all behind the channels: of a batch, or of each picture. The latter changes stored ones, as a training
    step has it; of other calls `refusals` has refused those."""

    def norm(
        x: Tensor,
        weight: Tensor | None,
        bias: Tensor | None,
        mean: Tensor | None,
        variance: Tensor | None,
        own: bool,
        momentum: float,
        eps: float,
        *_: Any,
    ) -> Tensor:
        if own:
            dims = (*outer, *range(2, x.dim()))
            y = standardized(x, dims, eps)[0]
            if mean is not None and variance is not None:
                mean.copy_((1 - momentum) * mean + momentum * x.detach().mean(dims))
                variance.copy_((1 - momentum) * variance + momentum * variance_along(x.detach(), list(dims)))
        else:
            assert mean is not None and variance is not None
            y = (x - of_channels(mean, x)) * of_channels(torch.rsqrt(variance + eps), x)
        return _scaled_by_channel(y, weight, bias)

    return norm


def variance_along(
    x: Tensor, dim: int | list[int] | None = None, correction: float | None = None, keepdim: bool = False
) -> Tensor:
    dims = list(range(x.dim())) if dim is None else [dim] if isinstance(dim, int) else dim
    difference, count = centred(x, dims)
    return (difference * difference).sum(dims, keepdim=keepdim) / max(count - (1 if correction is None else correction), 0)


def group_norm(
    x: Tensor, groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5, *_: Any
) -> Tensor:
    y = standardized(x.reshape(x.shape[0], groups, -1), (-1,), eps)[0].reshape(x.shape)
    return _scaled_by_channel(y, weight, bias)


def group_norm_with_statistics(
    x: Tensor, weight: Tensor | None, bias: Tensor | None, batch: int, channels: int, size: int, groups: int, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the group norm of `x`, its mean, and the inverse of its deviation, which a backward pass reads."""
    grouped = x.reshape(batch, groups, -1)
    scale = torch.rsqrt(variance_along(grouped, -1, 0) + eps)
    return group_norm(x, groups, weight, bias, eps), grouped.mean(-1), scale
