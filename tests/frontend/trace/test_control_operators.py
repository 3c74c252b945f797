"""PyTorch's operators of control flow give what PyTorch gives: on data, with both outcomes of a condition."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from sources import compiled_at
from torch import Tensor, nn
from torch._higher_order_ops import scan, while_loop
from torch._higher_order_ops.map import map as mapped

X = torch.randn(3, 4, generator=torch.Generator().manual_seed(2))
CASES: dict[str, Callable[..., Any]] = {
    "cond": lambda w, x: torch.cond(x.sum() > 0, lambda y: (y @ w).relu(), lambda y: y - 1, (x,)),
    "cond of several": lambda w, x: torch.cond(x[:1, 0] > 0, lambda y: (y @ w, y * 2), lambda y: (y - 1, y * 3), (x,)),
    "while_loop": lambda w, x: while_loop(
        lambda z, size: size > 0.1, lambda z, size: (z @ w, (z @ w).norm()), (x, torch.tensor(1.0))
    ),
    "scan": lambda w, x: scan(lambda c, r: (torch.tanh(c @ w + r), c * r), torch.ones(4), x),
    "scan from behind": lambda w, x: scan(lambda c, r: (c * r, c + r), torch.ones(3), x, dim=1, reverse=True),
    "map": lambda w, x: mapped(lambda r, scale: torch.tanh(r @ w) * scale, x, x.sum(0)),
}


class Model(nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function, self.weight = function, nn.Parameter(0.3 * torch.eye(4).roll(1, 0))

    def forward(self, x: Tensor) -> Any:
        return self.function(self.weight, x)


@pytest.mark.parametrize("case", CASES)
def test_an_operator_gives_what_pytorch_gives(case: str) -> None:
    for x in (X, -X):
        for compiled in compiled_at(Model(CASES[case]), (x,), "none", "full"):
            result = compiled.run()
            assert result.check is not None and result.check.passed, compiled.schedule
