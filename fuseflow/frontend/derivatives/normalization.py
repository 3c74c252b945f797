"""Standardization, and the gradients of norms of layers, groups, batches and pictures: two sums beside those of the formula.

The formula is computed again, in the same operators, so that what it has in common with the gradient is computed once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from fuseflow.frontend.derivatives.rule import Gradients, Rule

aten = torch.ops.aten


def centred(x: Tensor, dims: list[int] | tuple[int, ...]) -> tuple[Tensor, int]:
    """Return x minus its mean along `dims`, and the number of elements of which it is the mean."""
    count = math.prod(x.shape[d] for d in dims)
    return x - x.sum(dims, keepdim=True) / count, count


def standardized(x: Tensor, dims: tuple[int, ...], eps: float) -> Tensor:
    """Return x minus its mean along `dims`, over its deviation there, in the dtype of x. `eps` is added to the variance."""
    result, _ = _standardized(x, dims, eps)
    return result


def _standardized(x: Tensor, dims: tuple[int, ...], eps: float) -> tuple[Tensor, Tensor]:
    """Return x in its standard form, and the inverse of the deviation."""
    difference, count = centred(x, dims)
    scale = torch.rsqrt((difference * difference).sum(dims, keepdim=True) / count + eps)
    return difference * scale, scale


def of_standardized(gradient: Tensor, x: Tensor, dims: tuple[int, ...], eps: float) -> tuple[Tensor, Tensor]:
    """Return the standard form of x, and the gradient of x from that of it."""
    y, scale = _standardized(x, dims, eps)
    total = gradient.sum(dims, keepdim=True) + y * (gradient * y).sum(dims, keepdim=True)
    return y, scale * (gradient - total / math.prod(x.shape[d] for d in dims))


def _of_layer_norm(
    gradients: Gradients,
    _: tuple[Tensor, ...],
    x: Tensor,
    shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    *__: object,
) -> Gradients:
    gradient = _given(gradients)
    scaled = gradient if weight is None else gradient * weight
    y, of_x = of_standardized(scaled, x, tuple(range(-len(shape), 0)), eps)
    return of_x, *_of_scales(gradient, y, weight, bias)


def _of_rms_norm(
    gradients: Gradients,
    _: tuple[Tensor, ...],
    x: Tensor,
    shape: Sequence[int],
    weight: Tensor | None = None,
    eps: float | None = None,
) -> Gradients:
    gradient, dims, count = _given(gradients), tuple(range(-len(shape), 0)), math.prod(shape)
    scale = torch.rsqrt((x * x).sum(dims, keepdim=True) / count + (torch.finfo(x.dtype).eps if eps is None else eps))
    y = x * scale
    scaled = gradient if weight is None else gradient * weight
    of_x = scale * (scaled - y * ((scaled * y).sum(dims, keepdim=True) / count))
    return of_x, *_of_scales(gradient, y, weight, None)


def _of_scales(gradient: Tensor, y: Tensor, weight: Tensor | None, bias: Tensor | None) -> list[Tensor]:
    """Return the gradients of a weight and a bias of the last dimensions, of those that there are."""
    of_weight = [] if weight is None else [(gradient * y).sum_to_size(weight.shape)]
    return of_weight if bias is None else [*of_weight, gradient.sum_to_size(bias.shape)]


def _of_group_norm(
    gradients: Gradients,
    _: tuple[Tensor, ...],
    x: Tensor,
    groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    *__: object,
) -> Gradients:
    gradient, shape = _given(gradients), (x.shape[0], groups, -1)
    y, of_x = of_standardized(_scaled(gradient, weight).reshape(shape), x.reshape(shape), (-1,), eps)
    return of_x.reshape(x.shape), *_of_channel_scales(gradient, y.reshape(x.shape), weight, bias)


def _of_channel_norm(outer: Sequence[int]) -> Rule:
    """Return the rule of a norm of each channel along the `outer` dimensions and all behind the channels: of a batch or of a picture."""

    def rule(
        gradients: Gradients,
        _: tuple[Tensor, ...],
        x: Tensor,
        weight: Tensor | None,
        bias: Tensor | None,
        mean: Tensor | None,
        variance: Tensor | None,
        own: bool,
        __: float,
        eps: float,
        *___: object,
    ) -> Gradients:
        gradient = gradients[0]
        assert gradient is not None
        if own:
            y, of_x = of_standardized(_scaled(gradient, weight), x, (*outer, *range(2, x.dim())), eps)
        else:
            assert mean is not None and variance is not None
            scale = _of_channels(torch.rsqrt(variance + eps), x)
            y, of_x = (x - _of_channels(mean, x)) * scale, _scaled(gradient, weight) * scale
        stored: list[Tensor | None] = [None for statistic in (mean, variance) if statistic is not None]
        return of_x, *_of_channel_scales(gradient, y, weight, bias), *stored

    return rule


def _of_channel_scales(gradient: Tensor, y: Tensor, weight: Tensor | None, bias: Tensor | None) -> list[Tensor]:
    dims = [0, *range(2, y.dim())]
    of_weight = [] if weight is None else [(gradient * y).sum(dims)]
    return of_weight if bias is None else [*of_weight, gradient.sum(dims)]


def _scaled(gradient: Tensor, weight: Tensor | None) -> Tensor:
    return gradient if weight is None else gradient * _of_channels(weight, gradient)


def _of_channels(vector: Tensor, y: Tensor) -> Tensor:
    return vector.view((-1,) + (1,) * (y.dim() - 2))


def _given(gradients: Gradients) -> Tensor:
    (gradient,) = gradients
    assert gradient is not None
    return gradient


NORMALIZATION_RULES: dict[Any, Rule] = {
    aten.layer_norm.default: _of_layer_norm,
    aten.rms_norm.default: _of_rms_norm,
    aten.group_norm.default: _of_group_norm,
    aten.batch_norm.default: _of_channel_norm([0]),
    aten.instance_norm.default: _of_channel_norm([]),
}
