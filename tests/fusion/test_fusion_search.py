"""The search for a way to fuse a region: refusals are values until nothing is left to try."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest
from residual_program import RESIDUAL

from fuseflow.costs import Estimate
from fuseflow.einsum.format_inference import infer
from fuseflow.einsum.parse import parse
from fuseflow.errors import FusionError
from fuseflow.fusion import FusedRegion, choose_order, fuse
from fuseflow.fusion.fusion_search import (
    FEW_REPEATS,
    MERGE_POLICIES,
    FusionCandidate,
    FusionProblem,
    fusion_choices,
    has_loops,
    merge_policies_for,
    search,
)
from fuseflow.fusion.refusal import Refusal, attempt

SOFTMAX = """
tensor X[4, 6] csr
m[i]    = max(j) X[i, j]
E[i, j] = exp(X[i, j] - m[i])
Y[i, j] = E[i, j] * 2
output Y
"""


def free(region: FusedRegion, limit: float = math.inf) -> Estimate:
    """Every order costs nothing."""
    return Estimate(0, 0, 0, 0)


def problem(text: str, ordered: Callable[[FusedRegion], FusedRegion] | None = None) -> FusionProblem:
    program = infer(parse(text))
    einsums, stored = tuple(e.name for e in program.einsums), {t.name: t for t in program.inputs}
    return FusionProblem(
        fuse=partial(fuse, program, "full", einsums, program.outputs, stored),
        price=lambda name: 1.0,
        pins=(frozenset(program.outputs), frozenset()),
        copies=("never", "cycles"),
        choose_order=ordered or partial(choose_order, cost=free),
        cost=free,
    )


def refused(region: FusedRegion) -> FusedRegion:
    raise FusionError(f"not with {len(region.merges)} merges")


def test_an_attempt_gives_a_value_or_a_refusal() -> None:
    assert attempt(max, 1, 2) == 2
    outcome = attempt(refused, FusedRegion("r", (), (), {}, {}, {}, (), None))  # type: ignore[arg-type]
    assert isinstance(outcome, Refusal) and outcome.error.message == "not with 0 merges"


def test_other_errors_are_no_refusals() -> None:
    with pytest.raises(ZeroDivisionError):
        attempt(divmod, 1, 0)


def test_the_first_way_is_taken() -> None:
    candidate = search(problem(SOFTMAX))
    assert isinstance(candidate, FusionCandidate)
    assert candidate.choice == fusion_choices(problem(SOFTMAX), MERGE_POLICIES)[0] and candidate.region.order == ("i", "j")


def test_ways_are_tried_from_the_most_wishes_to_the_fewest() -> None:
    merges = [(c.copies, c.merge, len(c.pinned)) for c in fusion_choices(problem(SOFTMAX), ("early", "never"))]
    never = [("never", merge, pins) for merge in ("early", "never") for pins in (1, 0)]
    assert merges == never + [("cycles", merge, pins) for _, merge, pins in never]


def test_a_way_that_is_refused_gives_way_to_the_next() -> None:
    def unmerged(region: FusedRegion) -> FusedRegion:
        return refused(region) if region.merges else choose_order(region, free)

    candidate = search(problem(SOFTMAX, unmerged))
    assert isinstance(candidate, FusionCandidate) and candidate.choice.merge == "never"


def test_where_nothing_is_left_the_way_with_the_fewest_wishes_says_why() -> None:
    outcome = search(problem(SOFTMAX, refused))
    assert isinstance(outcome, Refusal) and outcome.error.message == "not with 1 merges"


def test_an_order_decides_how_views_are_merged() -> None:
    case = problem(SOFTMAX)
    assert merge_policies_for(case, ("i", "j")) == ("lean",)
    assert merge_policies_for(case, ("i", "nothing")) == MERGE_POLICIES
    unmerged = next(c for c in fusion_choices(case, MERGE_POLICIES) if c.merge == "never")
    candidate = search(replace(case, copies=(unmerged.copies,)), ("i", "j"))
    assert isinstance(candidate, FusionCandidate) and has_loops(candidate.region, ("j", "i"))
    assert not has_loops(candidate.region, ("i", "i"))


@pytest.mark.parametrize(("lean_cycles", "merge"), [(1, "lean"), (2, "lean"), (3, "early")])
def test_a_region_that_repeats_is_also_fused_with_more_views_merged(lean_cycles: int, merge: str) -> None:
    def rank(region: FusedRegion, limit: float = math.inf) -> Estimate:
        cycles = lean_cycles if len(region.merges) == 1 else 2
        return Estimate(cycles, cycles, 0, 0)

    candidate = search(replace(problem(RESIDUAL, partial(choose_order, cost=rank)), cost=rank))
    assert isinstance(candidate, FusionCandidate) and candidate.choice.merge == merge


@pytest.mark.parametrize(("repeats", "merges"), [(FEW_REPEATS, [1]), (FEW_REPEATS + 0.1, [1, 2])])
def test_where_producers_run_once_no_more_views_are_merged(repeats: float, merges: list[int]) -> None:
    searched: list[int] = []

    def ordered(region: FusedRegion) -> FusedRegion:
        searched.append(len(region.merges))
        return choose_order(region, free)

    candidate = search(replace(problem(RESIDUAL, ordered), repeats=lambda region: repeats))
    assert isinstance(candidate, FusionCandidate) and candidate.choice.merge == "lean" and searched == merges


def test_where_no_producer_would_run_again_nothing_is_compared() -> None:
    searched: list[int] = []

    def ordered(region: FusedRegion) -> FusedRegion:
        searched.append(len(region.merges))
        return choose_order(region, free)

    candidate = search(problem(SOFTMAX, ordered))
    assert isinstance(candidate, FusionCandidate) and candidate.choice.merge == "lean" and searched == [1]
