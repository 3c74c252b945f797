"""The nodes of a region's trees that hold the value of an Einsum, whatever fusion renamed and merged."""

from __future__ import annotations

import programs
import pytest

from fuseflow.einsum.format_inference import infer
from fuseflow.einsum.parse import parse
from fuseflow.fusion import fuse
from fuseflow.fusion.fuse import MergePolicy
from fuseflow.fusion.producers import producer_views
from fuseflow.fusion.tree import Operation, Reduction


def found(text: str, merge: MergePolicy = "early") -> dict[str, set[tuple[str, ...]]]:
    program = infer(parse(text))
    stored = {t.name: t for t in program.inputs}
    region = fuse(program, "full", [e.name for e in program.einsums], program.outputs, stored, merge=merge)
    return {e: set(views.values()) for e, views in producer_views(region, program).items()}


def test_a_chain():
    assert found(programs.TEXTS["layer"]) == {"T": {("k", "j")}, "U": {("i", "j")}, "Y": {("i", "j")}}


def test_a_softmax_reads_one_view_if_views_are_merged():
    text = programs.TEXTS["masked_softmax"]
    assert found(text) == {"S": {("i", "j")}, "m": {("i",)}, "E": {("i", "j")}, "Y": {("i", "j")}}
    assert len(found(text, merge="never")["S"]) > 1


def test_a_producer_that_is_read_both_ways_has_two_views():
    views = found("""
        tensor A[4, 4] dense
        T[i, j] = sum(k) A[i, k] * A[j, k]
        Y[i, j] = T[i, j] + exp(T[j, i])
        output Y
    """)
    assert views["T"] == {("i", "j"), ("j", "i")}


def test_einsums_that_compute_the_same_share_their_node():
    views = found("tensor a[3] dense\nP[i] = exp(a[i])\nQ[i] = exp(a[i])\nY[i] = P[i] + Q[i]\noutput Y\n")
    assert views["P"] == views["Q"] == {("i",)}


@pytest.mark.parametrize("body", ["sum(j) A[i, j]", "sum(k) A[k, i]", "max(j) A[i, j]"])
def test_a_reduction_is_told_from_its_like(body: str):
    """Rows are not columns, and a sum is not a maximum."""
    program = infer(parse(f"tensor A[4, 4] dense\nr[i] = {body}\nc[j] = sum(i) A[i, j]\nY[i] = r[i] * exp(c[i])\noutput Y\n"))
    region = fuse(program, "full", ["r", "c", "Y"], ("Y",), {t.name: t for t in program.inputs})
    views = producer_views(region, program)
    same = body == "sum(k) A[k, i]"
    assert (set(views["r"]) == set(views["c"])) is same
    assert all(isinstance(node, Reduction) for node in (*views["r"], *views["c"]))


def test_an_index_along_which_a_value_does_not_vary_is_unused():
    program = infer(
        parse("tensor a[3] dense\ntensor T[3, 2] dense\nT[i, j] = exp(a[i])\nY[i] = sum(j) T[i, j] * a[i]\noutput Y\n")
    )
    region = fuse(program, "full", ["T", "Y"], ("Y",), {t.name: t for t in program.inputs})
    ((node, indices),) = producer_views(region, program)["T"].items()
    assert isinstance(node, Operation) and indices == ("i", "_")


def test_long_reuse_is_found_in_time_that_does_not_double():
    lines = "".join(f"T{k + 1}[i] = T{k}[i] * T{k}[i]\n" for k in range(40))
    views = found(f"tensor T0[3] dense\n{lines}output T40\n")
    assert set(views) == {f"T{k + 1}" for k in range(40)}
