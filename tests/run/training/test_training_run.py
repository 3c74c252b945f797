"""The result of several steps, in words and as plain values."""

from __future__ import annotations

import json

import numpy as np

import fuseflow as ff
from fuseflow.einsum.parse import parse

TEXT = """
program halving
tensor a[4] {0}
loss = sum(i) a[i] * a[i]
next.a[i] = a[i] * 0.5
output loss, next.a
"""


def run(format: str = "", **arguments):
    program = ff.compile(parse(TEXT.format(format)), tensors={"a": np.array([0.0, 2.0, 0.0, 4.0])})
    return program.run(**arguments)


def test_plain_values() -> None:
    result = run(steps=3)
    values = json.loads(json.dumps(result.to_json()))
    assert [row["loss"] for row in values["training"]["steps"]] == [20, 5, 1.25]
    assert [row["simulated"] for row in values["training"]["steps"]] == [1, 1, 1]
    assert values["training"]["check"]["passed"] and values["training"]["notes"] == ["cycles of step 1 hold for steps 1-3"]
    assert values["cycles"] == result.first.cycles == result.cycles[0] and values["model"] == "halving"


def test_the_state_is_packed() -> None:
    state = run("(compressed)", steps=2).state["a"]
    assert state.stored == 2 and state.to_dense().tolist() == [0, 0.5, 0, 1]


def test_words() -> None:
    assert repr(run(steps=2)).startswith("<TrainingRun halving: 2 steps, loss 20 to 5, ")
    assert "check passed" in repr(run(steps=2)) and "not checked" in repr(run(steps=2, check=False))
    assert run(steps=1).notes == ()
