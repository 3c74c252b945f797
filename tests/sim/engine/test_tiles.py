"""On tiles the engine equals the reference element by element, in rings that wrap and grow."""

from __future__ import annotations

import numpy as np
import pytest
from engines import LIMITS, case_of, disagreements, disagreements_at_all_limits, runs_of
from random_graphs.case import Case
from tile_graphs import ONE, SOFTMAX, SPMM, UNION

from fuseflow.errors import SimulationError
from fuseflow.samml.text import parse
from fuseflow.samml.verify import verify
from fuseflow.sim import Machine, load_machine
from fuseflow.sim.engine.execute import execute
from fuseflow.tensors import Tensor, pack
from fuseflow.tensors.format import Format

# Y[i,j] = A[k,i] X[k,j] in order k, i, j: a workspace of two levels, the larger of products that meet in it
OUTER = """
tensor A[4, 3]  dcsr f32 tile 2x3
tensor X[4, 9]  dcsr f32 tile 1x3
tensor Y[3, 9]  dcsr f32 tile 2x1
output Y
root = root()
A_k = scan(root) A.0
X_k = scan(root) X.0
both = join(A_k.crd, A_k.ref; X_k.crd, X_k.ref) intersect
A_i = scan(both.out0) A.1
rep_i = repeat(both.out1, A_i.crd)
X_j = scan(rep_i) X.1
A_v = load(A_i.ref) A
rep_j = repeat(A_v, X_j.crd)
X_v = load(X_j.ref) X
mul = alu(rep_j, X_v) matmul_t N->0,N->0
acc = accumulate(both.crd, A_i.crd, X_j.crd, mul) max order=2
Y_i = write(acc.crd1) Y.0
Y_j = write(acc.crd2) Y.1
Y_v = write(acc.val) Y.vals
"""
# Tiles that were read or computed, some absent, in every node that moves them
MOVES = """
tensor A[4, 5]  dcsr {dtype} tile 2x3 fill -1
tensor B[4, 5]  dcsr {dtype} tile 2x3
tensor C[4, 5]  dense {dtype} tile {column}
tensor D[5]  dense {dtype} tile 2x3
tensor V[4, 5]  dcsr f32 tile 2x3
tensor W[4, 5]  dcsr i64 tile 2x3
tensor X[4, 5]  dcsr f64 tile 2x3
tensor Y[4, 5]  dcsr {dtype} tile 2x3
tensor Z[4, 5]  dcsr f32 tile 2x1
output V, W, X, Y, Z
root = root()
A_i = scan(root) A.0
B_i = scan(root) B.0
i = join(A_i.crd, A_i.ref; B_i.crd, B_i.ref) union
A_j = scan(i.out0) A.1
B_j = scan(i.out1) B.1
A_v = load(A_j.ref) A
B_v = load(B_j.ref) B
computed = alu(B_v) mul N->0,2
j = join(A_j.crd, A_v, A_j.ref; B_j.crd, computed) union
both = alu(j.out0, j.out2) add N->5,N->0.5
lanes = fork(j.out2) 3
merged = merge(lanes.lane0, lanes.lane1, lanes.lane2) levels=0
gathered = load(j.out1) A
some = drop(i.crd, j.crd, merged)
V_v = alu(some.val) copy N->0
V_i = write(some.crd0) V.0
V_j = write(some.crd1) V.1
V_v_ = write(V_v) V.vals
C_i = locate(i.crd) C.0
C_ij = repeat(C_i, j.crd)
C_j = locate(j.crd, C_ij) C.1
C_v = load(C_j) C
scaled = alu(both, C_v) sub N->0,N->0
beside = alu(C_v, scaled, gathered) where N->0,N->0,N->0
W_i = write(i.crd) W.0
W_j = write(j.crd) W.1
W_v = write(beside) W.vals
D_j = locate(j.crd) D.0
D_v = load(D_j) D
few = join(A_i.crd; B_i.crd) intersect
few_j = align(i.crd, few, j.crd)
few_v = align(i.crd, few, scaled)
few_w = align(i.crd, few, j.out2)
solid = alu(few_v, few_w) max N->0,N->-inf
total = reduce(solid) sum
rep = repeat(total, few_j)
again = alu(rep, few_w) mul N->0,N->2
X_i = write(few) X.0
X_j = write(few_j) X.1
X_v = write(again) X.vals
twice = range(j.out1) 2
late = repeat(j.out2, twice)
late_v = alu(late) add N->0.25,1
folded = reduce(late_v) prod
added = alu(folded, D_v) add N->0,N->0
Y_i = write(i.crd) Y.0
Y_j = write(j.crd) Y.1
Y_v = write(added) Y.vals
rows = alu(scaled) row_sum N->0
Z_i = write(i.crd) Z.0
Z_j = write(j.crd) Z.1
Z_v = write(rows) Z.vals
"""
# Tiles of one element, which runs repeat as they do scalars, beside wider ones
SINGLE = """
tensor A[3, 4]  dcsr f64 tile 1x1
tensor B[3]  dense f64 tile 1x4
tensor C[3]  dense f32 tile 1x1
tensor Y[3, 4]  dcsr f64 tile 1x4
tensor Z[3]  (compressed) f64 tile 1x1
output Y, Z
root = root()
A_i = scan(root) A.0
A_j = scan(A_i.ref) A.1
A_v = load(A_j.ref) A
B_i = locate(A_i.crd) B.0
B_v = load(B_i) B
C_i = locate(A_i.crd) C.0
C_v = load(C_i) C
C_j = repeat(C_v, A_j.crd)
B_j = repeat(B_v, A_j.crd)
scaled = alu(B_j, C_j) mul N->0,N->0
mul = alu(A_v, scaled) matmul N->0,N->0
dot = alu(mul, scaled) matmul_t N->0,N->0
add = alu(dot, C_j) add N->0,N->0
outer = alu(C_j, mul) matmul N->0,N->0
total = reduce(add) max
Y_i = write(A_i.crd) Y.0
Y_j = write(A_j.crd) Y.1
Y_v = write(outer) Y.vals
Z_i = write(A_i.crd) Z.0
Z_v = write(total) Z.vals
"""
GRAPHS = {
    "spmm": SPMM.format(format="csr", other="dense"),
    "spmm of single floats": SPMM.format(format="dcsr", other="csr").replace("f64", "f32"),
    "softmax": SOFTMAX,
    "union": UNION,
    "outer": OUTER,
    "moves": MOVES.format(dtype="f64", column="2x3"),
    "moves of single floats": MOVES.format(dtype="f32", column="2x1"),
    "single": SINGLE,
}


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("seed", [*range(6), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(6, 12))])
def test_like_the_reference(name: str, seed: int) -> None:
    case = case_of(GRAPHS[name], seed)
    assert not list(disagreements_at_all_limits(case))


