"""The kernel of `align` equals the reference token by token, in long runs."""

from __future__ import annotations

import numpy as np
import pytest
from engines import case_of, disagreements_at_all_limits, runs_of
from random_graphs.case import Case

from fuseflow.samml.text import parse
from fuseflow.samml.verify import verify
from fuseflow.sim import load_machine
from fuseflow.tensors import pack

# Subtrees of one and two levels, at the outermost coordinates and below them; `more` adds coordinates and `fewer` takes some away
SUBTREES = """
tensor A[4, 4, 4]  (compressed, compressed, compressed) f64
tensor B[4, 4, 4]  (compressed, compressed, compressed) f64
tensor Y[4, 4, 4]  (compressed, compressed, compressed) f64
output Y
root = root()
A_i = scan(root) A.0
B_i = scan(root) B.0
fewer = join(A_i.crd; B_i.crd) intersect
more = join(A_i.crd, A_i.ref; B_i.crd, B_i.ref) union
A_j = scan(A_i.ref) A.1
A_k = scan(A_j.ref) A.2
A_v = load(A_k.ref) A
fewer_j = align(A_i.crd, fewer, A_j.crd)
fewer_k = align(A_i.crd, fewer, A_k.crd)
more_j = align(A_i.crd, more.crd, A_j.ref)
more_v = align(A_i.crd, more.crd, A_v)
computed = alu(A_v) add N->0,1
fewer_v = align(A_i.crd, fewer, computed)
C_j = scan(more.out0) A.1
D_j = scan(more.out1) B.1
both = join(C_j.crd; D_j.crd) intersect
any = join(C_j.crd; D_j.crd) union
C_k = scan(C_j.ref) A.2
both_k = align(C_j.crd, both, C_k.crd)
any_k = align(C_j.crd, any, C_k.ref)
Y_i = write(fewer) Y.0
Y_j = write(fewer_j) Y.1
Y_k = write(fewer_k) Y.2
Y_v = write(fewer_v) Y.vals
"""
LONG = """
graph long
tensor A[3, 2000]  dense f64
tensor B[3]  (compressed) f64
tensor Y[3, 2000]  dcsr f64
output Y
root = root()
A_i = scan(root) A.0
B_i = scan(root) B.0
i = join(A_i.crd; B_i.crd) intersect
A_j = scan(A_i.ref) A.1
A_v = load(A_j.ref) A
computed = alu(A_v) add N->0,1
crd = align(A_i.crd, i, A_j.crd)
val = align(A_i.crd, i, computed)
Y_i = write(i) Y.0
Y_j = write(crd) Y.1
Y_v = write(val) Y.vals
"""


@pytest.mark.parametrize("seed", [*range(35), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(35, 70))])
def test_like_the_reference(seed: int) -> None:
    case = case_of(SUBTREES, seed)
    assert not list(disagreements_at_all_limits(case))


@pytest.mark.parametrize("new", [[1, 1, 1], [1, 0, 1], [0, 1, 0], [0, 0, 0]])
def test_subtrees_are_carried_and_lost_in_runs(new: list[int]) -> None:
    graph = parse(LONG)
    verify(graph)
    dense = {"A": np.arange(6000.0).reshape(3, 2000), "B": np.array(new, dtype=float)}
    case = Case(graph, {k: pack(x, graph.declared[k].format) for k, x in dense.items()}, load_machine("ideal"))
    assert not list(disagreements_at_all_limits(case))
    carried = sum(new)
    assert runs_of(case, "crd") == [carried + max(carried, 1) + 1]  # subtrees, the stop after each, `D`
    assert runs_of(case, "val") == runs_of(case, "crd")
