"""Gradients of tables of embeddings."""

from __future__ import annotations

import pytest
import torch
from derivative_checks import check_rule
from torch import Tensor

from fuseflow.errors import FrontendError
from fuseflow.frontend.derivatives.rules import RULES
from fuseflow.frontend.positions.gathers import as_table

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
