"""Random training steps are right or refused, and a wrong gradient is found."""

from __future__ import annotations

import pytest
import training_fuzz
from training_fuzz import draw_step, outcome


@pytest.mark.parametrize("seed", [2, 7, 10])
def test_a_training_step_is_right(seed: int) -> None:
    assert outcome(draw_step(seed))[0] in ("right", "refused")


@pytest.mark.slow
def test_training_steps_are_right() -> None:
    total = training_fuzz.Tally()
    for found in training_fuzz.outcomes(range(11, 111)):
        total.add(*found)
    assert not total.faults, total.faults[0]
    assert total.outcomes["right"] > 0.9 * total.outcomes.total()


def test_a_wrong_slope_is_found() -> None:
    draw = draw_step(10)
    moved = {name: parameter.detach() for name, parameter in draw.model.named_parameters()}
    assert training_fuzz._slope_error(draw, moved) > training_fuzz.LARGEST_SLOPE_ERROR
