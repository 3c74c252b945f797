"""The result of several steps, in words and as plain values."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

import fuseflow as ff
from fuseflow.einsum.parse import parse
from fuseflow.training.reference import Reference

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
    values = json.loads(json.dumps(result.to_dict()))
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


def test_pytorch_takes_a_step_once_in_each_type(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = []
    step = Reference.step

    def counted(self: Reference, *arguments, **others):
        taken.append(self)
        return step(self, *arguments, **others)

    monkeypatch.setattr(Reference, "step", counted)
    compiled = ff.training_step(torch.nn.Linear(3, 2), (torch.rand(4, 3),), torch.rand(4, 2), loss="mse", optimizer="sgd:lr=0.1")
    result = compiled.run()
    assert result.check is not None and result.check.passed
    assert len(taken) == len(set(map(id, taken))) == 2
    assert compiled.run(steps=1).check is not None and len(taken) == 4
    assert compiled.compare(result.tensors).passed and len(taken) == 6
