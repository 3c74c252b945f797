"""What commands say while they work: bars on a terminal, and nothing where nobody asked or looks."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from terminal import messages_here, plain, shown

from fuseflow.cli.main import main
from fuseflow.cli.progress import ExpectedFirings

EXAMPLE = Path(__file__).parents[2] / "docs" / "example"
SPMM = (str(EXAMPLE / "spmm.ein"), "--tensors", str(EXAMPLE / "tensors.yaml"))

MODEL = """\
import torch
def build(data):
    return torch.nn.Sequential(torch.nn.Linear(30, 20), torch.nn.ReLU(), torch.nn.Linear(20, 2)), (torch.ones(2, 30),)
"""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("compile", *SPMM, "-o", "out"), "lowering Einsums"),
        (("run", *SPMM), "lowering Einsums"),
        (("estimate", *SPMM), "estimating regions"),
        (("schedule", *SPMM, "--budget", "mul=4", "--no-store", "--top", "1", "--limit", "60"), "s left"),
        (("schedule", *SPMM, "--budget", "mul=4", "--no-store", "--top", "1"), " left"),
        (("sparsify", "m.py", "--sparsify", "*.weight=magnitude:0.5"), "pruning weights"),
        (("estimate", "m.py"), "simplifying operators"),
        (("cosimulate", *SPMM, "--fuse", "none"), "regions compared"),
        (("report", "out"), "laying out graphs"),
    ],
)
def test_a_terminal_is_told_what_a_command_does(
    words: tuple[str, ...], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.py").write_text(MODEL)
    if words[0] == "report":
        assert CliRunner().invoke(main, ["run", *SPMM, "-o", "out", "-q"]).exit_code == 0
    assert_told(messages_here(monkeypatch, *words), said)


def test_a_terminal_of_a_process_is_told_what_it_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    assert_told(shown(60, "compile", *SPMM, "-o", "out", messages=True), "lowering Einsums")


def assert_told(messages: str, said: str) -> None:
    text = plain(messages)
    assert said in text and ("0:00:0" in text or "-:--:--" in text)


@pytest.mark.parametrize("words", [("compile", *SPMM, "-o", "out", "--quiet"), ("run", *SPMM, "--quiet")], ids=["compile", "run"])
def test_who_wants_quiet_sees_nothing(words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    assert messages_here(monkeypatch, *words) == CliRunner().invoke(main, words).output == ""


def test_a_pipe_gets_neither_bars_nor_colours():
    run = subprocess.run([sys.executable, "-m", "fuseflow", "run", *SPMM], capture_output=True, check=True)
    assert run.stderr == b"" and b"\x1b" not in run.stdout and run.stdout


def test_a_pipe_is_told_of_a_search_in_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fuseflow.cli.progress.LOG_SECONDS", 0.0)
    words = ("schedule", *SPMM, "--budget", "mul=4", "--no-store", "--top", "0")
    lines = CliRunner().invoke(main, list(words)).stderr.splitlines()
    searching = [line for line in lines if line.startswith("searching: ")]
    assert len(searching) > 3
    line_of_a_search = r"searching: [\d,]+ tried, [\d.,]+/s, at most [\d,]+ left(, [\d,]+ s at the latest rate)?: \S"
    assert all(re.match(line_of_a_search, line) for line in searching)
    assert not CliRunner().invoke(main, [*words, "--quiet"]).stderr
    monkeypatch.setattr("fuseflow.cli.progress.LOG_SECONDS", 3600.0)
    assert "searching" not in CliRunner().invoke(main, list(words)).stderr


def test_the_expected_firings_are_corrected_by_regions_that_have_run() -> None:
    """Four layers that are expected to take a hundred firings each: the first takes fifty, and the third runs like the second."""
    expected = ExpectedFirings(dict.fromkeys("abcd", 100.0))
    assert expected.note("a", 10) == (10, 400)
    assert expected.note("a", 50) == (50, 400)
    assert expected.note("b", 20) == (70, 50 + 50 + 100)
    assert expected.note("d", 10) == (80, 50 + 20 + max(10, 70 / 3))
    assert expected.note("x (critical path)", 5)[0] == 80
