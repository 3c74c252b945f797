"""PyTorch as the witness: what a model gives there, it gives at every cut."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from sources import compiled_at
from torch import Tensor, nn

CUTS = ("none", "layerwise", "full")


class Function(nn.Module):
    """A function of tensors as a module."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: Tensor) -> Any:
        return self.function(*inputs)


def drawn(*shape: int) -> Tensor:
    """Random numbers that depend on the shape alone."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


def sparse(*shape: int) -> Tensor:
    """A random matrix in CSR, of which about half is stored."""
    x = drawn(*shape)
    return (x * (x > 0)).to_sparse_csr()


def matches(model: Callable[..., Any], inputs: Sequence[Tensor], cuts: Sequence[str] = CUTS, tolerance: float = 1e-4) -> None:
    """Assert that a module or a function gives at each cut what PyTorch gives, and that fuseflow's own check says so."""
    module = model.eval() if isinstance(model, nn.Module) else Function(model)
    with torch.no_grad():
        expected = [leaf for leaf in torch.utils._pytree.tree_leaves(module(*inputs)) if isinstance(leaf, Tensor)]
    for compiled in compiled_at(module, inputs, *cuts, machine="ideal"):
        result = compiled.run()
        assert result.check.passed
        for output, wanted in zip(result.outputs.values(), expected, strict=True):
            computed: Any = output.toarray() if hasattr(output, "toarray") else output
            dense = (wanted if wanted.layout == torch.strided else wanted.to_dense()).double().numpy()
            about = str(compiled.schedule)
            np.testing.assert_allclose(
                np.asarray(computed, np.float64).ravel(), dense.ravel(), rtol=tolerance, atol=tolerance, err_msg=about
            )
