"""Weights that PyTorch stores sparse, in training: they have a gradient at their own entries."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

import fuseflow as ff
import fuseflow.sparsity as sp


class Sparse(nn.Module):
    """x times a sparse weight, whose gradient PyTorch returns dense (`linear`) or in the layout of the weight."""

    def __init__(self, layout: torch.layout, linear: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        dense = torch.randn(5, 6) * (torch.rand(5, 6) < 0.4)
        self.weight = nn.Parameter(dense.to_sparse(layout=layout))
        self.linear = linear

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.linear(x, self.weight) if self.linear else torch.sparse.mm(self.weight, x.T).T


@pytest.mark.parametrize("linear", [True, False])
@pytest.mark.parametrize("optimizer", ["sgd:lr=0.1", "sgd:lr=0.1,momentum=0.9"])
@pytest.mark.parametrize("fuse", ["none", "layerwise"])
def test_it_trains_at_its_entries(linear: bool, optimizer: str, fuse: str) -> None:
    model = Sparse(torch.sparse_csr, linear)
    before = model.weight.detach().to_dense().clone()
    step = ff.training_step(
        model, (torch.rand(4, 6),), torch.rand(4, 5), loss="mse", optimizer=optimizer, gradients=True,
        schedule=ff.Schedule.fuse(fuse),
    )  # fmt: skip
    run = step.run(steps=3)
    assert run.check is not None and run.check.passed, run.check
    assert run.state["weight"].format.short() == "csr"
    after = torch.from_numpy(run.state["weight"].to_dense())
    assert torch.equal(after != 0, before != 0) and not torch.equal(after, before)
    assert run.losses == pytest.approx(run.reference_losses, rel=1e-5)
    run.load_into(model)
    assert model.weight.layout == torch.sparse_csr and torch.equal(model.weight.detach().to_dense(), after)


def test_an_optimizer_of_a_model_that_is_made_sparse() -> None:
    torch.manual_seed(0)
    model = nn.Linear(6, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
    rules = sp.parse_sparsify("weight=magnitude:0.5:csr")
    step = ff.training_step(model, (torch.rand(3, 6),), torch.rand(3, 4), loss="mse", optimizer=optimizer, sparsity=rules)
    run = step.run(steps=2)
    assert run.check is not None and run.check.passed and run.state["weight"].stored == 12
    assert not (model.weight == 0).any()  # the model of the user is not pruned
    run.load_into(model, optimizer)
    assert int((model.weight == 0).sum()) == 12
    assert optimizer.state[model.weight]["momentum_buffer"].shape == (4, 6)


def test_batches_of_an_input_that_is_stored_in_another_format() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 4))
    x, y = torch.randn(16, 32), torch.arange(16) % 4
    rules = sp.parse_sparsify("0.weight=magnitude:0.9:csr")
    schedule = ff.Schedule().format("input", "(dense, dense) order (1, 0)")
    step = ff.training_step(model, (x,), y, loss="cross_entropy", sparsity=rules, schedule=schedule)
    stored = step.program.declared["input"].format
    assert stored is not None and stored.order == (1, 0)
    run = step.run(steps=3, batches=({"input": torch.randn(16, 32), "target": y} for _ in range(3)))
    assert run.check is not None and run.check.passed
