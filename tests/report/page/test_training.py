"""The chapter *Training* of the page of a run: its tables and its curve, from the values that a run keeps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from torch import nn

import fuseflow as ff
from fuseflow.report.page.charts import loss_chart
from fuseflow.report.page.page import page
from fuseflow.report.page.run_directory import read_run
from fuseflow.run.directory_names import TRAINING_FILE


def test_the_chapter_of_a_run(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))
    step = ff.training_step(
        model, (torch.rand(5, 4),), torch.rand(5, 2), loss="mse", optimizer="sgd:lr=0.1", schedule=ff.Schedule.fuse("none")
    )
    run = step.run(steps=3)
    step.save(tmp_path / "run", run)
    text = page(read_run(tmp_path / "run"))
    assert "3 steps of forward, loss, backward and update" in text
    for head in ("<h3>Losses</h3>", "<h3>Phases</h3>", "<h3>Live bytes</h3>", "<h3>Stored for the backward</h3>"):
        assert head in text
    assert "cycles of step 1 hold for steps 1-3" in text
    stored: dict[str, Any] = json.loads((tmp_path / "run" / TRAINING_FILE).read_text())
    assert [row["phases"] for row in stored["phases"]] == [["forward"], ["loss"], ["backward"], ["update"]]
    assert stored["stored"] and all(row["name"] in text for row in stored["stored"])


def test_a_page_of_a_forward_has_no_such_chapter(tmp_path: Path) -> None:
    program = ff.compile(nn.Linear(4, 3), (torch.rand(5, 4),))
    program.save(tmp_path / "run", program.run())
    assert "<h3>Losses</h3>" not in page(read_run(tmp_path / "run"))


def test_curves_of_one_step_and_of_equal_losses() -> None:
    for losses in ([1.0], [2.0, 2.0], [0.0, 0.0], [float(k) for k in range(100)]):
        drawn = json.loads(loss_chart(losses, losses).partition('json">')[2].partition("</script>")[0])
        assert [(row["step"], row["loss"]) for row in drawn["points"]] == 2 * [*enumerate(losses, 1)]
