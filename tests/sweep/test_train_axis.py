"""The key `train` of sweep files: points that are training steps."""

from __future__ import annotations

from pathlib import Path

import pytest
from sweeps import InProcessRunner, opened, write_program

from fuseflow.errors import FuseFlowError

MODEL = """\
import torch
from torch import nn

loss = "mse"

def build():
    return nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 4)), (torch.rand(3, 6),), torch.zeros(3, 4)
"""
HEAD = "model: m.py\nmode: simulate\nschedules: [{fuse: none}]\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_program(tmp_path)
    (tmp_path / "m.py").write_text(MODEL)
    return tmp_path


def test_steps_beside_the_forward(folder: Path) -> None:
    sweep = opened(folder, HEAD + "train: [false, true, {optimizer: adamw, gradients: true}]\n")
    assert sweep.space.axes == ("train",)
    labels = [place.labels["train"] for place in sweep.space.points]
    assert labels == ["false", "true", "optimizer=adamw,gradients=true"]
    sweep.run(InProcessRunner())
    rows = [row.outcome for row in sweep.store.rows().values()]
    assert [row.error for row in rows] == ["", "", ""]
    forward, sgd, adamw = sorted(row.values["cycles"] for row in rows)
    assert forward < sgd < adamw
    sweep.store.close()


def test_points_without_training_have_the_keys_that_they_had(folder: Path) -> None:
    forward, step = opened(folder, HEAD + "train: [false, true]\n").space.points
    (plain,) = opened(folder, HEAD).space.points
    assert forward.point == plain.point and forward.point.key("estimate") == plain.point.key("estimate")
    assert step.point.key("estimate") != plain.point.key("estimate") and "train" not in plain.labels


def test_what_is_no_training_step(folder: Path) -> None:
    with pytest.raises(FuseFlowError, match="takes no `train`"):
        opened(folder, "model: p.ein\nmode: estimate\ntrain: true\n")
    with pytest.raises(FuseFlowError, match="optimiser"):
        opened(folder, HEAD + "train: {optimiser: sgd}\n")
