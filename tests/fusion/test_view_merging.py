"""Merging views where that makes no producer run again."""

from __future__ import annotations

from residual_program import RESIDUAL

from fuseflow.einsum.format_inference import infer
from fuseflow.einsum.parse import parse
from fuseflow.fusion import FusedRegion, fuse
from fuseflow.fusion.fuse import MergePolicy, pipeline_order
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
