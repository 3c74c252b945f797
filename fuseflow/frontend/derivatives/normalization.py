"""Standardization, and the gradients of norms of layers, groups, batches and pictures: two sums beside those of the formula. And norms,
distances and deviations: the derivative of a root is infinite at 0, where PyTorch's gradient is 0.

The formula is computed again, in the same operators, so that what it has in common with the gradient is computed once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from fuseflow.frontend.derivatives.rule import Gradients, Rule, given

aten = torch.ops.aten


def centred(x: Tensor, dims: list[int] | tuple[int, ...]) -> tuple[Tensor, int]:
    """Return x minus its mean along `dims`, and the number of elements of which it is the mean."""
    count = math.prod(x.shape[d] for d in dims)
    return x - x.sum(dims, keepdim=True) / count, count


def standardized(x: Tensor, dims: tuple[int, ...], eps: float) -> tuple[Tensor, Tensor]:
    """Return x minus its mean along `dims`, over its deviation there, in the dtype of x; and the inverse of the deviation. `eps` is added
    to the variance."""
    difference, count = centred(x, dims)
    scale = torch.rsqrt((difference * difference).sum(dims, keepdim=True) / count + eps)
    return difference * scale, scale


def of_standardized(gradient: Tensor, x: Tensor, dims: tuple[int, ...], eps: float) -> tuple[Tensor, Tensor]:
    """Return the standard form of x, and the gradient of x from that of it."""
    y, scale = standardized(x, dims, eps)
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
    gradient = given(gradients[0])
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
    gradient, dims, count = given(gradients[0]), tuple(range(-len(shape), 0)), math.prod(shape)
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
    gradient, shape = given(gradients[0]), (x.shape[0], groups, -1)
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
        gradient = given(gradients[0])
        if own:
            y, of_x = of_standardized(_scaled(gradient, weight), x, (*outer, *range(2, x.dim())), eps)
        else:
            assert mean is not None and variance is not None
            scale = of_channels(torch.rsqrt(variance + eps), x)
            y, of_x = (x - of_channels(mean, x)) * scale, _scaled(gradient, weight) * scale
        stored: list[Tensor | None] = [None for statistic in (mean, variance) if statistic is not None]
        return of_x, *_of_channel_scales(gradient, y, weight, bias), *stored

    return rule


def _of_channel_scales(gradient: Tensor, y: Tensor, weight: Tensor | None, bias: Tensor | None) -> list[Tensor]:
    dims = [0, *range(2, y.dim())]
    of_weight = [] if weight is None else [(gradient * y).sum(dims)]
    return of_weight if bias is None else [*of_weight, gradient.sum(dims)]


def _scaled(gradient: Tensor, weight: Tensor | None) -> Tensor:
    return gradient if weight is None else gradient * of_channels(weight, gradient)


def of_channels(vector: Tensor, y: Tensor) -> Tensor:
    return vector.view((-1,) + (1,) * (y.dim() - 2))


def of_norm(gradient: Tensor, norm: Tensor, x: Tensor, order: float, dims: Sequence[int]) -> Tensor:
    """Return the gradient of x from that of its norm along `dims`, which have extent 1 in `gradient` and `norm`."""
    if order == 0:
        return torch.zeros_like(x)
    if order == 1:
        return gradient * torch.sign(x)
    if order == math.inf:
        largest = torch.where(x.abs() == norm, torch.sign(x), 0.0)
        return largest * (gradient / torch.where(x.abs() == norm, 1.0, 0.0).sum(list(dims), keepdim=True))
    norm = _not_zero(norm)
    if order == 2:
        return x * (gradient / norm)
    size = torch.where(x == 0, 1.0, x.abs())
    return torch.sign(x) * torch.pow(size, order - 1) * (gradient * torch.pow(norm, 1 - order))


def _of_norm(
    gradients: Gradients,
    results: tuple[Tensor, ...],
    x: Tensor,
    order: float | None = 2,
    dim: int | list[int] | None = None,
    keepdim: bool = False,
) -> Gradients:
    dims = _dims(x, dim)
    gradient, norm = (_with_dims(value, x, dims, keepdim) for value in (gradients[0], results[0]))
    return (of_norm(gradient, norm, x, 2 if order is None else order, dims),)


def _of_distances(gradients: Gradients, results: tuple[Tensor, ...], x: Tensor, y: Tensor, p: float = 2, *_: object) -> Gradients:
    """Return the gradients of the rows of two matrices, from that of the distances of all pairs of them."""
    gradient, distances = given(gradients[0]).unsqueeze(-1), results[0].unsqueeze(-1)
    parts = of_norm(gradient, distances, x.unsqueeze(-2) - y.unsqueeze(-3), p, [-1])
    return parts.sum(-2).sum_to_size(x.shape), -parts.sum(-3).sum_to_size(y.shape)


def _of_distance(
    gradients: Gradients,
    results: tuple[Tensor, ...],
    x: Tensor,
    y: Tensor,
    p: float = 2,
    eps: float = 1e-6,
    keepdim: bool = False,
) -> Gradients:
    """Return the gradients of rows from that of the distance of each to its partner."""
    difference = x - y + eps
    gradient, distance = (_with_dims(value, difference, [-1], keepdim) for value in (gradients[0], results[0]))
    part = of_norm(gradient, distance, difference, p, [-1])
    return part.sum_to_size(x.shape), -part.sum_to_size(y.shape)


def _of_cosine(
    gradients: Gradients, results: tuple[Tensor, ...], a: Tensor, b: Tensor, dim: int = 1, eps: float = 1e-8
) -> Gradients:
    gradient, cosine = given(gradients[0]).unsqueeze(dim), results[0].unsqueeze(dim)
    norms = [torch.sqrt((x * x).sum(dim, keepdim=True)) for x in (a, b)]
    low, high = (norm.clamp(min=eps) for norm in norms)
    product = gradient / (low * high)
    turned = gradient * cosine
    of_a = product * b - (turned / (low * _not_zero(norms[0]))) * a
    of_b = product * a - (turned / (high * _not_zero(norms[1]))) * b
    return of_a.sum_to_size(a.shape), of_b.sum_to_size(b.shape)


def of_variance(
    gradient: Tensor | None, x: Tensor, dim: int | list[int] | None = None, correction: float | None = None, keepdim: bool = False
) -> Tensor:
    dims = _dims(x, dim)
    difference, count = centred(x, dims)
    return difference * (_with_dims(gradient, x, dims, keepdim) * (2 / max(count - (1 if correction is None else correction), 0)))


def _of_variance(gradients: Gradients, _: tuple[Tensor, ...], x: Tensor, *args: Any, **kwargs: Any) -> Gradients:
    return (of_variance(gradients[0], x, *args, **kwargs),)


def _of_deviation(gradients: Gradients, results: tuple[Tensor, ...], x: Tensor, *args: Any, **kwargs: Any) -> Gradients:
    return (of_variance(given(gradients[0]) / (2 * _not_zero(results[0])), x, *args, **kwargs),)


def _of_moments(
    gradients: Gradients,
    _: tuple[Tensor, ...],
    x: Tensor,
    dim: int | list[int] | None = None,
    correction: float | None = None,
    keepdim: bool = False,
) -> Gradients:
    """Return the gradient of x from those of its variance and its mean."""
    of_x: Tensor | None = None
    if gradients[0] is not None:
        of_x = of_variance(gradients[0], x, dim, correction, keepdim)
    if gradients[1] is not None:
        dims = _dims(x, dim)
        mean = _with_dims(gradients[1], x, dims, keepdim) / math.prod(x.shape[d] for d in dims)
        of_x = mean.expand(x.shape) if of_x is None else of_x + mean
    return (of_x,)


def _of_all(rule: Rule) -> Rule:
    """Return the rule of a reduction of all elements, whose only operand beside x says whether the count is less by one."""
    return lambda gradients, results, x, unbiased=True: rule(gradients, results, x, None, unbiased)


def _not_zero(norm: Tensor) -> Tensor:
    return torch.where(norm == 0, 1.0, norm)


def _dims(x: Tensor, dim: int | list[int] | None) -> list[int]:
    """Return the dimensions that a reduction runs along. None, or none at all, stands for all."""
    if isinstance(dim, int):
        return [dim % max(x.dim(), 1)]
    return [d % x.dim() for d in dim] if dim else list(range(x.dim()))


def _with_dims(reduced: Tensor | None, x: Tensor, dims: Sequence[int], keepdim: bool) -> Tensor:
    """Return a result of a reduction of x with the dimensions that it lost, of extent 1."""
    reduced = given(reduced)
    places = {d % max(x.dim(), 1) for d in dims}
    return reduced if keepdim else reduced.reshape([1 if d in places else size for d, size in enumerate(x.shape)])


NORM_RULES: dict[Any, Rule] = {
    aten.layer_norm.default: _of_layer_norm,
    aten.rms_norm.default: _of_rms_norm,
    aten.group_norm.default: _of_group_norm,
    aten.batch_norm.default: _of_channel_norm([0]),
    aten.instance_norm.default: _of_channel_norm([]),
    **dict.fromkeys(
        (aten.linalg_vector_norm.default, aten.norm.Scalar, aten.norm.ScalarOpt_dim, aten.linalg_norm.default), _of_norm
    ),
    aten.cdist.default: _of_distances,
    aten.pairwise_distance.default: _of_distance,
    aten.cosine_similarity.default: _of_cosine,
    aten.var.default: _of_all(_of_variance),
    **dict.fromkeys((aten.var.dim, aten.var.correction), _of_variance),
    aten.std.default: _of_all(_of_deviation),
    **dict.fromkeys((aten.std.dim, aten.std.correction), _of_deviation),
    aten.var_mean.default: _of_all(_of_moments),
    **dict.fromkeys((aten.var_mean.dim, aten.var_mean.correction), _of_moments),
}
