"""Programs that keep parts of their results, compiled and run: where the selection stands, what it costs, and what it never touches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fuseflow as ff
from fuseflow.einsum.parse import parse
from fuseflow.einsum.text import show
from fuseflow.errors import FuseFlowError
from fuseflow.fusion.region_program import as_program
from fuseflow.samml.nodes import Select
from fuseflow.schedule import Schedule

DATA = Path(__file__).parents[1] / "data" / "sparsity"
TEXT = (DATA / "relu_region.ein").read_text(encoding="utf-8")


def compiled(rule: str = "", machine: str = "ideal", schedule: Schedule | None = None) -> ff.Compiled:
    """The recorded program, with a `keep` before its relu; in one region unless a schedule says otherwise."""
    text = TEXT.replace("relu(", f"keep({rule}) relu(") if rule else TEXT
    with np.load(DATA / "relu_region.npz") as stored:
        tensors: dict[str, Any] = {name: stored[name] for name in stored.files}
    return ff.compile(parse(text), tensors=tensors, schedule=schedule or Schedule.fuse("full"), machine=machine)


def firings(run: ff.Result) -> int:
    return sum(node.firings for region in run.regions for node in region.simulation.nodes)


@pytest.mark.parametrize(("machine", "cycles"), [("ideal", 135_737), ("rda", 149_011)])
@pytest.mark.parametrize("rule", ["", "threshold 0.5"])
def test_what_leaves_inside_a_region_is_not_multiplied(machine: str, cycles: int, rule: str) -> None:
    """Cycles and firings without a `drop` were recorded before there was one inside a region."""
    before = compiled(machine=machine).run()
    schedule = Schedule.fuse("full") if rule else Schedule.fuse("full").lower(drop_zeros=["H"])
    after = compiled(rule, machine, schedule).run()
    assert (before.cycles, firings(before)) == (cycles, 910_840)
    assert after.cycles <= 0.55 * cycles and firings(after) < 0.65 * 910_840
    assert sum(after.stats["bytes"][way] for way in ("read", "write")) <= sum(
        before.stats["bytes"][way] for way in ("read", "write")
    )
    assert after.check is not None and after.check.passed
    assert rule or np.array_equal(after.outputs["Y"], before.outputs["Y"])


def test_a_group_is_selected_in_the_region_and_held_alone() -> None:
    run = compiled("2 of 4 over j", "rda").run()
    assert "H" not in run.stats["bytes"]["by_tensor"]
    (selection,) = (node for region in run.regions for node in region.simulation.nodes if node.op == "select")
    assert selection.workspace == 4
    assert run.check is not None and run.check.passed


def test_what_is_kept_of_a_whole_result_is_a_region_between_two_boundaries() -> None:
    """Its operand is written once and read once, and so is its result."""
    run = compiled("100 over i, j", "rda").run()
    assert [region.name for region in run.regions] == ["full", "H", "full-2"]
    moved = run.stats["bytes"]["by_tensor"]
    operand, result = moved["T"], moved["H"]
    assert operand["val"] == {"read": 64 * 64 * 4, "write": 64 * 64 * 4}
    assert result["val"] == {"read": 400, "write": 400}
    assert result["crd"]["write"] == result["crd"]["read"]
    assert run.check is not None and run.check.passed


def test_the_fused_program_says_what_is_kept() -> None:
    (region,) = compiled("8 over j").regions
    assert "H[i, j] = keep(8 over j) relu(T[i, j])" in show(as_program(region.fused))
    (dropping,) = compiled("", schedule=Schedule.fuse("full").lower(drop_zeros=["H"])).regions
    assert "H[i, j] = keep(nonzero) relu(T[i, j])" in show(as_program(dropping.fused))


def test_the_loop_that_is_compared_is_the_innermost_of_the_result() -> None:
    (region,) = compiled("8 over j").regions
    assert "j" in region.fused.constraints["i"]
    assert [node.keep for node in region.graph.nodes if isinstance(node, Select)] == [8]


@pytest.mark.parametrize(
    ("rule", "schedule", "message"),
    [
        ("8 over j", Schedule.fuse("full").order("full", "j,i,k,m"), "needs i before j, j before i"),
        ("100 over i, j", Schedule().region("r", "T", "H").fuse("r"), "keeps entries of a whole result"),
        ("8 over j", Schedule.fuse("full").block("T", 2, 2), "stored in blocks"),
    ],
)
def test_a_schedule_that_cannot_be_is_refused(rule: str, schedule: Schedule, message: str) -> None:
    with pytest.raises(FuseFlowError) as refused:
        compiled(rule, schedule=schedule)
    assert message in refused.value.message and refused.value.hint


def test_vectors_of_what_is_compared_are_refused_by_their_flag() -> None:
    text = "tensor A[8, 6] dense order (1, 0)\nH[i, j] = keep(2 of 4 over j) A[i, j]\noutput H".replace(
        "dense order", "(dense, dense) order"
    )
    with pytest.raises(FuseFlowError) as refused:
        ff.compile(parse(text), tensors={"A": np.ones((8, 6))}, schedule=Schedule.fuse("none").lower(vector=4))
    assert "would be stored in blocks, and `keep(2 of 4 over j)` of `H` compares single elements" in refused.value.message
    assert "`--vector`" in (refused.value.hint or "")


@pytest.mark.parametrize("rule", ["8 over j", "2 of 4 over j", "100 over i, j"])
def test_machine_comal_has_no_times_for_a_selection(rule: str) -> None:
    with pytest.raises(FuseFlowError) as refused:
        compiled(rule, "comal").run()
    assert "`select_H` keeps the largest entries of a tensor; machine `comal` has no times for that" in refused.value.message
    assert "rules: dataflow" in (refused.value.hint or "")
