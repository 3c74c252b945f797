"""Losses whose formula has a magnitude, of which the derivative at 0 is 0, while the loss has another one."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from fuseflow.frontend.derivatives.rule import Gradients, Rule

aten = torch.ops.aten
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
    (gradient,) = gradients
    assert gradient is not None
    each = gradient * (1 / x.numel()) if reduction == _MEAN else gradient
    weighed = each if weight is None else each * weight
    weights = (None,) * ((weight is not None) + (positive is not None))
    if positive is None:
        return weighed * (torch.sigmoid(x) - y), -weighed * x, *weights
    softened = torch.log(1 + torch.exp(-x.abs())) + torch.relu(-x)
    share = 1 + (positive - 1) * y
    return weighed * (1 - y - share * torch.sigmoid(-x)), weighed * ((positive - 1) * softened - x), *weights


LOSS_RULES: dict[Any, Rule] = {aten.binary_cross_entropy_with_logits.default: _of_cross_entropy_with_logits}
