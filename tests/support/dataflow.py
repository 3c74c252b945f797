"""Graphs by hand for the simulator, with random tensors and machines to run them on."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np

from fuseflow.machine.machine import UnitCycles, UnitIntervals
from fuseflow.samml.nodes import Graph
from fuseflow.samml.text import parse
from fuseflow.sim import Machine, Simulation
from fuseflow.tensors import DTYPES, Tensor, from_coordinates

TEXTS = {
    # Y[i,j] = A[k,i] * X[k,j] in order k, i, j: a workspace of two levels
    "outer_product": """
tensor A[4, 3]  dcsr f64
tensor X[4, 5]  dcsr f64
tensor Y[3, 5]  dcsr f64
output Y
root = root()
A_k = scan(root) A.0
X_k = scan(root) X.0
both = join(A_k.crd, A_k.ref; X_k.crd, X_k.ref) intersect
A_i = scan(both.out0) A.1
rep_i = repeat(both.out1, A_i.crd)
X_j = scan(rep_i) X.1
A_val = load(A_i.ref) A
rep_j = repeat(A_val, X_j.crd)
X_val = load(X_j.ref) X
mul = alu(rep_j, X_val) mul N->0,N->0
acc = accumulate(both.crd, A_i.crd, X_j.crd, mul) sum order=2
Y_i = write(acc.crd1) Y.0
Y_j = write(acc.crd2) Y.1
Y_v = write(acc.val) Y.vals
""",
    # Y[i,j] = (A * X)[i,j] without the rows in which no product is stored; Z[i,j] = A[i,j] + X[i,j] without zeros
    "pruned": """
tensor A[4, 5]  dcsr f64
tensor X[4, 5]  dcsr f64
tensor Y[4, 5]  dcsr f64
tensor Z[4, 5]  dcsr f64
output Y, Z
root = root()
A_i = scan(root) A.0
X_i = scan(root) X.0
i = join(A_i.crd, A_i.ref; X_i.crd, X_i.ref) union
A_j = scan(i.out0) A.1
X_j = scan(i.out1) X.1
A_v = load(A_j.ref) A
X_v = load(X_j.ref) X
j = join(A_j.crd, A_v; X_j.crd, X_v) intersect
u = join(A_j.crd, A_v; X_j.crd, X_v) union
mul = alu(j.out0, j.out1) mul N->0,N->0
add = alu(u.out0, u.out1) add N->0,N->0
few = drop(i.crd, j.crd, mul)
some = drop(i.crd, u.crd, add) value=0
Y_i = write(few.crd0) Y.0
Y_j = write(few.crd1) Y.1
Y_v = write(few.val) Y.vals
Z_i = write(some.crd0) Z.0
Z_j = write(some.crd1) Z.1
Z_v = write(some.val) Z.vals
""",
    # the stored coordinates of A as a vector, and those as a matrix of another width, with values of W and V there
    "reshaped": """
tensor A[4, 6]  dcsr f64
tensor W[24]  dense f64
tensor V[8, 3]  dense f64
tensor Y[24]  (compressed) f64
tensor Z[8, 3]  dcsr f64
output Y, Z
root = root()
A_i = scan(root) A.0
A_j = scan(A_i.ref) A.1
flat = flatten(A_i.crd, A_j.crd) 6
wide = split(flat) 3
W_i = locate(flat) W.0
W_v = load(W_i) W
V_i = locate(wide.outer) V.0
rep = repeat(V_i, wide.inner)
V_j = locate(wide.inner, rep) V.1
V_v = load(V_j) V
Y_i = write(flat) Y.0
Y_v = write(W_v) Y.vals
Z_i = write(wide.outer) Z.0
Z_j = write(wide.inner) Z.1
Z_v = write(V_v) Z.vals
""",
    # y[i,j] = A[i,j] / sum A[i,j]: the division holds a row until its sum is known
    "normalized": """
tensor A[3, 9]  csr f64
tensor Y[3, 9]  csr f64
output Y
root = root()
A_i = scan(root) A.0
A_j = scan(A_i.ref) A.1
A_v = load(A_j.ref) A
total = reduce(A_v) sum
rep = repeat(total, A_j.crd)
div = alu(A_v, rep) div N->0,N->0
Y_i = write(A_i.crd) Y.0
Y_j = write(A_j.crd) Y.1
Y_v = write(div) Y.vals
""",
    # Y[i,j] = sum_k A[k,i] * X[k,j] + B[i,j] in order i, k, j for A stored i, k: accumulated, then joined at the outer level
    "aligned": """
