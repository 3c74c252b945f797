"""Random models: chains of products, reductions, broadcasts and reshapes. The program equals eager PyTorch."""

from collections.abc import Callable

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from fuseflow.einsum.interpret import evaluate
from fuseflow.frontend import import_model, read_mlir

STEPS: dict[str, Callable[[Tensor, Tensor, Tensor], Tensor]] = {
    "transpose": lambda x, a, b: x.transpose(-1, -2),
    "spmm": lambda x, a, b: a @ x if x.dim() == 2 and x.shape[0] == 6 else x,
    "weight": lambda x, a, b: x @ b if x.shape[-1] == 4 else x,
    "relu": lambda x, a, b: torch.relu(x),
    "row max": lambda x, a, b: x - x.amax(-1, keepdim=True),
    "mean": lambda x, a, b: x - x.mean(0, keepdim=True),
    "scale": lambda x, a, b: x * 0.5 + 1,
    "square": lambda x, a, b: x * x.tanh(),
    "clamp": lambda x, a, b: x.clamp(min=-0.25),
    "split": lambda x, a, b: x.reshape(*x.shape[:-1], 2, -1) if x.dim() == 2 else x,
    "swap": lambda x, a, b: x.transpose(0, 1),
    "merge": lambda x, a, b: x.flatten(1) if x.dim() == 3 else x,
    "mask": lambda x, a, b: x.masked_fill(x > 0.5, 0.0),
    "column": lambda x, a, b: x.sum(-1, keepdim=True) * x,
}


class Chain(nn.Module):
    def __init__(self, steps: list[str]) -> None:
        super().__init__()
        self.steps = steps
        self.b = nn.Parameter(torch.linspace(-1, 1, 24).reshape(4, 6))

    def forward(self, a: Tensor, x: Tensor) -> Tensor:
        for step in self.steps:
            x = STEPS[step](x, a, self.b)
        return x


@settings(max_examples=10)
@given(st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=7), st.sampled_from(["csr", "csc", "coo"]))
def test_program_equals_eager(steps: list[str], layout: str) -> None:
    dense = torch.linspace(-1, 1, 36).reshape(6, 6) * (torch.arange(36).reshape(6, 6) % 5 == 1)
    a = {"csr": dense.to_sparse_csr, "csc": dense.to_sparse_csc, "coo": dense.to_sparse_coo}[layout]()
    imported = import_model(Chain(steps).eval(), (a, torch.linspace(-1, 1, 24).reshape(6, 4)))
    assert read_mlir(imported.mlir) == imported.program
    results = evaluate(imported.program, {name: t.to_dense() for name, t in imported.tensors.items()})
    for name, expected in imported.expected.items():
        np.testing.assert_allclose(results[name], expected, rtol=1e-4, atol=1e-5)
