"""Merging views where that makes no producer run again."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from random_programs import Case, planned
from residual_program import RESIDUAL

from fuseflow.einsum.format_inference import infer
from fuseflow.einsum.parse import parse
from fuseflow.errors import FuseFlowError
from fuseflow.frontend.model_spec import ModelSpec
from fuseflow.frontend.sources import load
from fuseflow.fusion import FusedRegion, fuse, view_merging
from fuseflow.fusion.fuse import MergePolicy, pipeline_order
from fuseflow.fusion.region_trees import RegionTrees
from fuseflow.fusion.tree import Reduction, TreeTable
from fuseflow.lower.program import lower
from fuseflow.schedule import Schedule

PROJECTIONS = """
tensor X[4, 6]
tensor A[6, 3]
tensor B[6, 5]
N[i, k] = exp(X[i, k])
Q[i, j] = sum(k) N[i, k] * A[k, j]
R[i, j] = sum(k) N[i, k] * B[k, j]
output Q, R
"""


def region(text: str, merge: MergePolicy) -> FusedRegion:
    program = infer(parse(text))
    stored = {t.name: t for t in program.inputs}
    return fuse(program, "full", [e.name for e in program.einsums], program.outputs, stored, merge=merge)


def reads(fused: FusedRegion, tensor: str) -> int:
    return sum(view.tensor == tensor for view in fused.views)


def test_a_residual_connection_is_not_merged_with_what_it_goes_around() -> None:
    assert (reads(region(RESIDUAL, "early"), "X"), reads(region(RESIDUAL, "lean"), "X")) == (1, 2)
    assert [str(r).split("[")[0] for r, _ in region(RESIDUAL, "lean").merges] == ["m"]


def test_results_of_one_producer_share_their_rows() -> None:
    early, lean = (region(PROJECTIONS, merge) for merge in ("early", "lean"))
    assert (reads(early, "X"), reads(lean, "X")) == (2, 1)
    assert lean.results[0].indices[0] == lean.results[1].indices[0]


def test_the_cheaper_one_is_taken() -> None:
    _, (region,) = lower(parse(RESIDUAL), Schedule.fuse("full"), {})
    assert reads(region.fused, "X") == 2
    early = lower(parse(RESIDUAL), Schedule.fuse("full").order("full", region.fused.order), {})[1][0]
    assert early.fused.order == region.fused.order and early.estimate == region.estimate


def test_a_guess_follows_the_pipeline() -> None:
    lean = region(RESIDUAL, "lean")
    first, last = pipeline_order(lean)[0], pipeline_order(lean)[-1]
    assert (first, last) == ("i", lean.results[0].indices[1])


@pytest.fixture
def followed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Compare every renaming of trees with one that renames them again for each thing that follows. The list has how many indices each
    renames."""
    asked: list[dict[str, str]] = []
    counts: list[int] = []
    renamed, settled = view_merging._renamed, view_merging.settled

    def settling(reductions: Sequence[Reduction], table: dict[str, str]) -> dict[str, str]:
        asked.append(table)
        return settled(reductions, table)

    def compared(fused: RegionTrees, trees: TreeTable, table: dict[str, str]) -> RegionTrees:
        at_once, step_by_step = renamed(fused, trees, table), renamed(fused, trees, asked[-1])
        while clashing := [pair for pair in earlier_and_later(step_by_step.reductions) if clash(*pair)]:
            first, other = clashing[0]
            step_by_step = renamed(step_by_step, trees, dict(zip(other.over, first.over, strict=True)))
        assert (at_once.results, at_once.views, at_once.merges) == (step_by_step.results, step_by_step.views, step_by_step.merges)
        assert at_once.nodes == step_by_step.nodes
        counts.append(len(table))
        return at_once

    monkeypatch.setattr(view_merging, "settled", settling)
    monkeypatch.setattr(view_merging, "_renamed", compared)
    return counts


def earlier_and_later(reductions: Sequence[Reduction]) -> list[tuple[Reduction, Reduction]]:
    return [(earlier, later) for n, later in enumerate(reductions) for earlier in reductions[:n]]


def clash(a: Reduction, b: Reduction) -> bool:
    return (a.label, a.op, a.free, len(a.over)) == (b.label, b.op, b.free, len(b.over)) and a.over != b.over


def test_what_follows_from_a_merge_is_renamed_at_once(followed: list[int]) -> None:
    source = load(ModelSpec(Path(__file__).resolve().parents[2] / "models" / "paper" / "gpt.py", options={"small": True}))
    lower(source.program, Schedule.fuse("full").lower(iteration="global"), {})
    assert max(followed) > 1


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], deadline=None)
@given(planned())
def test_what_follows_from_a_merge_of_a_random_program_is_renamed_at_once(followed: list[int], case: Case) -> None:
    with suppress(FuseFlowError):
        lower(case.program, Schedule.fuse("full"), {})


def test_a_merge_after_which_nothing_follows_is_noticed(followed: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(view_merging, "_clash", lambda reductions, table: None)
    with pytest.raises(AssertionError):
        test_what_follows_from_a_merge_is_renamed_at_once(followed)
