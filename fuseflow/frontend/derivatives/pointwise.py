"""Operators on single elements whose formula has a magnitude, of which the derivative at 0 is 0, or no derivative at all."""

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


POINTWISE_RULES: dict[Any, Rule] = {
    aten.asinh.default: _of_area_sine,
    **dict.fromkeys((aten.fmod.Tensor, aten.fmod.Scalar), _of_remainder),
}
