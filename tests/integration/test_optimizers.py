"""Optimizers as programs: a weight that is stored sparse keeps its pattern and its format, and so do its states."""

from __future__ import annotations

import pytest
import torch
from scipy import sparse
from torch import Tensor, nn

import fuseflow as ff
from fuseflow.training.optimizers.formulas import parse_optimizer
from fuseflow.training.optimizers.optimizer import Optimizer


class Update(nn.Module):
    """The update of one parameter."""

    def __init__(self, optimizer: Optimizer) -> None:
        super().__init__()
        self.optimizer = optimizer

    def forward(self, w: Tensor, g: Tensor, states: dict[str, Tensor], scalars: dict[str, Tensor]) -> tuple[Tensor, ...]:
        new, new_states = self.optimizer.update(w, g, states, scalars)
        return (new, *new_states.values())


@pytest.mark.parametrize(
    "text",
    [
        "sgd:momentum=0.9,dampening=0.1,weight_decay=0.1,maximize=true",
        "adam:amsgrad=true,weight_decay=0.1",
        "adamw",
        "rmsprop:momentum=0.9,centered=true",
        "adagrad:lr_decay=0.1",
    ],
)
def test_an_update_of_a_sparse_weight_is_sparse(text):
    generator = torch.Generator().manual_seed(1)
    optimizer, mask = parse_optimizer(text), torch.rand(6, 5, generator=generator) < 0.3

    def pruned() -> Tensor:
        return torch.rand(6, 5, generator=generator) * mask

    weight, states = pruned(), {key: pruned() for key in optimizer.state_names}
    scalars = {key: torch.tensor(value) for key, value in optimizer.scalars(2).items()}
    formats = {"w": "csr", "g": "csr", **{f"states_{key}": "csr" for key in states}}
    program = ff.compile(Update(optimizer), (weight, pruned() - pruned(), states, scalars), formats=formats)
    stored = {tensor.name: str(tensor.format) for tensor in program.program.tensors}
    assert {stored[name] for name in program.program.outputs} == {"(dense, compressed)"}
    result = program.run()
    outputs = [array.toarray() if sparse.issparse(array) else array for array in result.outputs.values()]
    assert result.check.passed and all(not array[~mask.numpy()].any() for array in outputs)
