"""Operators on single elements or rows whose formula has another derivative than the operator, or none, at some elements, such as that of a
magnitude at 0; and what a rule of `keep` leaves: which entries it keeps has no gradient."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from fuseflow.errors import FrontendError
from fuseflow.frontend.derivatives.rule import Gradients, Rule, given
from fuseflow.frontend.positions.gathers import as_table
from fuseflow.frontend.trace.sparsified_tensors import keep

aten = torch.ops.aten


def _of_area_sine(gradients: Gradients, _: tuple[Tensor, ...], x: Tensor) -> Gradients:
    gradient = given(gradients[0])
    return (gradient * torch.rsqrt(x * x + 1),)


def _of_remainder(gradients: Gradients, results: tuple[Tensor, ...], x: Tensor, y: Tensor | float) -> Gradients:
    """Return the gradients of `fmod`, which takes as many y from x as the rounded quotient says."""
    gradient, left = given(gradients[0]), results[0]
    of_x = gradient.sum_to_size(x.shape)
    if not isinstance(y, Tensor):
        return (of_x,)
    return of_x, (-gradient * torch.round((x - left) / y)).sum_to_size(y.shape)


def _of_area_tangent(gradients: Gradients, _: tuple[Tensor, ...], x: Tensor) -> Gradients:
    gradient = given(gradients[0])
    return (gradient / (1 - x * x),)


def _of_x_log_y(gradients: Gradients, _: tuple[Tensor, ...], x: Tensor | float, y: Tensor | float) -> Gradients:
    """Return the gradients of `x * log(y)`, which is 0 where x is 0. There, the one of x is 0 where y has no logarithm."""
    gradient = given(gradients[0])
    known = list[Tensor]()
    if isinstance(x, Tensor):
        logarithms = torch.log(torch.as_tensor(y, dtype=x.dtype))
        no_logarithm = torch.logical_or(gradient == 0, torch.logical_and(x == 0, torch.as_tensor(y) <= 0))
        known.append(torch.where(no_logarithm, 0.0, gradient * logarithms).sum_to_size(x.shape))
    if isinstance(y, Tensor):
        known.append((gradient * x / y).sum_to_size(y.shape))
    return tuple(known)


def _of_keep(gradients: Gradients, results: tuple[Tensor, ...], x: Tensor, marker: Tensor, marks: bool = False) -> Gradients:
    (gradient,), (kept,) = gradients, results
    if gradient is None or marks:
        return None, None
    return torch.where(kept != 0, gradient, 0.0), None


_MEAN = 1
"""The number that stands for an average in ATen."""


def _of_cross_entropy_with_logits(
    gradients: Gradients,
    _: tuple[Tensor, ...],
    x: Tensor,
    y: Tensor,
    weight: Tensor | None = None,
    positive: Tensor | None = None,
    reduction: int = _MEAN,
) -> Gradients:
    """Return the gradients of `(1 - y) * x + p * s`, times the weight: `s` is the softplus of -x, and `p` is `1 + (positive - 1) * y`.
    As in PyTorch, weights have no gradients."""
    gradient = given(gradients[0])
    each = gradient * (1 / x.numel()) if reduction == _MEAN else gradient
    weighed = each if weight is None else each * weight
    weights = (None,) * ((weight is not None) + (positive is not None))
    if positive is None:
        return weighed * (torch.sigmoid(x) - y), -weighed * x, *weights
    softened = torch.log(1 + torch.exp(-x.abs())) + torch.relu(-x)
    share = 1 + (positive - 1) * y
    return weighed * (1 - y - share * torch.sigmoid(-x)), weighed * ((positive - 1) * softened - x), *weights


def _of_table(gradients: Gradients, _: tuple[Tensor, ...], weight: Tensor, padding: int | None, counts: bool) -> Gradients:
    (gradient,) = gradients
    if counts:
        hint = "without it, each row has the sum of the gradients of all places that take it"
        raise FrontendError("an embedding with scale_grad_by_freq has no gradient in the compiler", hint=hint)
    if gradient is None or padding is None:
        return (gradient,)
    before, behind = gradient.narrow(0, 0, padding), gradient.narrow(0, padding + 1, len(weight) - padding - 1)
    parts = (before, torch.zeros_like(gradient.narrow(0, 0, 1)), behind)
    return (torch.cat([part for part in parts if len(part)]),)


POINTWISE_RULES: dict[Any, Rule] = {
    keep: _of_keep,
    aten.binary_cross_entropy_with_logits.default: _of_cross_entropy_with_logits,
    as_table: _of_table,
    aten.asinh.default: _of_area_sine,
    aten.atanh.default: _of_area_tangent,
    **dict.fromkeys((aten.xlogy.Tensor, aten.xlogy.Scalar_Self, aten.xlogy.Scalar_Other), _of_x_log_y),
    **dict.fromkeys((aten.fmod.Tensor, aten.fmod.Scalar), _of_remainder),
}
