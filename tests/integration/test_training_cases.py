"""Five steps of the recorded cases: losses, gradients, parameters, buffers and states as PyTorch recorded them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

import fuseflow as ff
import fuseflow.sparsity as sp
from tests.support.training_cases import CASES, recorded

CUTS = ("none", "layerwise", "full", "best")
TOLERANCE, ROUNDING_FACTOR = 1e-5, 8.0


def seeds():
    """Yield an empty batch for each step, and set PyTorch's generator to the number of the step before it."""
    for number in itertools.count(1):
        torch.manual_seed(number)
        yield {}


def error(name, key, value):
    """Return a sentence about a value that is not the recorded one, or ''."""
    data = recorded(name)
    if key not in data or (
        name == "block_mask_adam" and "k.bias" in key
    ):  # 0 but for rounding, which the check of the run bounds
        return ""
    value = np.asarray(value, dtype=np.float64)
    rounding = np.asarray(data.get(f"f64/{key}", 0.0), dtype=np.float64)
    exact = np.asarray(data[key], dtype=np.float64) + rounding
    scale = np.abs(exact).max()
    difference = np.abs(value.reshape(exact.shape) - exact).max()
    own = np.abs(rounding).max()
    return "" if difference <= max(TOLERANCE * scale, ROUNDING_FACTOR * own) else f"{key}: {difference / scale:.2e}"


def check_case(name, cut):
    case = CASES[name]()
    model = case.model.train()
    if case.masks:
        rules = sp.SparsityBuilder()
        for weight in case.masks:
            rules.set_weight(weight, initial_sparsifier=sp.Threshold(1e-12), out_format=sp.CSR)
        model = rules.get_sparse_model(model)
    optimizer = case.optimizer([parameter for parameter in model.parameters() if parameter.requires_grad])
    step = ff.training_step(
        model, tuple(case.inputs.values()), case.target, loss=case.loss, optimizer=optimizer, gradients=True,
        formats=case.formats, schedule=ff.Schedule.fuse(cut),
    )  # fmt: skip
    run = step.run(steps=5, batches=seeds(), gradients=True)
    assert run.check.passed, run.check
    problems = [error(name, "loss", run.losses)]
    problems += [error(name, f"grad/{step.source.step.original(key)}", g.to_dense()) for key, g in run.gradients[0].items()]
    after = {1: step.run(steps=1, batches=seeds(), check=False).state, 5: run.state}
    for number, state in after.items():
        for key, tensor in state.items():
            owner, _, own = key.rpartition(".")
            problems.append(error(name, f"step{number}/model/{key}", tensor.to_dense()))
            problems.append(error(name, f"step{number}/state/{owner}/{own}", tensor.to_dense()))
    assert not [problem for problem in problems if problem]


@pytest.mark.parametrize(("name", "cut"), list(zip(CASES, itertools.cycle(CUTS), strict=False)))
def test_five_steps_are_as_recorded(name, cut):
    check_case(name, cut)


@pytest.mark.slow
@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("name", CASES)
def test_five_steps_are_as_recorded_at_every_cut(name, cut):
    check_case(name, cut)
