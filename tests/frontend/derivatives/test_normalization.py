"""Gradients of norms of layers, groups, batches and pictures."""

from __future__ import annotations

import pytest
import torch
from derivative_checks import check_rule
from torch import Tensor

aten = torch.ops.aten
GENERATOR = torch.Generator().manual_seed(5)
PICTURE = torch.randn(3, 4, 2, 5, dtype=torch.float64, generator=GENERATOR)
CHANNELS = torch.rand(4, 4, dtype=torch.float64, generator=GENERATOR) + 0.5


def test_layer_norm() -> None:
    weight, bias = torch.randn(2, 2, 5, dtype=torch.float64, generator=GENERATOR)
    for scales in ((None, None), (weight, None), (weight, bias)):
        check_rule(aten.layer_norm.default, PICTURE, [2, 5], *scales)
        check_rule(aten.layer_norm.default, PICTURE[0, 0], [2, 5], *scales)
    names = check_rule(aten.layer_norm.default, PICTURE, [5], weight[0], bias[0], 1e-3)
    assert len(names) == 21  # 9 of the formula, 9 of the operand, 3 of the scales


def test_rms_norm() -> None:
    weight = torch.randn(5, dtype=torch.float64, generator=GENERATOR)
    check_rule(aten.rms_norm.default, PICTURE, [5], weight)
    check_rule(aten.rms_norm.default, PICTURE, [2, 5], None, 1e-3)


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_group_norm(groups: int) -> None:
    check_rule(aten.group_norm.default, PICTURE, groups, CHANNELS[0], CHANNELS[1])
    check_rule(aten.group_norm.default, PICTURE, groups)


@pytest.mark.parametrize("x", [PICTURE, PICTURE[:, :, 0, 0]], ids=["pictures", "rows"])
def test_batch_norm(x: Tensor) -> None:
    check_rule(aten.batch_norm.default, x, CHANNELS[0], CHANNELS[1], None, None, True, 0.1, 1e-5, False)
    check_rule(aten.batch_norm.default, x, None, None, None, None, True, 0.1, 1e-5, False)

    def stored(x: Tensor, weight: Tensor, bias: Tensor, mean: Tensor, variance: Tensor, *others: float) -> Tensor:
        statistics = mean.detach().clone(), variance.detach().clone()
        return aten.batch_norm.default(x, weight, bias, *statistics, *others)  # type: ignore[no-any-return]

    for own in (False, True):
        check_rule(aten.batch_norm.default, x, *CHANNELS, own, 0.1, 1e-5, False, witness=stored)


def test_instance_norm() -> None:
    check_rule(aten.instance_norm.default, PICTURE, CHANNELS[0], CHANNELS[1], None, None, True, 0.1, 1e-5, False)
