"""What the benchmark of the front end measures: importing copies no weights, and a large graph stays sparse."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "bench" / "frontend.py"


def measured(case: str) -> dict[str, Any]:
    command = [sys.executable, str(TOOL), "--here", "--case", case, "--repeats", "1", "--json", "-"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    (found,) = json.loads(done.stdout)["cases"]
    return dict(found)


def test_a_small_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(TOOL.parent)
    tool = importlib.import_module("frontend")
    (case,) = (case for case in tool.CASES if case.name == "gpt, small")
    found = tool.measure(case, repeats=1)
    assert found["shared"] == 1.0 and found["einsums"] > 100
    assert found["warm"] > 0 and found["before"] <= found["peak"]
    assert "100 % shared" in tool.line(found)
    assert "skipped: no such layer" in tool.line({"name": "x", "skipped": "no such layer"})


@pytest.mark.slow
def test_the_weights_of_twelve_decoders_are_in_memory_once() -> None:
    found = measured("gpt, 12 decoders")
    assert found["shared"] == 1.0 and found["parameters"] > 320
    assert found["peak"] - found["before"] < found["parameters"] + 100  # what a small model takes is about 180


@pytest.mark.slow
def test_a_large_graph_is_never_dense() -> None:
    assert measured("gcn, 235,868 nodes")["peak"] < 1500
