"""`fuseflow area`."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hardware_tools import require

from fuseflow.cli.main import main

PROGRAM = "tensor A[4] dense\ntensor B[4] dense\nY[i] = max(A[i], B[i])\noutput Y\n"


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setenv("FUSEFLOW_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "p.ein").write_text(PROGRAM)
    np.save(tmp_path / "a.npy", np.ones(4, np.float32))
    (tmp_path / "t.yaml").write_text("A: {path: a.npy}\nB: {path: a.npy}\n")
    return [str(tmp_path / "p.ein"), "--tensors", str(tmp_path / "t.yaml")]


def run(*words: str) -> int:
    try:
        main(["area", *words])
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def test_a_model_has_an_area(model: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    require("yosys", "pycde")
    assert run(*model, "--by", "part", "--by", "node", "--json", str(tmp_path / "area.json"), "--legend") == 0
    shown = capsys.readouterr().out
    assert "in gate equivalents of Nangate 45 nm" in shown and "f32_max" in shown and "write_Y_val" in shown
    assert "flip-flops of one instance" in shown
    (region,) = json.loads((tmp_path / "area.json").read_text())["regions"]
    assert region["total"] == pytest.approx(sum(part["total"] for part in region["parts"]), abs=1)
    assert run(*model, "--array", "onyx", "--by", "part", "--json", str(tmp_path / "placed.json")) == 0
    (placed,) = json.loads((tmp_path / "placed.json").read_text())["regions"]
    assert "hop x 34" in capsys.readouterr().out and placed["total"] > region["total"] and placed["nodes"] == region["nodes"]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--region", "nothing"], "there is no region `nothing`"),
        (["--machine", "rda"], "gates for those of 32 bits only"),
        (["--liberty", "nothing.lib"], "cannot read the liberty file `nothing.lib`"),
        (["--by", "gate"], "--by"),
    ],
)
def test_what_is_refused(words: list[str], why: str, model: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    require("yosys")
    assert run(*model, *words) == 2
    assert why in capsys.readouterr().err
