"""Norms, distances and deviations: the derivative of a root is infinite at 0, where PyTorch's gradient is 0."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from fuseflow.frontend.derivatives.rule import Gradients, Rule

aten = torch.ops.aten


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
    gradient, distances = _given(gradients[0]).unsqueeze(-1), results[0].unsqueeze(-1)
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
    gradient, cosine = _given(gradients[0]).unsqueeze(dim), results[0].unsqueeze(dim)
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
    count = math.prod(x.shape[d] for d in dims)
    centred = x - x.sum(dims, keepdim=True) / count
    return centred * (_with_dims(gradient, x, dims, keepdim) * (2 / max(count - (1 if correction is None else correction), 0)))


def _of_variance(gradients: Gradients, _: tuple[Tensor, ...], x: Tensor, *args: Any, **kwargs: Any) -> Gradients:
    return (of_variance(gradients[0], x, *args, **kwargs),)


def _of_deviation(gradients: Gradients, results: tuple[Tensor, ...], x: Tensor, *args: Any, **kwargs: Any) -> Gradients:
    return (of_variance(_given(gradients[0]) / (2 * _not_zero(results[0])), x, *args, **kwargs),)


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
    reduced = _given(reduced)
    places = {d % max(x.dim(), 1) for d in dims}
    return reduced if keepdim else reduced.reshape([1 if d in places else size for d, size in enumerate(x.shape)])


def _given(gradient: Tensor | None) -> Tensor:
    assert gradient is not None
    return gradient


NORM_RULES: dict[Any, Rule] = {
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
