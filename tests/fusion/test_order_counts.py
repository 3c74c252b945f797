"""The counting rules: the paper's numbers on the paper's programs, and small programs counted by hand."""

from __future__ import annotations

import math
import time
from collections import Counter
from pathlib import Path

import pytest

from fuseflow.einsum.format_inference import infer
from fuseflow.einsum.nodes import Program
from fuseflow.einsum.parse import parse
from fuseflow.errors import FusionError
from fuseflow.fusion import FusedRegion, fuse
from fuseflow.fusion.linear_extensions import ExtensionCount
from fuseflow.fusion.order_counts import count_legal, count_merged, count_reference, expand_uses, fuse_in_mode_order

PAPER = Path(__file__).parents[1] / "data" / "paper"


def region_of(text: str) -> tuple[Program, FusedRegion]:
    """All Einsums as one region; a program that is one only with everything dense is fused so."""
    program = infer(parse(text))
    stored = {t.name: t for t in program.inputs}
    return program, fuse(program, "full", [e.name for e in program.einsums], program.outputs, stored)


def counts(text: str) -> dict[str, tuple[int, ExtensionCount]]:
    program, region = region_of(text)
    stored = {t.name: t for t in program.inputs}
    order_counts = {
        "reference": count_reference(program, region, stored),
        "merged": count_merged(program, region, stored),
        "legal": count_legal(region),
    }
    assert all(c.unconstrained == math.factorial(c.variables) for c in order_counts.values())
    return {rule: (c.variables, c.constrained) for rule, c in order_counts.items()}


def test_the_paper_s_gcn():
    order_counts = counts((PAPER / "gcn.ein").read_text())
    assert order_counts["reference"] == (18, ExtensionCount(63_063_000)) and math.factorial(18) == 6_402_373_705_728_000
    assert order_counts["merged"] == (6, ExtensionCount(1))


def test_the_paper_s_graphsage():
    order_counts = counts((PAPER / "graphsage.ein").read_text())
    assert order_counts["reference"] == order_counts["merged"] == (11, ExtensionCount(1134)) and math.factorial(11) == 39_916_800


def test_the_variables_of_the_paper_s_gcn_are_four_chains_with_shared_ends():
    program, region = region_of((PAPER / "gcn.ein").read_text())
    ordered = fuse_in_mode_order(program, region, {t.name: t for t in program.inputs})
    assert ordered is not None
    graph = expand_uses(ordered)
    above = Counter(w for inside in graph.values() for w in inside)
    assert len(graph["n"]) == above["c"] == 4
    inner = [v for v in graph if v not in ("n", "c")]
    assert all(above[v] == len(graph[v]) == 1 for v in inner) and len(inner) == 16


def test_counting_takes_milliseconds():
    program, region = region_of((PAPER / "gcn.ein").read_text())
    start = time.perf_counter()
    count_reference(program, region, {t.name: t for t in program.inputs})
    assert time.perf_counter() - start < 0.1


