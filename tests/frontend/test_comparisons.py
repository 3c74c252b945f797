"""Known tensors that are compared with numbers of another kind. torch-mlir folded such comparisons to wrong truth values, or crashed."""

from __future__ import annotations

import operator

import pytest
import torch
from torch import Tensor

import fuseflow as ff

X = torch.randn(2, 3, generator=torch.Generator().manual_seed(1))
OPERATORS = (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge)


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64])
@pytest.mark.parametrize("number", [1, 2, 1.0, 1.5, -0.5, float("inf"), float("nan")])
def test_the_truth_is_that_of_pytorch(dtype: torch.dtype, number: float) -> None:
    def model(x: Tensor) -> list[Tensor]:
        known = torch.full_like(x, 1, dtype=dtype)
        return [torch.where(compare(known, number), x, 2.0) + x for compare in OPERATORS]

    result = ff.compile(model, (X,)).run()
    assert result.check is not None and result.check.passed
