"""Gradients of operators on single elements, at 0 too."""

from __future__ import annotations

import torch
from derivative_checks import check_rule

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
