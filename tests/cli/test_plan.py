"""`--plan` of commands, and `plan:` in schedule files: what is divided, and what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import fuseflow
from scipy import sparse

import fuseflow as ff
from fuseflow.errors import PlanError
from fuseflow.plan.plan import Plan, read_plan

PROGRAM = """
tensor A[{i}, {k}] dense
tensor W[{k}, {j}] csr
tensor V[{j}, {l}] csr
H[i, j] = sum(k) A[i, k] * W[k, j]
Y[i, l] = sum(j) relu(H[i, j]) * V[j, l]
output Y
"""
PARTS = "[{form: 4x4, weight: 16.1}, {form: elements, weight: 8}]"


def document(*words: str | Path) -> dict[str, Any]:
    result = fuseflow(*words, "--json", "-", "-q")
    assert result.exit_code == 0, result.output
    values: dict[str, Any] = json.loads(result.stdout)
    return values


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    """The words of a run of a program with two weights, of which the first has whole blocks."""
    monkeypatch.chdir(tmp_path)
    return write_run(64, 16, 24, 8)


@pytest.fixture
def short_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    """A smaller one, whose weights have fewer plans to compare."""
    monkeypatch.chdir(tmp_path)
    return write_run(16, 8, 8, 3)


def write_run(i: int, k: int, j: int, l: int) -> tuple[str, ...]:
    """Write the program with indices of these sizes, and its tensors."""
    rng = np.random.default_rng(0)
    blocks = np.kron(rng.random((k // 4, j // 4)) < 0.4, np.ones((4, 4))) * rng.normal(size=(k, j))
    scattered = np.where(rng.random((k, j)) < 0.03, 1.0, 0.0)
    arrays = {
        "A": rng.normal(size=(i, k)),
        "W": blocks + scattered,
        "V": rng.normal(size=(j, l)) * (rng.random((j, l)) < 0.3),
    }
    for name, array in arrays.items():
        np.save(f"{name}.npy", array.astype(np.float32))
    Path("p.ein").write_text(PROGRAM.format(i=i, k=k, j=j, l=l))
    Path("t.yaml").write_text("".join(f"{name}: {{path: {name}.npy}}\n" for name in arrays))
    Path("plan.yaml").write_text(f"operands:\n  W: {PARTS}\n")
    return ("run", "p.ein", "--tensors", "t.yaml")


def test_a_plan_changes_no_output(run: tuple[str, ...]) -> None:
    whole, divided = document(*run, "-o", "whole"), document(*run, "--plan", "plan.yaml", "-o", "divided")
    assert divided["check"]["passed"] and divided["check"]["reference"] == "dense interpreter"
    assert divided["cycles"] != whole["cycles"]
    first, second = (sparse.load_npz(Path(folder) / "outputs" / "Y.npz").toarray() for folder in ("whole", "divided"))
    np.testing.assert_allclose(first, second, rtol=1e-5, atol=1e-5)
    assert "tensor W2[16, 24]" in Path("divided/program.ein").read_text()


def test_a_plan_is_a_part_of_the_schedule(run: tuple[str, ...]) -> None:
    first = document(*run, "--plan", "plan.yaml")
    Path("s.yaml").write_text(first["schedule"])
    assert document(*run, "--schedule", "s.yaml")["cycles"] == first["cycles"]
    schedule = ff.Schedule.load("s.yaml")
    assert schedule.plan == read_plan(Path("plan.yaml")) and ff.Schedule.from_yaml(schedule.to_yaml()) == schedule
    printed = fuseflow(*run, "--plan", "plan.yaml", "--print-schedule")
    assert ff.Schedule.from_yaml(printed.output) == replace(schedule, fuse_regions=("best",))


def test_weights_that_a_plan_lacks_are_measured_on_the_machine(run: tuple[str, ...]) -> None:
    """Recorded on `rda` (design of plans): a block of 4 x 4 takes 17.8 cycles, a single element 8.84."""
    Path("plan.yaml").write_text("operands:\n  W: [{form: 4x4}, {form: elements}]\n")
    plan = ff.Schedule.from_yaml(document(*run, "--plan", "plan.yaml")["schedule"]).plan
    ((name, parts),) = plan.operands
    assert name == "W" and [part.weight for part in parts] == pytest.approx([17.8, 8.84], rel=0.01)
    on_ideal = ff.Schedule.from_yaml(document(*run, "--plan", "plan.yaml", "--machine", "ideal")["schedule"]).plan
    assert [part.weight for part in on_ideal.operands[0][1]] == pytest.approx([16.1, 8.04], rel=0.01)


def test_other_commands_take_a_plan(run: tuple[str, ...]) -> None:
    words = (*run[1:], "--plan", "plan.yaml")
    estimate = document("estimate", *words)
    assert estimate["flops"] == document("run", *words)["flops"]
    assert fuseflow("compile", *words, "-o", "out").exit_code == 0 and "tensor W2[16, 24]" in Path("out/program.ein").read_text()
    assert fuseflow("explain", "fusion", *words, "--fuse", "full").exit_code == 0
    assert document("run", *words, "--fuse", "auto")["check"]["passed"]


def test_a_plan_of_what_propagation_left(run: tuple[str, ...]) -> None:
    result = document(*run, "--plan", "plan.yaml", "--propagate", "--fixed", "W", "--fixed", "V")
    assert result["check"]["passed"] and result["left_out"]


@pytest.mark.parametrize(
    ("plan", "more", "message"),
    [
        (f"operands:\n  H: {PARTS}\n", (), "`H` is computed"),
        (f"operands:\n  X: {PARTS}\n", (), "the program has no tensor `X`"),
        ("operands:\n  W: [{form: 4x4, weight: 0}]\n", (), "plan.yaml:2:"),
        ("operands:\n  W: [{dtype: i8}]\n", (), "a part needs the key `form`"),
        ("operands:\n  W: [{form: 4x4, weight: 1}, {form: 4x4, weight: 2}]\n", (), "`W` has two parts `4x4`"),
        ("operands:\n  W: [{form: 'nm(1:4)'}]\n", (), "no part of `W` holds the entry"),
        ("operands:\n  W: [{form: elements, dtype: i8}]\n", (), "no part of `W` holds the entry"),
        (f"operands:\n  W: {PARTS}\n", ("--intermediates", "dense"), "a plan needs the real intermediates"),
        ("operand:\n", (), "did you mean `operands`?"),
    ],
)
def test_what_is_wrong_is_said(run: tuple[str, ...], plan: str, more: tuple[str, ...], message: str) -> None:
    Path("plan.yaml").write_text(plan)
    before = sorted(Path.cwd().rglob("*"))
    result = fuseflow(*run, "--plan", "plan.yaml", *more, "-o", "out")
    assert result.exit_code == 2 and message in result.output and "Traceback" not in result.output
    assert sorted(Path.cwd().rglob("*")) == before


def test_errors_in_a_schedule_have_their_place(run: tuple[str, ...]) -> None:
    Path("s.yaml").write_text("fuse: [none]\nplan:\n  W:\n  - {form: 4by4}\n")
    result = fuseflow(*run, "--schedule", "s.yaml")
    assert result.exit_code == 2 and "s.yaml:4:" in result.output
    with pytest.raises(PlanError, match="mapping from names of tensors"):
        ff.Schedule.from_yaml("plan: [W]\n")


def test_a_schedule_without_a_plan_prints_none() -> None:
    assert ff.Schedule().plan == Plan() and "plan" not in ff.Schedule().to_yaml()


def test_auto_chooses_a_plan_that_the_schedule_says_in_full(short_run: tuple[str, ...]) -> None:
    run = short_run
    chosen = document(*run, "--plan", "auto", "--machine", "ideal", "--auto-schedule", "s.yaml")
    again = document(*run, "--schedule", "s.yaml", "--machine", "ideal")
    whole = document(*run, "--machine", "ideal")
    assert chosen["check"]["passed"] and chosen["cycles"] == again["cycles"] <= whole["cycles"]
    assert {trial["operand"] for trial in chosen["auto"]["plans"]} == {"", "W", "V"}
    Path("open.yaml").write_text("plan: auto\n")
    assert document(*run, "--schedule", "open.yaml", "--machine", "ideal")["cycles"] == chosen["cycles"]


def test_explain_plan_says_why_a_plan_was_chosen(short_run: tuple[str, ...]) -> None:
    words = ("explain", "plan", *short_run[1:], "--plan", "auto", "--machine", "ideal", "--auto-top", "1")
    result = fuseflow(*words, "--json", "plan.json")
    assert result.exit_code == 0 and "no change" in result.stderr and "chosen" in result.stderr
    assert "cycles" in result.stdout
    values = json.loads(Path("plan.json").read_text())
    assert sum(trial["chosen"] for trial in values["auto"]["plans"]) == 1


def test_explain_plan_says_that_none_is_faster(run: tuple[str, ...]) -> None:
    Path("small.ein").write_text("tensor A[4, 4] dense\ntensor B[4, 4] csr\nY[i, j] = A[i, j] + B[i, j]\noutput Y\n")
    result = fuseflow("explain", "plan", "small.ein", "--plan", "auto", "--auto-top", "0")
    assert result.exit_code == 0 and "no plan takes fewer cycles" in result.stdout


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("operands: soon", "is a mapping from names of tensors to parts"),
        ("operands: [auto]", "is a mapping from names of tensors to parts"),
    ],
)
def test_what_else_stands_for_operands_is_refused(text: str, message: str) -> None:
    with pytest.raises(PlanError, match=message):
        Plan.from_yaml(text)


def test_an_open_plan_is_read_again_and_has_no_operands() -> None:
    assert Plan.from_yaml(Plan(auto=True).to_yaml()) == Plan(auto=True)
    with pytest.raises(PlanError, match="left to `auto`"):
        Plan(Plan.from_yaml("operands: {W: [{form: 4x4}]}").operands, auto=True)
