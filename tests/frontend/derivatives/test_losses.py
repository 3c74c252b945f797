"""Gradients of losses, at logits of 0 too."""

from __future__ import annotations

import pytest
import torch
from derivative_checks import check_rule
from torch import Tensor

LOGITS = torch.ops.aten.binary_cross_entropy_with_logits.default
GENERATOR = torch.Generator().manual_seed(6)
X = (1.5 * torch.randn(6, 5, dtype=torch.float64, generator=GENERATOR)).round()
Y, WEIGHT, POSITIVE = torch.rand(3, 6, 5, dtype=torch.float64, generator=GENERATOR)


@pytest.mark.parametrize("reduction", [0, 1, 2])
def test_cross_entropy_with_logits(reduction: int) -> None:
    assert (X == 0).sum() > 3
    for weight in (None, WEIGHT, WEIGHT[0]):
        for positive in (None, 3 * POSITIVE, 3 * POSITIVE[0]):
            check_rule(LOGITS, X, Y, weight, positive, reduction, witness=without_gradients_of_weights)


def without_gradients_of_weights(x: Tensor, y: Tensor, *others: Tensor | int | None) -> Tensor:
    return LOGITS(x, y, *(other.detach() if isinstance(other, Tensor) else other for other in others))


def test_the_gradient_of_logits_is_short() -> None:
    assert check_rule(LOGITS, X, Y)[:4] == ["mul", "sigmoid", "sub", "mul"]
