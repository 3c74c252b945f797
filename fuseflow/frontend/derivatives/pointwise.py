"""Operators on single elements whose formula has another derivative than the operator, or none, at some elements, such as that of a
magnitude at 0."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from fuseflow.frontend.derivatives.rule import Gradients, Rule

aten = torch.ops.aten


def _of_area_sine(gradients: Gradients, _: tuple[Tensor, ...], x: Tensor) -> Gradients:
    (gradient,) = gradients
    assert gradient is not None
    return (gradient * torch.rsqrt(x * x + 1),)


def _of_remainder(gradients: Gradients, results: tuple[Tensor, ...], x: Tensor, y: Tensor | float) -> Gradients:
    """Return the gradients of `fmod`, which takes as many y from x as the rounded quotient says."""
    (gradient,), (left,) = gradients, results
    assert gradient is not None
    of_x = gradient.sum_to_size(x.shape)
    if not isinstance(y, Tensor):
        return (of_x,)
    return of_x, (-gradient * torch.round((x - left) / y)).sum_to_size(y.shape)


def _of_area_tangent(gradients: Gradients, _: tuple[Tensor, ...], x: Tensor) -> Gradients:
    (gradient,) = gradients
    assert gradient is not None
    return (gradient / (1 - x * x),)


def _of_x_log_y(gradients: Gradients, _: tuple[Tensor, ...], x: Tensor | float, y: Tensor | float) -> Gradients:
    """Return the gradients of `x * log(y)`, which is 0 where x is 0. There, the one of x is 0 where y has no logarithm."""
    (gradient,) = gradients
    assert gradient is not None
    known = list[Tensor]()
    if isinstance(x, Tensor):
        logarithms = torch.log(torch.as_tensor(y, dtype=x.dtype))
        no_logarithm = torch.logical_or(gradient == 0, torch.logical_and(x == 0, torch.as_tensor(y) <= 0))
        known.append(torch.where(no_logarithm, 0.0, gradient * logarithms).sum_to_size(x.shape))
    if isinstance(y, Tensor):
        known.append((gradient * x / y).sum_to_size(y.shape))
    return tuple(known)


POINTWISE_RULES: dict[Any, Rule] = {
    aten.asinh.default: _of_area_sine,
    aten.atanh.default: _of_area_tangent,
    **dict.fromkeys((aten.xlogy.Tensor, aten.xlogy.Scalar_Self, aten.xlogy.Scalar_Other), _of_x_log_y),
    **dict.fromkeys((aten.fmod.Tensor, aten.fmod.Scalar), _of_remainder),
}
