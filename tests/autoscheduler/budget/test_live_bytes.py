"""A search within a budget of live bytes: what is stored too long is computed again."""

from __future__ import annotations

import numpy as np
import pytest

import fuseflow as ff
from fuseflow.einsum.parse import parse
from fuseflow.errors import ScheduleError, UsageError

TRAINING = """
tensor X[16, 2] dense
tensor W[2, 8] dense
tensor V[8, 4] dense
H[i, j] = relu(sum(k) X[i, k] * W[k, j])
G[i, m] = sum(j) H[i, j] * V[j, m]
dV[j, m] = sum(i) H[i, j] * G[i, m]
output dV
"""
STORED = 4 * (16 * 8 + 16 * 4)
PROGRAM = parse(TRAINING)
TENSORS = {t.name: np.random.default_rng(0).random(t.shape).astype(np.float32) for t in PROGRAM.inputs}


@pytest.mark.parametrize("top", [0, 1])
def test_what_is_stored_too_long_is_computed_again(top: int) -> None:
    budget = {"mul": 4, "live": STORED - 1}
    choice = ff.autoschedule(PROGRAM, tensors=TENSORS, budget=budget, top=top)
    assert choice.chosen.live_bytes < STORED and not choice.chosen.refused
    assert choice.chosen.resources.mul <= 4
    result = choice.run()
    assert result.check is not None and result.check.passed
    assert result.live_bytes == choice.chosen.live_bytes
    assert all(trial.live_bytes < STORED or trial.refused for trial in choice.trials)


def test_a_limit_that_is_kept_changes_nothing() -> None:
    free = ff.autoschedule(PROGRAM, tensors=TENSORS, budget="mul=4", top=0)
    kept = ff.autoschedule(PROGRAM, tensors=TENSORS, budget="mul=4,live=1MB", top=0)
    assert kept.schedule == free.schedule
    assert kept.budget.to_json() == {"mul": 4, "live": 1 << 20}


def test_what_is_to_be_chosen_is_not_stated() -> None:
    with pytest.raises(ScheduleError, match="`recompute` names `H`, but that is to be chosen under the budget"):
        ff.autoschedule(PROGRAM, tensors=TENSORS, schedule=ff.Schedule().recompute("H"), budget="live=1KB")


def test_no_program_keeps_nothing_in_no_memory() -> None:
    text = "tensor X[6, 8]\nT[i, j] = keep(3 over i, j) X[i, j]\nY[i] = sum(j) T[i, j]\noutput Y"
    program = parse(text)
    with pytest.raises(UsageError, match=r"bytes of intermediates alive, of 1"):
        ff.autoschedule(program, tensors={"X": np.ones((6, 8), np.float32)}, budget="live=1", top=0)
