"""Tensors that are compared with numbers of another kind: known ones, whose comparisons are folded, and inputs."""

from __future__ import annotations

import operator

import pytest
import torch
from torch import Tensor

import fuseflow as ff

X = torch.randn(2, 3, generator=torch.Generator().manual_seed(1))
WHOLE = torch.arange(-1, 5).reshape(2, 3)
OPERATORS = (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge)
NUMBERS = (1, 2, 1.0, 1.5, -0.5, float("inf"), float("nan"))


@pytest.mark.parametrize(("dtype", "number"), [*((torch.float32, n) for n in NUMBERS), *((torch.int64, n) for n in (1, 2, 1.0))])
def test_the_truth_of_what_is_known_is_that_of_pytorch(dtype: torch.dtype, number: float) -> None:
    def model(x: Tensor) -> list[Tensor]:
        known = torch.full_like(x, 1, dtype=dtype)
        return [torch.where(compare(known, number), x, 2.0) + x for compare in OPERATORS]

    result = ff.compile(model, (X,)).run()
    assert result.check is not None and result.check.passed


@pytest.mark.parametrize("number", NUMBERS)
def test_the_truth_of_whole_inputs_is_that_of_pytorch(number: float) -> None:
    def model(x: Tensor, whole: Tensor) -> list[Tensor]:
        return [torch.where(compare(whole, number), x, 2.0) + x for compare in OPERATORS]

    result = ff.compile(model, (X, WHOLE)).run()
    assert result.check is not None and result.check.passed
