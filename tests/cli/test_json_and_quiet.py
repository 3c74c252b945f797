"""`--json` and `--quiet` mean the same in every command."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from command_line import fuseflow

from fuseflow.cli.main import main

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "docs" / "example"
SPMM = ["spmm.ein", "--tensors", "tensors.yaml"]
MODEL = """\
import torch
def build(data):
    return torch.nn.Linear(6, 2), (torch.ones(2, 6),)
"""
SWEEP = "model: spmm.ein\ntensors: tensors.yaml\nmode: estimate\nvary: {fuse: [none, full]}\n"
PRUNED = ["m.py", "--sparsify", "weight=magnitude:0.5"]
WORDS: dict[str, list[str]] = {
    "area": ["area", *SPMM],
    "check": ["check", *SPMM],
    "compile": ["compile", *SPMM, "-o", "compiled"],
    "cosimulate": ["cosimulate", *SPMM],
    "data": ["data"],
    "doctor": ["doctor"],
    "estimate": ["estimate", *SPMM],
    "explain cycles": ["explain", "cycles", *SPMM],
    "explain fusion": ["explain", "fusion", *SPMM],
    "explain order": ["explain", "order", *SPMM],
    "explain plan": ["explain", "plan", *SPMM, "--plan", "plan.yaml"],
    "explain summary": ["explain", *SPMM],
    "machines": ["machines"],
    "ops": ["ops"],
    "place": ["place", *SPMM, "--array", "onyx", "--effort", "1", "--seeds", "1"],
    "propagate": ["propagate", *PRUNED],
    "report": ["report", "ran"],
    "run": ["run", *SPMM],
    "schedule": ["schedule", *SPMM, "--budget", "mul=4", "--no-store", "--top", "0"],
    "simulate": ["simulate", "graph.bin", "--tensors", "tensors.yaml"],
    "sparsify": ["sparsify", *PRUNED],
    "sweep plot": ["sweep", "plot", "s.yaml", "-o", "figures"],
    "sweep run": ["sweep", "run", "s.yaml", "--jobs", "1"],
    "sweep show": ["sweep", "show", "s.yaml"],
    "sweep status": ["sweep", "status", "s.yaml"],
}
"""A call of each command; "s.yaml" is swept, and "ran" is a run."""
LISTS = ("data", "machines", "ops")
"""Commands that print names alone with `--quiet`."""
NEEDS = {"area": "yosys"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("everywhere")
    shutil.copytree(EXAMPLE, made, dirs_exist_ok=True)
    (made / "m.py").write_text(MODEL)
    (made / "s.yaml").write_text(SWEEP)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(made)
        for words in (WORDS["sweep run"], ["run", *SPMM, "-o", "ran"]):
            assert fuseflow(*words, "-q").exit_code == 0
    (made / "graph.bin").write_bytes(next((made / "ran").glob("*/graph.bin")).read_bytes())
    return made


@pytest.fixture
def here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)


def commands(group: click.Group, prefix: str = "") -> Iterator[str]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        yield from commands(command, f"{prefix}{name} ") if isinstance(command, click.Group) else [f"{prefix}{name}"]


def test_every_command_is_here() -> None:
    assert sorted([*WORDS, "schema"]) == sorted(commands(main))  # `schema` prints JSON, and nothing else


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("name", WORDS)
def test_json_and_quiet(name: str) -> None:
    if name in NEEDS and shutil.which(NEEDS[name]) is None:
        pytest.skip(f"needs {NEEDS[name]}")
    if name == "sweep plot":
        pytest.importorskip("matplotlib")
    words = WORDS[name]
    told = fuseflow(*words, "--json", "told.json")
    assert told.exit_code == 0, told.output
    written = json.loads(Path("told.json").read_text())
    assert isinstance(written["schema"], int) and len(written) > 1
    streamed = fuseflow(*words, "--json", "-")
    assert json.loads(streamed.stdout).keys() == written.keys() and streamed.exit_code == 0
    assert told.stdout.strip() or name == "report", "what a person reads is printed beside the JSON in a file"
    quiet = fuseflow(*words, "--quiet")
    assert quiet.exit_code == 0 and quiet.stderr == ""
    assert (quiet.stdout == "") == (name not in LISTS)
    both = fuseflow(*words, "--quiet", "--json", "-")
    assert both.stderr == "" and json.loads(both.stdout).keys() == written.keys()


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    "words",
    [
        ["compile", *SPMM, "--emit", "einsum", "--json", "-"],
        ["report", "ran", "-o", "-", "--json", "-"],
        ["sweep", "show", "s.yaml", "--format", "csv", "--json", "-"],
    ],
    ids=lambda words: words[0],
)
def test_two_outputs_of_one_stream_are_refused(words: list[str]) -> None:
    result = fuseflow(*words)
    assert result.exit_code == 2 and "both write standard output" in result.stderr and result.stdout == ""


@pytest.mark.usefixtures("here")
def test_a_difference_of_a_circuit_is_in_the_json(monkeypatch: pytest.MonkeyPatch) -> None:
    assert fuseflow(*WORDS["cosimulate"], "--json", "c.json").exit_code == 0
    (region,) = json.loads(Path("c.json").read_text())["regions"]
    assert region["difference"] is None and region["cycles"] == region["simulator_cycles"]


@pytest.mark.usefixtures("here")
def test_verbose_says_what_was_reused_and_why_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FUSEFLOW_MODEL_CACHE_MB")
    monkeypatch.setenv("FUSEFLOW_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv(
        "TORCHINDUCTOR_CACHE_DIR", str(tmp_path)
    )  # which PyTorch sets in its process, and the next import would differ
    Path("two.py").write_text(
        MODEL.replace("torch.nn.Linear(6, 2)", "torch.nn.Sequential(torch.nn.Linear(6, 2), torch.nn.ReLU())")
    )
    run = ("run", "two.py", "-v")
    first, second, third = fuseflow(*run), fuseflow(*run), fuseflow(*run, "--seed", "3", "--json", "-")
    assert "two.py is imported anew: no import of it is kept\n" in first.stderr
    assert "the cut of the program is chosen anew: " in first.stderr
    assert second.stderr.splitlines()[0] == "two.py is read from the cache of imported models: nothing that it depends on changed"
    assert "the cut of the program is read from the cache" in second.stderr and second.stdout == first.stdout
    assert "two.py is imported anew: `seed` is 3, and was 0\n" in third.stderr and json.loads(third.stdout)["seed"] == 3
    assert fuseflow("run", "two.py").stderr == ""


@pytest.mark.usefixtures("here")
def test_a_notice_is_said_once_to_who_wants_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FUSEFLOW_MODEL_CACHE_MB")
    monkeypatch.setenv("FUSEFLOW_CACHE_DIR", str(tmp_path / "cache"))
    Path("clock.py").write_text("import time\n" + MODEL)
    for words in ((), ("-v",)):
        assert (
            fuseflow("check", "clock.py", *words).stderr.count("is imported anew in every run, because it depends on the clock")
            == 1
        )
