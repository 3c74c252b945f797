"""What a dropout draws is what PyTorch draws, in whatever order its operand lies in memory."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import fuseflow as ff


class Dropped(nn.Module):
    """A dropout of a function of a product."""

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.linear, self.function = nn.Linear(4, 4), function

    def forward(self, x: Tensor) -> Tensor:
        return F.dropout(self.function(self.linear(x)), 0.4, self.training)


FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "rows": torch.tanh,
    "transposed": lambda x: x.t().exp(),
    "permuted": lambda x: x.reshape(-1, 2, 2).permute(2, 0, 1).sin(),
    "expanded": lambda x: x.sum(0).expand(3, 4),
    "sliced": lambda x: x[:, ::2],
    "einsum": lambda x: torch.tanh(torch.einsum("ij,l,lj->ij", x, x[0], x[:4])),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_dropout_draws_in_the_order_of_the_memory(name: str) -> None:
    torch.manual_seed(3)
    model = Dropped(FUNCTIONS[name])
    x = torch.randn(6, 4)
    target = torch.zeros_like(model(x))
    schedule = ff.Schedule.fuse("none").lower(order_policy="first")
    step = ff.training_step(model, (x,), target, loss="mse", schedule=schedule)
    run = step.run(steps=2)
    assert run.check is not None and run.check.passed
