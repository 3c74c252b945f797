"""Means, variances, and what is normalized by them, as sums and products in the dtype of the operand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor


def layer_norm(
    x: Tensor, shape: Sequence[int], weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5, *_: Any
) -> Tensor:
    """Normalize in the dtype of `x`, where PyTorch's decomposition computes the variance in f64."""
    dims, count = tuple(range(-len(shape), 0)), math.prod(shape)
    centred = x - x.sum(dims, keepdim=True) / count
    y = centred * torch.rsqrt((centred * centred).sum(dims, keepdim=True) / count + eps)
    y = y if weight is None else y * weight
    return y if bias is None else y + bias


def rms_norm(x: Tensor, shape: Sequence[int], weight: Tensor | None = None, eps: float | None = None) -> Tensor:
    dims, count = tuple(range(-len(shape), 0)), math.prod(shape)
    y = x * torch.rsqrt((x * x).sum(dims, keepdim=True) / count + (torch.finfo(x.dtype).eps if eps is None else eps))
    return y if weight is None else y * weight


def batch_norm(
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    mean: Tensor | None,
    variance: Tensor | None,
    training: bool,
    _: float,
    eps: float,
    *__: Any,
) -> Tensor:
    """Normalize by the stored statistics, or by those of the batch. `operator_screen` has refused what would change stored ones."""
    return _normalized(x, weight, bias, None if training else (mean, variance), [0, *range(2, x.dim())], eps)


def instance_norm(
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    mean: Tensor | None,
    variance: Tensor | None,
    own: bool,
    _: float,
    eps: float,
    *__: Any,
) -> Tensor:
    """Normalize by the stored statistics, or by those of each picture."""
    return _normalized(x, weight, bias, None if own else (mean, variance), list(range(2, x.dim())), eps)


def _normalized(
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    stored: tuple[Tensor | None, Tensor | None] | None,
    dims: list[int],
    eps: float,
) -> Tensor:
    """Normalize each channel by its stored mean and variance, or by those along some dimensions."""
    channels = (-1,) + (1,) * (x.dim() - 2)
    if stored is None:
        count = math.prod(x.shape[d] for d in dims)
        centred = x - x.sum(dims, keepdim=True) / count
        y = centred * torch.rsqrt((centred * centred).sum(dims, keepdim=True) / count + eps)
    else:
        mean, variance = stored
        assert mean is not None and variance is not None
        y = (x - mean.view(channels)) * torch.rsqrt(variance + eps).view(channels)
    y = y if weight is None else y * weight.view(channels)
    return y if bias is None else y + bias.view(channels)


def variance_along(
    x: Tensor, dim: int | list[int] | None = None, correction: float | None = None, keepdim: bool = False
) -> Tensor:
    dims = list(range(x.dim())) if dim is None else [dim] if isinstance(dim, int) else dim
    count = math.prod(x.shape[d] for d in dims)
    centred = x - x.sum(dims, keepdim=True) / count
    return (centred * centred).sum(dims, keepdim=keepdim) / max(count - (1 if correction is None else correction), 0)


def group_norm(
    x: Tensor, groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5, *_: Any
) -> Tensor:
    channels = (-1,) + (1,) * (x.dim() - 2)
    y = layer_norm(x.reshape(x.shape[0], groups, -1), [x.numel() // (x.shape[0] * groups)], eps=eps).reshape(x.shape)
    y = y if weight is None else y * weight.view(channels)
    return y if bias is None else y + bias.view(channels)
