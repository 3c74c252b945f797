"""Which index of a region is sampled, what its coordinates weigh, and what a sample of it says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from memories import without_refresh

import fuseflow as ff
from fuseflow.einsum.parse import parse
from fuseflow.estimate.program import Estimator
from fuseflow.fusion.tree import selections
from fuseflow.lower.regions import CompiledRegion
from fuseflow.sampling.restriction import coordinate_count, refusal, replicate_lengthening, sampled_index
from fuseflow.sampling.weights import index_weights

HEADS = """
tensor A[{b}, {h}, {i}, {j}] (dense, dense, dense, compressed)
tensor V[{b}, {h}, {j}] dense
O[b, h, i] = sum(j) A[b, h, i, j] * V[b, h, j]
output O
"""


def heads(
    b: int = 1, h: int = 3, i: int = 200, j: int = 30, order: tuple[str, ...] = ("b", "h", "i", "j"), **options: Any
) -> ff.Compiled:
    rng = np.random.default_rng(0)
    stored = rng.random((b, h, i, j)) < rng.random((1, 1, i, 1))
    tensors = {"A": rng.random((b, h, i, j)) * stored, "V": rng.random((b, h, j))}
    return ff.compile(
        parse(HEADS.format(b=b, h=h, i=i, j=j)), tensors=tensors, schedule=ff.Schedule().order("O", order), **options
    )


def region(compiled: ff.Compiled) -> CompiledRegion:
    return compiled.regions[-1]


@pytest.mark.parametrize(
    ("sizes", "index"),
    [
        ({}, "i"),  # one sequence and three heads are too few to sample
        ({"b": 70}, "b"),  # the outermost that is long enough
        ({"h": 80}, "h"),
        ({"b": 16, "h": 64}, "i"),  # which begins 1,024 times
        ({"b": 25, "h": 41}, "b"),  # 1,025 times i would begin anew, and its pipeline be filled
        ({"i": 66}, "b"),  # nothing is long enough
    ],
)
def test_the_outermost_index_that_is_long_enough(sizes: dict[str, int], index: str) -> None:
    assert sampled_index(region(heads(**sizes, j=2)).fused) == index


def test_a_reduced_index_is_not_sampled() -> None:
    compiled = heads(j=300, i=70, order=("b", "h", "j", "i"))
    fused = region(compiled).fused
    assert fused.order[:3] == ("b", "h", "j") and sampled_index(fused) == "i"  # j is reduced, and i begins 900 times
    assert refusal(region(compiled)) is None and coordinate_count(fused) == 70


def test_replicates_are_longer_where_the_index_begins_often() -> None:
    assert replicate_lengthening(region(heads()).fused) == 1  # 3 starts
    assert replicate_lengthening(region(heads(b=16, h=64, i=70, j=2)).fused) == 16
    assert replicate_lengthening(region(heads(b=5, h=13, i=70, j=2)).fused) == 2  # 65 starts


KEEPS = "tensor A[{rows}, 80] csr\nH[i, j] = keep({rule}) A[i, j]\noutput H"


@pytest.mark.parametrize("rule", ["2 of 4 over j", "threshold 0.5", "3 over j"])
def test_an_index_in_which_no_entries_are_compared_is_sampled(rule: str) -> None:
    assert sampled_index(region(keeps(rule)).fused) == "i"


@pytest.mark.parametrize("rule", ["100 over i, j", "3 over i", "2 of 4 over i"])
def test_an_index_of_which_entries_are_compared_is_not_sampled(rule: str) -> None:
    fused = region(keeps(rule)).fused
    joined = {index for selection in selections(*fused.trees) for index in selection.over}
    assert joined and (sampled_index(fused) not in joined or "keeps entries along" in str(refusal(region(keeps(rule)))))


def keeps(rule: str, rows: int = 100) -> ff.Compiled:
    A = np.random.default_rng(0).standard_normal((rows, 80))
    return ff.compile(parse(KEEPS.format(rule=rule, rows=rows)), tensors={"A": A})


def test_a_coordinate_weighs_what_it_takes_in_all_loops_around_it() -> None:
    """By hand: the elements of row i in each head and a cycle for the stop behind, at least one for a row without any."""
    compiled = heads()
    estimator = Estimator()
    knowledge = estimator.knowledge(compiled.program, compiled.source.tensors)
    one = region(compiled)
    weights = index_weights(one.table, "i", 200, knowledge.patterns, compiled.machine, estimator.memo).weights
    lengths = np.count_nonzero(compiled.source.tensors["A"].to_dense()[0], axis=-1)
    assert weights.tolist() == np.maximum(lengths + 1, 1).sum(axis=0).tolist()


def test_all_of_an_inner_index_is_the_run_itself() -> None:
    compiled = heads()
    exact, sampled = compiled.run(), compiled.run(sample=ff.Sample(fraction=1))
    assert sampled.cycles.estimate == exact.cycles and sampled.cycles.half_width == 0
    assert sampled.regions[-1].index == "i" and sampled.regions[-1].sample is not None
    assert sampled.rows_check.passed and sampled.rows_check.worst == "O"


def test_a_sample_of_an_inner_index() -> None:
    compiled = heads(i=12000, machine=without_refresh())
    exact, sampled = compiled.run(), compiled.run(sample=ff.Sample(error=0.05, shortest=4000))
    assert sampled.regions[-1].sample is not None and sampled.regions[-1].sample.taken < 4000
    assert abs(sampled.cycles.estimate / exact.cycles - 1) < 0.05
    assert sampled.rows_check.passed and sampled.check is not None and sampled.check.passed
