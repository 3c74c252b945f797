"""An operator that is differentiated through its formula has PyTorch's derivative, at small integers too, where magnitudes and conditions
of formulas change."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from fuseflow.frontend.decompositions.operator_formulas import IDENTITIES
from fuseflow.frontend.derivatives.rules import RULES

aten = torch.ops.aten
GENERATOR = torch.Generator().manual_seed(8)
X, Y, GRADIENT = (1.5 * torch.randn(3, 5, 6, dtype=torch.float64, generator=GENERATOR)).round() + 0.0
OPERANDS: list[tuple[Any, ...]] = [
    (X,),
    (X.abs(),),
    (X, Y),
    (X, Y.abs()),
    (X.abs(), Y.abs()),
    (X, 2.0),
    (X, 0.0),
    (2.0, X),
    (0.0, X.abs()),
]
NOT_DIFFERENTIABLE = {
    aten.floor_divide.default,
    aten.floor_divide.Scalar,
    aten.heaviside.default,
    aten.isnan.default,
    aten.isfinite.default,
}
FORMULAS = {str(operator): operator for operator in IDENTITIES if operator not in RULES | dict.fromkeys(NOT_DIFFERENTIABLE)}


@pytest.mark.parametrize("name", FORMULAS)
def test_a_formula_has_the_derivative_of_the_operator(name: str) -> None:
    operator: Any = FORMULAS[name]
    for operands in OPERANDS:
        tensors = [x.clone().requires_grad_() for x in operands if isinstance(x, Tensor)]
        rest = iter(tensors)
        given = [next(rest) if isinstance(x, Tensor) else x for x in operands]
        try:
            wanted = operator(*given)
        except (RuntimeError, IndexError):  # It takes other operands.
            continue
        gradients = [_gradients(result, tensors) for result in (wanted, IDENTITIES[operator](*given))]
        for actual, expected in zip(*reversed(gradients), strict=True):
            torch.testing.assert_close(actual, expected, equal_nan=True)


def _gradients(result: Any, tensors: list[Tensor]) -> list[Tensor]:
    """Return the gradients of tensors, which are 0 where the result does not depend on them."""
    if not (isinstance(result, Tensor) and result.requires_grad):
        return [torch.zeros_like(x) for x in tensors]
    outer = GRADIENT.new_ones(result.shape) if result.shape != GRADIENT.shape else GRADIENT
    found = torch.autograd.grad(result, tensors, outer.to(result.dtype), allow_unused=True)
    return [torch.zeros_like(x) if gradient is None else gradient for x, gradient in zip(tensors, found, strict=True)]
