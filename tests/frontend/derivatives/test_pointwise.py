"""Gradients of operators on single elements, at 0 too."""

from __future__ import annotations

import pytest
import torch
from derivative_checks import check_rule
from torch import Tensor

from fuseflow.errors import FrontendError
from fuseflow.frontend.derivatives.rules import RULES
from fuseflow.frontend.positions.gathers import as_table

aten = torch.ops.aten
GENERATOR = torch.Generator().manual_seed(5)
X, Y = 3 * torch.randn(2, 4, 6, dtype=torch.float64, generator=GENERATOR)


def test_area_sine() -> None:
    assert check_rule(aten.asinh.default, X.round()) == ["mul", "add", "rsqrt", "mul"]


def test_remainder() -> None:
    for x in (X, X.round()):
        check_rule(aten.fmod.Tensor, x, Y)
        check_rule(aten.fmod.Tensor, x, Y[:1])
        check_rule(aten.fmod.Scalar, x, 1.5)


def test_area_tangent() -> None:
    for x in (X / 12, X.round().clamp(-1, 1)):
        check_rule(aten.atanh.default, x)


def test_x_log_y() -> None:
    x = X.round()
    for y in (Y.abs(), Y.round().abs(), Y.round()):
        check_rule(aten.xlogy.Tensor, x, y)
        check_rule(aten.xlogy.Tensor, x[:1], y)
        check_rule(aten.xlogy.Scalar_Self, 0.0, y)
        check_rule(aten.xlogy.Scalar_Self, 2.0, y)
    for number in (2.0, 0.0, -1.0):
        check_rule(aten.xlogy.Scalar_Other, x, number)


WEIGHT = torch.randn(5, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(5))
EVERY_ROW = torch.arange(5)


@pytest.mark.parametrize("padding", [0, 2, 4])
def test_padding_has_no_gradient(padding: int) -> None:
    def witness(weight: Tensor, *_: object) -> Tensor:
        return torch.nn.functional.embedding(EVERY_ROW, weight, padding)

    check_rule(as_table, WEIGHT, padding, False, witness=witness)


def test_gradients_by_count_are_refused() -> None:
    with pytest.raises(FrontendError, match="scale_grad_by_freq"):
        RULES[as_table]((WEIGHT,), (WEIGHT,), WEIGHT, None, True)