BY_HAND = {
    # i -> k -> j
    "spmm": (
        "tensor A[4, 4] csf\ntensor X[4, 5] csf\nY[i, j] = sum(k) A[i, k] * X[k, j]\noutput Y",
        {"reference": (3, 1), "merged": (3, 1), "legal": (3, 1)},
    ),
    # the mode order of a dense tensor counts in the paper's rule, not for a compiler that locates
    "spmm with a dense operand": (
        "tensor A[4, 4] csf\ntensor X[4, 5] dense\nY[i, j] = sum(k) A[i, k] * X[k, j]\noutput Y",
        {"reference": (3, 1), "merged": (3, 1), "legal": (3, 3)},
    ),
    # i -> k and i -> k_2
    "a sum used twice": (
        "tensor A[4, 4] csf\nT[i] = sum(k) A[i, k]\nY[i] = T[i] * T[i]\noutput Y",
        {"reference": (3, 2), "merged": (2, 1), "legal": (2, 1)},
    ),
    # each use of U brings two of T: four variables below i, in any order
    "a use of a use": (
        "tensor A[4, 4] csf\nT[i] = sum(k) A[i, k]\nU[i] = T[i] + T[i]\nY[i] = U[i] * U[i]\noutput Y",
        {"reference": (5, 24), "merged": (2, 1), "legal": (2, 1)},
    ),
    # the maximum runs over the result's j, and so does its operand
    "a row less its maximum": (
        "tensor A[4, 4] csf\nm[i] = max(k) A[i, k]\nY[i, j] = A[i, j] - m[i]\noutput Y",
        {"reference": (2, 1), "merged": (2, 1), "legal": (2, 1)},
    ),
    # A X is read for the result and for the maximum: i -> k -> j and i -> k_2 -> j
    "a product less its maximum": (
        "tensor A[4, 4] csf\ntensor X[4, 5] csf\nT[i, j] = sum(k) A[i, k] * X[k, j]\n"
        "m[i] = max(j) T[i, j]\nY[i, j] = T[i, j] - m[i]\noutput Y",
        {"reference": (4, 2), "merged": (3, 1), "legal": (3, 1)},
    ),
    # m merges with the sum in Z; used beside the sum it is a loop of its own: i -> j and i -> j_2
    "a merged reduction used outside its partner": (
        "tensor A[4, 4] csf\nm[i] = max(j) A[i, j]\nZ[i] = m[i] / (sum(k) exp(A[i, k] - m[i]))\noutput Z",
        {"reference": (3, 2), "merged": (2, 1), "legal": (2, 1)},
    ),
    # T at [i, j] and at [j, i]: the mode orders contradict each other, and a reference has no copies
    "a cycle of dense tensors": (
        "tensor A[4, 4] dense\nY[i, j] = A[i, j] + A[j, i]\noutput Y",
        {"reference": (2, 0), "merged": (2, 0), "legal": (2, 2)},
    ),
    "a chain side by side": (
        "tensor a[4] csf\ntensor b[4] csf\nY[i, j] = a[i] * b[j]\noutput Y",
        {"reference": (2, 2), "merged": (2, 2), "legal": (2, 2)},
    ),
    "two results": (
        "tensor A[4, 4] csf\nT[i] = sum(k) A[i, k]\nY[i] = T[i] + 1\noutput T, Y",
        {"reference": (3, 2), "merged": (2, 1), "legal": (2, 1)},
    ),
    "a scalar": ("tensor a[4] csf\ns = sum(i) a[i]\noutput s", {"reference": (1, 1), "merged": (1, 1), "legal": (1, 1)}),
}


@pytest.mark.parametrize("name", BY_HAND)
def test_small_programs_counted_by_hand(name):
    text, expected = BY_HAND[name]
    assert counts(text) == {rule: (variables, ExtensionCount(orders)) for rule, (variables, orders) in expected.items()}


def test_levels_are_ordered_as_they_are_stored():
    text = "tensor A[4, 4] (dense, dense) order (1, 0)\nY[i, j] = A[i, j] * 2\noutput Y"
    _, region = region_of(text)
    assert expand_uses(region) == {"i": {}, "j": {"i": "A[i, j] is stored j before i ((dense, dense) order (1, 0))"}}


def test_reuse_without_reductions_is_not_followed_use_by_use():
    lines = ["tensor A[3, 3] csf", "T0[i, j] = A[i, j] + 1"]
    lines += [f"T{k}[i, j] = T{k - 1}[i, j] * T{k - 1}[i, j]" for k in range(1, 80)]
    assert counts("\n".join([*lines, "output T79"]))["reference"] == (2, ExtensionCount(1))


def test_uses_that_multiply_are_bounded():
    lines = ["tensor A[3, 3] csf", "T0[i] = sum(j) A[i, j]"]
    lines += [f"T{k}[i] = T{k - 1}[i] * T{k - 1}[i]" for k in range(1, 20)]
    text = "\n".join([*lines, "output T19"])
    with pytest.raises(FusionError, match="more than 1000 variables"):
        counts(text)
    few = counts(text.replace("output T19", "output T5"))
    assert few["reference"] == (33, ExtensionCount(math.factorial(32)))
