"""The kernels of `flatten` and `split` equal the reference token by token, in long runs."""

from __future__ import annotations

import numpy as np
import pytest
from engines import case_of, disagreements_at_all_limits, runs_of
from random_graphs.case import Case

from fuseflow.samml.text import parse
from fuseflow.samml.verify import verify
from fuseflow.sim import load_machine
from fuseflow.tensors import pack

# Two levels below another as one, one as two, of a size that divides it and of one that does not; and of computed coordinates
LEVELS = """
tensor A[3, 4, 6]  (compressed, compressed, FORMAT) f64
tensor Y[3, 4, 6]  (compressed, compressed, compressed) f64
output Y
root = root()
A_i = scan(root) A.0
A_j = scan(A_i.ref) A.1
A_k = scan(A_j.ref) A.2
A_v = load(A_k.ref) A
below = flatten(A_j.crd, A_k.crd) 6
above = flatten(A_i.crd, A_j.crd) 4
late = join(A_j.crd; A_j.crd) left
later = join(late; A_j.crd) left
latest = join(later; A_j.crd) left
joined = flatten(latest, A_k.crd) 6
same = split(below) 6
other = split(below) 5
inner = split(A_k.crd) 4
outer = split(A_i.crd) 2
all = flatten(same.outer, same.inner) 6
Y_i = write(A_i.crd) Y.0
Y_j = write(A_j.crd) Y.1
Y_k = write(A_k.crd) Y.2
Y_v = write(A_v) Y.vals
"""
WIDE = """
graph wide
tensor A[3, 1000]  (dense, FORMAT) f64
tensor V[6, 500]  dense f64
tensor Y[6, 500]  dcsr f64
output Y
root = root()
A_i = scan(root) A.0
A_j = scan(A_i.ref) A.1
one = flatten(A_i.crd, A_j.crd) 1000
two = split(one) 500
V_i = locate(two.outer) V.0
rep = repeat(V_i, two.inner)
V_j = locate(two.inner, rep) V.1
V_v = load(V_j) V
again = flatten(two.outer, two.inner) 500
narrow = split(again) 7
Y_i = write(two.outer) Y.0
Y_j = write(two.inner) Y.1
Y_v = write(V_v) Y.vals
"""


@pytest.mark.parametrize("format", ["dense", "compressed"])
@pytest.mark.parametrize("seed", range(25))
def test_like_the_reference(seed: int, format: str) -> None:
    case = case_of(LEVELS.replace("FORMAT", format), seed)
    assert not list(disagreements_at_all_limits(case))


@pytest.mark.parametrize("format", ["dense", "compressed"])
def test_coordinates_go_in_runs(format: str) -> None:
    graph = parse(WIDE.replace("FORMAT", format))
    verify(graph)
    tensors = {name: pack(np.ones(graph.declared[name].shape), graph.declared[name].format) for name in "AV"}
    case = Case(graph, tensors, load_machine("ideal"))
    assert not list(disagreements_at_all_limits(case))
    (flat,) = runs_of(case, "one")
    outer, inner = runs_of(case, "two")
    assert flat <= 3 + 2  # a run for each outer coordinate, the stop, `D`
    assert inner <= 6 + 6 + 1
    assert outer <= 6 + 2
