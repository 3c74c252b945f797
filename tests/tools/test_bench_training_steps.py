"""The step of training that the benchmark times is PyTorch's."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

BENCH = Path(__file__).parents[2] / "tools" / "bench"


def test_the_step_of_the_benchmark(monkeypatch) -> None:
    monkeypatch.syspath_prepend(BENCH)
    import training_steps

    program = training_steps.compiled("karate", None, 5)
    run = program.run(steps=6, scalars=lambda step: {"lr": 0.2})
    arrays = {name: torch.tensor(tensor.to_dense()).float() for name, tensor in program.source.tensors.items()}
    weights = [arrays[name].requires_grad_() for name in training_steps.PARAMETERS]
    first, bias, second, bias2 = weights
    optimizer, losses = torch.optim.SGD(weights, lr=0.2, momentum=0.9), []
    for _ in range(6):
        optimizer.zero_grad()
        hidden = torch.relu(arrays["adj"] @ (arrays["x"] @ first) + bias)
        scores = arrays["adj"] @ (hidden @ second) + bias2
        loss = -(arrays["target"] * scores.log_softmax(1)).sum()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    np.testing.assert_allclose(run.losses, losses, rtol=1e-5)
    for name, weight in zip(training_steps.PARAMETERS, weights, strict=True):
        np.testing.assert_allclose(run.state[name].to_dense(), weight.detach().numpy(), atol=2e-6)
    assert run.check.passed and None not in run.cycles
