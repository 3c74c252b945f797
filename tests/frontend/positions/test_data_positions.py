"""Gathers and scatters at positions that the model computes: each gives what PyTorch gives, at every granularity."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from sources import compiled_at
from torch import Tensor, nn
from torch.nn import functional as F

import fuseflow as ff

GENERATOR = torch.Generator().manual_seed(5)
X = torch.randn(5, 6, generator=GENERATOR)
Y = torch.randn(6, 3, generator=GENERATOR)


def routed(x: Tensor, y: Tensor) -> Tensor:
    """A mixture of experts that writes the weights of the best two into zeros."""
    weights, best = torch.topk(x @ y, 2)
    return torch.zeros(5, 3).scatter(1, best, weights.softmax(-1))


def grouped(x: Tensor, y: Tensor) -> Tensor:
    """Rows sorted by group, each group times its own matrix, and back in the old order."""
    group, order = torch.sort((x @ y).argmax(1))
    ends = torch.cumsum(torch.histc(group.float(), bins=3, min=0, max=2), 0, dtype=torch.int32)
    rows, wide = F.pad(x[order], (0, 2)), F.pad(y, (0, 1, 0, 2))  # its kernel takes rows of 16 bytes
    products = torch._grouped_mm(rows, torch.stack((wide, 2 * wide, wide - 1)), offs=ends)
    inverse = torch.empty_like(order)
    inverse[order] = torch.arange(5)
    return products[inverse]


CASES: dict[str, Callable[..., Any]] = {
    "gather": lambda x, y: torch.gather(x, 1, (x @ y).argsort(1)),
    "gather of fewer rows": lambda x, y: torch.gather(x, 1, (x @ y)[:3].argsort(1)),
    "gather along the first": lambda x, y: torch.gather(y, 0, x.argsort(0)[:, :3]),
    "known positions that differ by row": lambda x, y: torch.gather(x, 1, torch.arange(10).reshape(5, 2) % 6),
    "index": lambda x, y: y[x.argmax(1)],
    "negative index": lambda x, y: y[x.argmax(1) - 6],
    "index of a later dimension": lambda x, y: x[:, y.argmax(0)],
    "index of two dimensions": lambda x, y: x[torch.arange(5), x.argmin(1)],
    "index of any shape": lambda x, y: y[x.argsort(1)],
    "index that is a slice": lambda x, y: y[x[:4].argsort(1)[0, :3]],
    "index select": lambda x, y: torch.index_select(x, 1, y.argmax(0)),
    "embedding": lambda x, y: F.embedding(x.argmax(1), y),
    "one-hot": lambda x, y: F.one_hot(x.argmax(1), 6).float() @ y,
    "scatter": routed,
    "scatter of truth values": lambda x, y: x.masked_fill(torch.zeros_like(x > 0).scatter(1, x.argsort(1), x > 0.2), -1.0),
    "gather of truth values": lambda x, y: torch.where((x > 0).gather(1, x.argsort(1)), x, 0.0),
    "index of truth values": lambda x, y: torch.where((y > 0)[x.argmax(1)], x[:, :3], 0.0),
    "scatter over data": lambda x, y: x.scatter(1, (x @ y).argsort(1), x[:, :3] * 2),
    "the last of several is written": lambda x, y: torch.zeros(5, 6).scatter(1, (x > 0).long().cumsum(1) // 3, x),
    "scatter of a number": lambda x, y: x.scatter(1, x.argmax(1, keepdim=True), -1.0),
    "scatter add": lambda x, y: x.scatter_add(1, (x > 0).long(), x),
    "index add": lambda x, y: torch.zeros(3, 6).index_add(0, (x @ y).argmax(1), x),
    "index put": lambda x, y: torch.zeros(6, 3).index_put((x[:4].argsort(1)[0, :3],), y[:3]),
    "index put at the end": lambda x, y: y.index_put((x.argmax(1) - 6,), x[:, :3]),
    "index put that adds": lambda x, y: y.index_put((x.argmax(1) // 3,), x[:, :3], accumulate=True),
    "index put of two dimensions": lambda x, y: x.index_put((torch.arange(5), x.argmax(1)), x.sum(1)),
    "index put that adds in two dimensions": lambda x, y: x.index_put((x.argmax(1) // 3,) * 2, x.sum(1), accumulate=True),
    "columns are written": lambda x, y: torch.ops.aten.index_put(x, [None, y.argmax(0)], x[0, :3]),
    "index copy": lambda x, y: y.index_copy(0, x.argmax(1) // 3, x[:, :3]),
    "index copy of columns": lambda x, y: torch.zeros(2, 5, 6).index_copy(-1, y.argmax(0), torch.stack([x[:, :3]] * 2)),
    "grouped product": grouped,
    "numbers are counted": lambda x, y: torch.bincount((x @ y).topk(2, -1).indices.reshape(-1), minlength=6).float(),
    "numbers are counted, and more": lambda x, y: torch.bincount(x.argmax(1), minlength=9).float(),
    "numbers in bounds are counted": lambda x, y: torch.bincount((x * 2).abs().long().clamp(max=3).flatten(), minlength=5),
    "weights are counted": lambda x, y: torch.bincount(x[0].abs().long().clamp(0, 3), x[1], minlength=4),
    "histogram": lambda x, y: torch.histc(x, bins=4, min=-1, max=1),
    "sum of integers": lambda x, y: (x > 0).long().cumsum(1).float(),
    "sorted integers": lambda x, y: torch.sort(x.argsort(1), descending=True).values.float(),
}


@pytest.mark.parametrize("case", CASES)
def test_an_operator_gives_what_pytorch_gives(case: str) -> None:
    for compiled in compiled_at(CASES[case], (X, Y), "none", "full"):
        result = compiled.run()
        assert result.check is not None and result.check.passed, compiled.schedule


@pytest.mark.parametrize(
    "function",
    [
        lambda x: (x > 0).long()[:, 2:4],
        lambda x: (x > 0).long().flip(-1)[:, [0, 2]],
        lambda x: torch.cat([(x > 0).int(), (x > 1).int()], -1),
        lambda x: F.pad((x > 0).sum(-1), (0, 2)),
    ],
)
def test_parts_of_computed_integers_are_integers(function: Callable[[Tensor], Tensor]) -> None:
    for x in (X, X.flip(0)):
        for compiled in compiled_at(function, (x,), "none", "full"):
            (output,) = compiled.run().outputs.values()
            assert np.asarray(output).tolist() == function(x).tolist()


@pytest.mark.parametrize(
    "function", [lambda x: torch.bincount(x.argmax(1), minlength=3), lambda x: torch.bincount(x[0].abs().long())]
)
def test_counts_of_numbers_without_a_bound_have_no_size(function: Callable[[Tensor], Tensor]) -> None:
    with pytest.raises(ff.FuseFlowError, match="as many counts as the greatest number says") as raised:
        ff.compile(function, (X,))
    assert "minlength" in str(raised.value)


@pytest.mark.parametrize("function", [torch.floor, torch.ceil, torch.round, torch.trunc, torch.frac], ids=lambda f: f.__name__)
def test_fractions(function: Callable[[Tensor], Tensor]) -> None:
    x = torch.tensor([-2.5, -1.5, -1.0, -0.5, -0.2, 0.0, 0.5, 0.7, 1.5, 2.5, 1e9])
    result = ff.compile(function, (x,)).run()
    assert list(next(iter(result.outputs.values()))) == function(x).tolist()


@pytest.mark.parametrize("divisor", [3.0, -0.7])
def test_what_is_left(divisor: float) -> None:
    for function in (torch.remainder, torch.fmod):
        result = ff.compile(lambda x, f=function: f(x, divisor), (X * 5,)).run()
        assert result.check is not None and result.check.passed


def test_a_mixture_of_experts() -> None:
    class Mixture(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gate = nn.Linear(6, 4)
            self.up, self.down = nn.Parameter(torch.randn(4, 6, 8)), nn.Parameter(torch.randn(4, 8, 6))

        def forward(self, x: Tensor) -> Tensor:
            weights, experts = torch.topk(self.gate(x).softmax(-1), 2)
            hidden = torch.relu(torch.einsum("ti,tkio->tko", x, self.up[experts]))
            return (torch.einsum("tko,tkoi->tki", hidden, self.down[experts]) * weights[..., None]).sum(1)

    for compiled in compiled_at(Mixture().eval(), (X,), "none", "layerwise", "full"):
        result = compiled.run()
        assert result.check is not None and result.check.passed, compiled.schedule
