"""The kernels of `drop`, `flatten` and `split` equal the reference token by token, in long runs."""

from __future__ import annotations

from math import inf, nan

import numpy as np
import pytest
from engines import case_of, disagreements_at_all_limits, runs_of
from random_graphs.case import Case

from fuseflow.samml.text import parse
from fuseflow.samml.verify import verify
from fuseflow.sim import load_machine
from fuseflow.tensors import from_coordinates, pack

# Around three, two and one coordinates; of references (where A has nothing, `N`), of coordinates and of values; of what comes late
DEEP = """
tensor A[3, 4, 5]  (compressed, compressed, compressed) f64
tensor X[3, 4, 5]  (dense, compressed, compressed) f64
tensor Y[3, 4, 5]  (compressed, compressed, compressed) f64
tensor Z[3, 4, 5]  (compressed, compressed, compressed) f64
output Y, Z
root = root()
A_i = scan(root) A.0
X_i = scan(root) X.0
i = join(X_i.crd, X_i.ref; A_i.crd, A_i.ref) left
A_j = scan(i.out1) A.1
X_j = scan(i.out0) X.1
j = join(X_j.crd, X_j.ref; A_j.crd, A_j.ref) union
A_k = scan(j.out1) A.2
X_k = scan(j.out0) X.2
k = join(A_k.crd, A_k.ref; X_k.crd, X_k.ref) union
both = join(A_k.crd; X_k.crd) intersect
refs = drop(i.crd, j.crd, k.crd, k.out0)
crds = drop(j.crd, both, both)
rows = drop(k.crd, k.out1)
at_once = drop(j.crd, A_k.crd, A_k.ref)
late_crd = join(A_k.crd; A_k.crd; X_k.crd) left
late_val = drop(j.crd, A_k.crd, late_crd)
late = drop(j.crd, late_crd, A_k.ref)
A_v = load(refs.val) A
k_v = load(k.out0) A
vals = drop(i.crd, j.crd, k.crd, k_v) value=1
Y_i = write(refs.crd0) Y.0
Y_j = write(refs.crd1) Y.1
Y_k = write(refs.crd2) Y.2
Y_v = write(A_v) Y.vals
Z_i = write(vals.crd0) Z.0
Z_j = write(vals.crd1) Z.1
Z_k = write(vals.crd2) Z.2
Z_v = write(vals.val) Z.vals
"""
ROW = """
graph row
tensor a[4000]  (compressed) f64
tensor y[4000]  (compressed) f64
output y
root = root()
a_i = scan(root) a.0
a_v = load(a_i.ref) a
computed = alu(a_v) add N->0,1
kept = drop(a_i.crd, VALUES) value=1
y_i = write(kept.crd) y.0
y_v = write(kept.val) y.vals
"""


@pytest.mark.parametrize("seed", [*range(20), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(20, 40))])
def test_like_the_reference(seed: int) -> None:
    case = case_of(DEEP, seed)
    assert not list(disagreements_at_all_limits(case))


def row(values: np.ndarray, stream: str = "a_v") -> Case:
    graph = parse(ROW.replace("VALUES", stream))
    verify(graph)
    where = np.arange(len(values))[None]
    decl = graph.declared["a"]
    return Case(graph, {"a": from_coordinates(decl.shape, where, values, decl.format, 0.0)}, load_machine("ideal"))


@pytest.mark.parametrize("stream", ["a_v", "computed"])
@pytest.mark.parametrize("leaving", ["none", "first half", "every second", "all"])
def test_values_stay_and_leave_in_stretches(stream: str, leaving: str) -> None:
    values = np.full(4000, 2.0)
    values[{"none": slice(0), "first half": slice(2000), "every second": slice(0, 4000, 2), "all": slice(4000)}[leaving]] = 1.0
    case = row(values - (stream == "computed"), stream)
    assert not list(disagreements_at_all_limits(case))
    most = {"none": 3, "first half": 3, "every second": 2002, "all": 2}[leaving]
    assert max(runs_of(case, "kept")) <= most


def test_zeros_of_both_signs_leave_and_nan_stays() -> None:
    case = row(np.array([0.0, -0.0, nan, inf, -1.0, 5e-324]))
    case = Case(parse(ROW.replace("VALUES", "a_v").replace("value=1", "value=0")), case.tensors, case.machine)
    assert not list(disagreements_at_all_limits(case))


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
def test_flattened_and_split(seed: int, format: str) -> None:
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