tensor A[4, 3]  dcsr f64
tensor X[3, 5]  csr f64
tensor B[4, 5]  dcsr f64
tensor Y[4, 5]  dcsr f64
output Y
root = root()
A_i = scan(root) A.0
A_k = scan(A_i.ref) A.1
A_v = load(A_k.ref) A
X_k = locate(A_k.crd) X.0
X_j = scan(X_k) X.1
X_v = load(X_j.ref) X
rep = repeat(A_v, X_j.crd)
mul = alu(rep, X_v) mul N->0,N->0
acc = accumulate(A_k.crd, X_j.crd, mul) sum order=1
B_i = scan(root) B.0
i = join(A_i.crd; B_i.crd, B_i.ref) union
crd = align(A_i.crd, i.crd, acc.crd)
val = align(A_i.crd, i.crd, acc.val)
B_j = scan(i.out0) B.1
j = join(crd, val; B_j.crd, B_j.ref) union
B_v = load(j.out1) B
add = alu(j.out0, B_v) add N->0,N->0
Y_i = write(i.crd) Y.0
Y_j = write(j.crd) Y.1
Y_v = write(add) Y.vals
""",
    # Y[i,k] = A[i,k] * x[k], z[i] = sum_k Y[i,k], rows dealt to three lanes
    "lanes": """
tensor A[7, 5]  csr f64
tensor x[5]  dense f64
tensor Y[7, 5]  csr f64
tensor z[7]  dense f64
output Y, z
root = root()
A_i = scan(root) A.0
row = fork(A_i.ref) 3
k0 = scan(row.lane0) A.1
k1 = scan(row.lane1) A.1
k2 = scan(row.lane2) A.1
a0 = load(k0.ref) A
a1 = load(k1.ref) A
a2 = load(k2.ref) A
at0 = locate(k0.crd) x.0
at1 = locate(k1.crd) x.0
at2 = locate(k2.crd) x.0
x0 = load(at0) x
x1 = load(at1) x
x2 = load(at2) x
mul0 = alu(a0, x0) mul N->0,N->0
mul1 = alu(a1, x1) mul N->0,N->0
mul2 = alu(a2, x2) mul N->0,N->0
sum0 = reduce(mul0) sum
sum1 = reduce(mul1) sum
sum2 = reduce(mul2) sum
crd = merge(k0.crd, k1.crd, k2.crd) levels=1
val = merge(mul0, mul1, mul2) levels=1
sum = merge(sum0, sum1, sum2) levels=0
Y_i = write(A_i.crd) Y.0
Y_k = write(crd) Y.1
Y_v = write(val) Y.vals
z_i = write(A_i.crd) z.0
z_v = write(sum) z.vals
""",
    # A twice: its matrices dealt to two lanes, and its rows to three of their own, in turn from matrix to matrix
    "deep_lanes": """
tensor A[4, 3, 5]  (dense, compressed, compressed) f64
tensor Y[4, 3, 5]  (dense, compressed, compressed) f64
tensor Z[4, 3, 5]  (dense, compressed, compressed) f64
output Y, Z
root = root()
A_i = scan(root) A.0
i = fork(A_i.ref) 2
j0 = scan(i.lane0) A.1
j1 = scan(i.lane1) A.1
k0 = scan(j0.ref) A.2
k1 = scan(j1.ref) A.2
v0 = load(k0.ref) A
v1 = load(k1.ref) A
crd_j = merge(j0.crd, j1.crd) levels=1
crd_k = merge(k0.crd, k1.crd) levels=2
val = merge(v0, v1) levels=2
A_j = scan(A_i.ref) A.1
j = fork(A_j.ref) 3
l0 = scan(j.lane0) A.2
l1 = scan(j.lane1) A.2
l2 = scan(j.lane2) A.2
w0 = load(l0.ref) A
w1 = load(l1.ref) A
w2 = load(l2.ref) A
crd_l = merge(l0.crd, l1.crd, l2.crd) levels=1
wal = merge(w0, w1, w2) levels=1
Y_i = write(A_i.crd) Y.0
Y_j = write(crd_j) Y.1
Y_k = write(crd_k) Y.2
Y_v = write(val) Y.vals
Z_i = write(A_i.crd) Z.0
Z_j = write(A_j.crd) Z.1
Z_k = write(crd_l) Z.2
Z_v = write(wal) Z.vals
""",
    # a block product, joined to blocks of another tensor, and what else there is on tiles, in two lanes at its end
    "tiles": """tensor A[3, 4]  csr tile 2x3