def one(function: str, tile: tuple[int, int], values: np.ndarray) -> Case:
    """An operator on the same tiles twice, and their sum."""
    count, text = len(values), "x".join(map(str, tile))
    graph = parse("graph one\n" + ONE.format(a=text, b=text, y=text, function=function).replace("[4]", f"[{count}]"))
    verify(graph)
    tensor = Tensor((count,), Format.dense(1), pack(np.ones(count), Format.dense(1)).levels, values)
    return Case(graph, {"A": tensor, "B": tensor}, load_machine("ideal"))


def test_stored_tiles_stay_where_they_are() -> None:
    """3000 tiles are more than a ring holds."""
    case = one("add", (2, 6), np.random.default_rng(0).standard_normal((3000, 2, 6)))
    assert not list(disagreements_at_all_limits(case))
    assert max(runs_of(case, "A_v")) < 10
    assert max(runs_of(case, "y")) < 10


@pytest.mark.parametrize("function", ["add", "max", "matmul", "matmul_t", "div"])
def test_to_the_last_bit(function: str) -> None:
    """Sums keep their order, products are rounded before they are added, annihilators win."""
    rng = np.random.default_rng(1)
    values = rng.standard_normal((40, 5, 5)) * 10.0 ** rng.integers(-20, 20, (40, 5, 5))
    odd = rng.choice([0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324], (40, 5, 5))
    case = one(function, (5, 5), np.where(rng.random((40, 5, 5)) < 0.05, odd, values))
    assert not list(disagreements(case, LIMITS[0]))


def test_a_reference_outside_a_tensor_of_tiles() -> None:
    case = one("add", (2, 2), np.ones((4, 2, 2)))
    short = Tensor((4,), Format.dense(1), case.tensors["A"].levels, np.ones((3, 2, 2)))
    case = Case(case.graph, case.tensors | {"A": short}, Machine(name="m"))
    for limits in LIMITS:
        with pytest.raises(SimulationError, match=r"node `A_v` .*outside its tensor after 3 firings"):
            execute(case.graph, case.tensors, case.machine, limits=limits)
        assert not list(disagreements(case, limits)), limits
