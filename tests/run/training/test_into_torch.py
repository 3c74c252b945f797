"""The state of a run goes back to PyTorch, whose optimizer goes on from there as if it had made all steps."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import fuseflow as ff
from fuseflow.einsum.parse import parse
from fuseflow.errors import UsageError

ADAM = """
program adam
tensor x[9, 4]
tensor y[9]
tensor weight[4]
tensor weight.exp_avg[4]
tensor weight.exp_avg_sq[4]
tensor correction1[]
tensor correction2[]
error[n] = sum(i) x[n, i] * weight[i] - y[n]
loss = sum(n) error[n] * error[n] / 9
grad.weight[i] = sum(n) x[n, i] * error[n] * 2 / 9
next.weight.exp_avg[i] = 0.9 * weight.exp_avg[i] + 0.1 * grad.weight[i]
next.weight.exp_avg_sq[i] = 0.999 * weight.exp_avg_sq[i] + 0.001 * grad.weight[i] * grad.weight[i]
root[i] = sqrt(next.weight.exp_avg_sq[i] / correction2) + 0.00000001
next.weight[i] = weight[i] - 0.01 * (next.weight.exp_avg[i] / correction1) / root[i]
output loss, next.weight, next.weight.exp_avg, next.weight.exp_avg_sq
"""
SGD = """
program momentum
tensor x[9, 4]
tensor y[9]
tensor weight[4]
tensor weight.momentum_buffer[4]
error[n] = sum(i) x[n, i] * weight[i] - y[n]
loss = sum(n) error[n] * error[n] / 9
next.weight.momentum_buffer[i] = 0.9 * weight.momentum_buffer[i] + (sum(n) x[n, i] * error[n]) * 2 / 9
next.weight[i] = weight[i] - 0.01 * next.weight.momentum_buffer[i]
output loss, next.weight, next.weight.momentum_buffer
"""
CASES = {
    "adam": (ADAM, lambda model: torch.optim.Adam(model.parameters(), lr=0.01)),
    "momentum": (SGD, lambda model: torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)),
}


def corrections(step: int) -> dict[str, float]:
    return {"correction1": 1 - 0.9**step, "correction2": 1 - 0.999**step}


def setting(case: str) -> tuple[ff.Compiled, nn.Module, torch.optim.Optimizer, torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    text, optimizer = CASES[case]
    x, y, model, program = torch.randn(9, 4), torch.randn(9), nn.Linear(4, 1, bias=False), parse(text)
    tensors = {"x": x.numpy(), "y": y.numpy(), "weight": model.weight.detach().numpy().reshape(4)}
    zeros = {t.name: np.zeros(t.shape) for t in program.inputs if t.name.startswith("weight.")}
    return ff.compile(program, tensors={**tensors, **zeros}), model, optimizer(model), x, y


def train(model: nn.Module, optimizer: torch.optim.Optimizer, x: torch.Tensor, y: torch.Tensor, steps: int) -> list[float]:
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x).reshape(9), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize("case", CASES)
def test_pytorch_goes_on(case) -> None:
    program, model, optimizer, x, y = setting(case)
    run = program.run(steps=5, scalars=corrections if case == "adam" else None)
    run.load_into(model, optimizer)
    losses = [*run.losses, *train(model, optimizer, x, y, 4)]
    _, other, its_optimizer, _, _ = setting(case)
    np.testing.assert_allclose(losses, train(other, its_optimizer, x, y, 9), rtol=1e-5)
    np.testing.assert_allclose(model.weight.detach(), other.weight.detach(), atol=1e-6)
    own, its = (list(each.state_dict()["state"][0].items()) for each in (optimizer, its_optimizer))
    assert sorted(key for key, _ in own) == sorted(key for key, _ in its)
    assert "step" not in dict(own) or float(dict(own)["step"]) == 9


def test_a_model_alone() -> None:
    program, model, _, _, _ = setting("momentum")
    run = program.run(steps=2)
    run.load_into(model)
    np.testing.assert_array_equal(model.weight.detach().numpy().reshape(4), run.state["weight"].to_dense())


def test_models_that_do_not_fit() -> None:
    run = setting("momentum")[0].run(steps=1)
    with pytest.raises(UsageError, match="no parameter or buffer `weight`"):
        run.load_into(nn.Sequential(nn.Linear(4, 1)))
    model = nn.Linear(3, 1, bias=False)
    before = model.weight.detach().clone()
    with pytest.raises(UsageError, match=r"`weight` has the shape \[1, 3\] in the model, and \[4\] in the program"):
        run.load_into(model)
    assert (model.weight == before).all()