tensor X[4, 2]  dense f64 tile 3x2
tensor B[3, 2]  dcsr f64 tile 2x2 fill -1.5
tensor Y[3, 2]  csr f64 tile 2x2
tensor m[3]  dense f64 tile 2x1
output Y, m
root = root()
A_i = scan(root) A.0
A_k = scan(A_i.ref) A.1
A_v = load(A_k.ref) A
X_k = locate(A_k.crd) X.0
X_j = scan(X_k) X.1
X_v = load(X_j.ref) X
rep = repeat(A_v, X_j.crd)
mul = alu(rep, X_v) matmul N->0,N->0
acc = accumulate(A_k.crd, X_j.crd, mul) sum order=1
B_i = scan(root) B.0
i = join(A_i.crd; B_i.crd, B_i.ref) left
B_j = scan(i.out0) B.1
B_v = load(B_j.ref) B
j = join(acc.crd, acc.val; B_j.crd, B_v) union
add = alu(j.out0, j.out1) add N->0,N->-1.5
all = alu(add) row_max N->0
deep = reduce(all) max
shift = repeat(deep, j.crd)
exp = alu(add, shift) sub N->0,N->0
half = alu(exp) mul N->0,0.5
gram = alu(half, add) matmul_t N->0,N->0
few = drop(j.crd, gram)
dealt = fork(gram) 2
low = alu(dealt.lane0) neg N->0
high = alu(dealt.lane1) neg N->0
back = merge(low, high) levels=0
write_i = write(A_i.crd) Y.0
write_j = write(j.crd) Y.1
write_val = write(back) Y.vals
write_i'2 = write(A_i.crd) m.0
write_val'2 = write(deep) m.vals
""",
}


def graph(name: str) -> Graph:
    return parse(f"graph {name}\n{TEXTS[name]}")


def inputs(graph: Graph, rng: np.random.Generator, density: float = 0.5) -> dict[str, Tensor]:
    """Random tensors for a graph: small integers, some rows empty."""
    found = {}
    for decl in graph.tensors:
        if decl.name not in graph.outputs:
            stored = rng.random(decl.shape) < density
            if len(decl.shape) > 1:
                stored[rng.random(decl.shape[0]) < 0.3] = False
            values = rng.integers(-2, 5, decl.shape + decl.tile).astype(DTYPES[decl.dtype].holder)
            where = np.array(np.nonzero(stored))
            found[decl.name] = from_coordinates(decl.shape, where, values[stored], decl.format, decl.fill)
    return found


def random_machine(rng: random.Random, depths: tuple[int | None, ...] = (None, None, 1, 2, 3, 5)) -> Machine:
    def units(most: int) -> UnitCycles:
        return UnitCycles(**{name: rng.randint(1, most) for name in UnitCycles.model_fields})

    machine = Machine(
        name="random",
        latency=units(4),
        interval=units(rng.choice([1, 1, 3])),
        fifo_depth=rng.choice(depths),
        tile_macs=rng.choice([1, 4, 256]),
    )
    own = random.Random(repr(machine.settings))  # so that a seed draws the same graph as before there were these keys
    fold = {"fold": own.randint(1, 6)} if own.random() < 0.5 else {}
    interval = UnitIntervals(**machine.interval.model_dump(exclude_none=True), **fold)
    return machine.model_copy(update={"interval": interval, "handover_depth": own.choice((None, None, 1, 2, 3, 14))})


def same_streams(found: Simulation, expected: Simulation) -> None:
    """All recorded tokens and their times are equal; tiles element by element."""
    assert found.streams.keys() == expected.streams.keys()
    for port, stream in expected.streams.items():
        assert found.streams[port].visible == stream.visible, port
        np.testing.assert_equal(found.streams[port].tokens, stream.tokens, str(port))


def with_depths(graph: Graph, rng: random.Random) -> Graph:
    """Single FIFOs with depths of their own."""
    edges = [edge for readers in graph.readers().values() for edge in readers]
    return replace(graph, depths=tuple((edge, rng.choice([1, 2, 3, 7])) for edge in edges if rng.random() < 0.15))
