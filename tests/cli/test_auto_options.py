"""`--fuse auto` and `--order auto` on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from fuseflow.cli.main import main
from fuseflow.filesystem.schemas import with_schema
from fuseflow.schedule import Schedule

ROOT = Path(__file__).parents[2]
SPMM = [str(ROOT / "docs/example/spmm.ein"), "--tensors", str(ROOT / "docs/example/tensors.yaml")]


def invoke(*words: str, status: int = 0) -> tuple[str, str]:
    result = CliRunner().invoke(main, words)
    assert result.exit_code == status, result.output
    return result.stdout, result.stderr


def test_run_says_what_was_tried_and_keeps_the_schedule(tmp_path: Path) -> None:
    kept, saved, out = tmp_path / "kept.yaml", tmp_path / "run.json", tmp_path / "out"
    auto = ("--fuse", "auto", "--order", "auto", "--auto-schedule", str(kept), "--json", str(saved), "-o", str(out))
    stdout, stderr = invoke("run", *SPMM, "--machine", "ideal", *auto)
    assert "chosen" in stderr and "chosen" not in stdout
    found = json.loads(saved.read_text())
    assert found["auto"]["schedule"] == found["schedule"] == (out / "schedule.yaml").read_text()
    assert kept.read_text() == with_schema("schedule", found["schedule"])
    assert [t["chosen"] for t in found["auto"]["partitions"]].count(True) == 1
    again, _ = invoke("run", *SPMM, "--machine", "ideal", "--schedule", str(kept))
    assert again == stdout
    assert not Schedule.load(kept).open


def test_quiet_says_nothing() -> None:
    assert invoke("run", *SPMM, "--fuse", "auto", "-q") == ("", "")


@pytest.mark.parametrize("command", [("compile", "--emit", "order"), ("estimate",), ("explain", "order"), ("explain", "fusion")])
def test_commands_that_run_nothing_choose_by_estimate(command: tuple[str, ...]) -> None:
    _, stderr = invoke(*command, *SPMM, "--fuse", "auto")
    assert "nothing was simulated" in stderr
    invoke(*command, *SPMM, "--fuse", "auto", "--auto-top", "2", status=2)


def test_explain_cycles_confirms() -> None:
    _, stderr = invoke("explain", "cycles", *SPMM, "--fuse", "auto", "--auto-top", "1", "--no-changes")
    assert "chosen" in stderr and "nothing was simulated" not in stderr


def test_a_file_may_say_it(tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    file.write_text("fuse: auto\norder: auto\n")
    assert Schedule.load(file) == Schedule.fuse("auto").lower(order_policy="auto")
    assert "chosen" in invoke("run", *SPMM, "--schedule", str(file))[1]
    file.write_text("fuse: auto\norder: {nothing: [i]}\n")
    assert f"{file}:2:" in invoke("run", *SPMM, "--schedule", str(file), status=2)[1]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--auto-top", "2"), "`--auto-top` without `auto`"),
        (("--auto-schedule", "-"), "`--auto-schedule` without `auto`"),
        (("--fuse", "auto", "--fuse", "T"), "cannot stand beside `T`"),
        (("--order", "auto", "--order", "first"), "asks for `auto` and `first`"),
        (("--fuse", "auto", "--auto-top", "-1"), "not in the range"),
        (("--fuse", "atuo"), "did you mean `auto`"),
    ],
)
def test_misuse(words: tuple[str, ...], message: str) -> None:
    assert message in invoke("run", *SPMM, *words, status=2)[1]


def test_a_sweep_has_points_that_choose(tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    example = ROOT / "docs" / "example"
    file.write_text(f"model: {example}/spmm.ein\ntensors: {example}/tensors.yaml\nmode: simulate\nvary: {{fuse: [none, auto]}}\n")
    invoke("sweep", "run", str(file), "--store", str(tmp_path / "s.sqlite"), "-q")
    table, _ = invoke("sweep", "show", str(file), "--store", str(tmp_path / "s.sqlite"))
    assert [line.split()[:3] for line in table.splitlines() if line.startswith(("auto", "none"))] == [
        ["auto", "simulated", "203"],
        ["none", "simulated", "291"],
    ]


@pytest.mark.parametrize(
    ("command", "option"),
    [(("run", "--json", "-"), "--json"), (("compile", "--emit", "table"), "--emit"), (("estimate", "--json", "-"), "--json")],
    ids=lambda given: given[0] if isinstance(given, tuple) else given,
)
def test_the_schedule_and_another_output_do_not_share_a_stream(command: tuple[str, ...], option: str) -> None:
    stdout, stderr = invoke(*command, *SPMM, "--fuse", "auto", "--auto-schedule", "-", status=2)
    assert stdout == "" and f"`--auto-schedule` and `{option}` both write `-`" in stderr
