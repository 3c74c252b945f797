"""Random training steps are right or refused, and a wrong gradient is noticed."""

from __future__ import annotations

import pytest
import torch
import training_fuzz
from torch import nn
from training_fuzz import draw_step, outcome

import fuseflow as ff


@pytest.mark.parametrize("seed", [3, 7, 10, 16])
def test_a_training_step_is_right(seed: int) -> None:
    assert outcome(draw_step(seed))[0] == "right"


@pytest.mark.parametrize("seed", [1, 3])
def test_a_training_step_in_tiles_is_the_same_to_the_last_bit(seed: int) -> None:
    assert outcome(draw_step(seed), tile=True) == ("right", "tiles")


@pytest.mark.slow
def test_training_steps_are_right() -> None:
    total = training_fuzz.Tally()
    for drawn in training_fuzz.outcomes(range(21, 121)):
        total.add(*drawn)
    assert not total.faults, total.faults[0]
    assert total.outcomes["right"] > 0.9 * total.outcomes.total()


@pytest.mark.parametrize("seed", [19, 24])
def test_rounding_of_a_gradient_that_is_0_is_no_error(seed: int) -> None:
    """The gradient of the first bias is 0 but for rounding. PyTorch's norm computes in f64 inside, and rounds less than ours."""
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.Linear(3, 3))
    x, classes = torch.randn(2 + seed % 3, 4), torch.randint(0, 3, (2 + seed % 3,))
    schedule = ff.Schedule.fuse("none").lower(order_policy="first")
    step = ff.training_step(
        model, (x,), classes, loss="cross_entropy", optimizer="adam:lr=0.01", gradients=True, schedule=schedule
    )
    run = step.run(steps=1)
    assert run.check is not None and run.check.passed and "grad.0.bias" in run.rounding


def test_a_wrong_slope_is_noticed() -> None:
    draw = draw_step(10)
    moved = {name: parameter.detach() for name, parameter in draw.model.named_parameters()}
    assert training_fuzz._slope_error(draw, moved) > training_fuzz.LARGEST_SLOPE_ERROR
