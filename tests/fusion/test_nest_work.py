"""How often the loops of nests run, by hand, and that it does not depend on what was asked before."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuseflow.einsum.format_inference import infer
from fuseflow.einsum.parse import parse
from fuseflow.fusion import FusedRegion
from fuseflow.fusion.fuse import fuse
from fuseflow.fusion.nest_work import RegionWork

PRODUCT = "tensor A[100, 50]\ntensor B[50, 20]\nY[i, j] = sum(k) A[i, k] * B[k, j]\noutput Y"
SOFTMAX = """
tensor X[8, 6]
m[i]    = max(j) X[i, j]
E[i, j] = exp(X[i, j] - m[i])
s[i]    = sum(j) E[i, j]
Y[i, j] = E[i, j] / s[i]
output Y
"""


def region_of(text: str, merge: str = "early") -> FusedRegion:
    program = infer(parse(text))
    names = tuple(e.name for e in program.einsums)
    return fuse(program, "r", names, program.outputs, {t.name: t for t in program.inputs}, merge=merge)  # type: ignore[arg-type]


def work_of(region: FusedRegion, shares: Mapping[str, Mapping[str, float]]) -> RegionWork:
    stored = {view: shares.get(view.tensor, {}) for view in region.views}
    return RegionWork.of([(result.indices, result.tree) for result in region.results], region.sizes, stored)


def test_a_product_by_hand() -> None:
    """Loops i, j and k run 100, 2,000 and 10,000 times. Beside each loop move the views that have its index: 2, 2 and 3 streams. Innermost,
    two values are read, multiplied (twice as much), handed on and added."""
    work = work_of(region_of(PRODUCT), {"A": {"k": 0.1}})
    assert work(("i", "j", "k")) == (10_000, 2 * 100 + 2 * 2_000 + 3 * 10_000 + (1 + 1 + 2) * 10_000 + 10_000 + 10_000)


def test_a_workspace_holds_what_any_of_its_fibers_has() -> None:
    """In order i,k,j the sum over k takes a coordinate and a value of each of 10,000 products: 20,000 instead of 10,000. A is read for each
    of 500 pairs i and k alone."""
    work = work_of(region_of(PRODUCT), {"A": {"k": 0.1}})
    assert work(("i", "k", "j")) == (10_000, 2 * 100 + 3 * 500 + 2 * 10_000 + 500 + (1 + 2) * 10_000 + 10_000 + 20_000)


def test_a_reduction_runs_once_before_the_loop_that_waits_for_it_and_again_inside_of_one_that_it_lacks() -> None:
    region = region_of("tensor A[10, 5]\ntensor x[5]\nt[i] = sum(k) A[i, k] * x[k]\nY[i, j] = t[i] * B[j]\ntensor B[7]\noutput Y")
    work = work_of(region, {})
    once, again = work(("i", "k", "j")), work(("j", "i", "k"))
    assert again[1] > 3 * once[1] and again[0] == 7 * 10 * 5


@given(st.permutations(list(permutations(("i", "j", "k")))), st.sampled_from(("early", "never")))
def test_what_was_asked_before_changes_nothing(orders: list[tuple[str, ...]], merge: str) -> None:
    region = region_of(SOFTMAX, merge)
    asked = work_of(region, {"X": {"j": 0.5}})
    for letters in orders:
        order = tuple(v for v in (*letters, *region.indices) if v in region.indices)
        order = tuple(dict.fromkeys(order))
        assert asked(order) == work_of(region, {"X": {"j": 0.5}})(order)


@pytest.mark.parametrize("size", [0, 1])
def test_loops_may_run_never_or_once(size: int) -> None:
    work = work_of(region_of(f"tensor A[{size}, 4]\nY[i] = sum(k) A[i, k]\noutput Y"), {})
    assert work(("i", "k"))[0] == max(1, 4 * size) and work(("k", "i"))[1] > 0


def test_a_region_repeats_what_runs_inside_of_a_loop_that_it_lacks() -> None:
    region = region_of("tensor A[10, 5]\ntensor x[5]\nt[i] = sum(k) A[i, k] * x[k]\nY[i, j] = t[i] * B[j]\ntensor B[7]\noutput Y")
    work = work_of(region, {})
    assert work.repeats(("i", "k", "j")) == pytest.approx(1.0, rel=0.2) and work.repeats(("j", "i", "k")) > 3


def test_what_runs_again_would_save_work_if_it_ran_once() -> None:
    region = region_of("tensor A[10, 5]\ntensor x[5]\nt[i] = sum(k) A[i, k] * x[k]\nY[i, j] = t[i] * B[j]\ntensor B[7]\noutput Y")
    work = work_of(region, {})
    again = ("j", "i", "k")  # the sum runs for each j
    assert work.savings(("i", "k", "j"))["t"] <= 0
    assert 0.5 * work(again)[1] < work.savings(again)["t"] < work(again)[1]
