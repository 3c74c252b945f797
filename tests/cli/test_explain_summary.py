"""`fuseflow explain MODEL` says all of it, short, and the commands for more are right."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from command_line import fuseflow

ROOT = Path(__file__).parents[2]
GCN = str(ROOT / "models" / "gcn.py")
EXAMPLE = ROOT / "docs" / "example"
SPMM = [str(EXAMPLE / "spmm.ein"), "--tensors", str(EXAMPLE / "tensors.yaml")]


def test_the_summary_says_what_the_long_explanations_say() -> None:
    asked = [GCN, "--fuse", "layer1"]
    told = json.loads(fuseflow("explain", *asked, "--json", "-", "-q").stdout)
    cycles = json.loads(fuseflow("explain", "cycles", *asked, "--json", "-", "-q").stdout)
    slowest = max(cycles["regions"], key=lambda region: region["times"] * region["cycles"])
    assert told["schema"] == 1 and told["cycles"] == cycles["cycles"]
    assert told["slowest"]["region"] == slowest["name"] and told["slowest"]["node"] == slowest["limits"]
    assert told["slowest"]["bottleneck"] == slowest["bottleneck"]
    assert sum(told["limits"].values()) == pytest.approx(1)
    faster = [change for change in cycles["changes"] if change["cycles"] < cycles["cycles"]]
    assert [change["change"] for change in told["changes"]] == [change["change"] for change in faster[:3]]
    assert all(change["speedup"] == told["cycles"] / change["cycles"] for change in told["changes"])


def test_the_summary_is_short_and_its_commands_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = fuseflow("explain", *SPMM, "--fuse", "none", "--par", "i=2", "--machine", "ideal", "--no-copies")
    assert result.exit_code == 0, result.output
    text, _, more = result.stdout.partition("\nmore:\n")
    starts = ["spmm, machine ideal: ", "critical path: ", "slowest region: ", "it is limited by ", "fused: "]
    assert [line.startswith(start) for line, start in zip(text.splitlines(), starts, strict=False)] == [True] * 5
    assert len(result.stdout.splitlines()) <= 20
    commands = [shlex.split(line) for line in more.splitlines() if line.startswith("  fuseflow ")]
    assert [words[1] for words in commands] == ["explain", "explain", "explain", "run", "report", "schedule"]
    assert "--machine" in commands[0] and "--machine" in commands[1] and "--no-copies" in commands[1]
    for words in commands:
        ran = fuseflow(*words[1:], *(["--no-store"] if words[1] == "schedule" else []))
        assert ran.exit_code == 0, (words, ran.output)


def test_short_and_long_names_are_one_command() -> None:
    assert fuseflow("explain", *SPMM).stdout == fuseflow("explain", "summary", *SPMM).stdout
    assert "helps" not in fuseflow("explain", *SPMM, "--no-changes").stdout
