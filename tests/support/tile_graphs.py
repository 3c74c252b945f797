"""Graphs by hand whose values are tiles, and tensors for them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fuseflow.tensors import Tensor, from_coordinates
from fuseflow.tensors.format import Format

# Y = A X, the tiles of A being 2 x 3 and those of X 3 x 4
SPMM = """
tensor A[4, 5]  {format} f64 tile 2x3
tensor X[5, 3]  {other} f64 tile 3x4
tensor Y[4, 3]  dcsr f64 tile 2x4
output Y
root = root()
A_i = scan(root) A.0
A_k = scan(A_i.ref) A.1
rep_i = repeat(root, A_i.crd)
X_k = scan(rep_i) X.0
k = join(A_k.crd, A_k.ref; X_k.crd, X_k.ref) intersect
X_j = scan(k.out1) X.1
A_v = load(k.out0) A
rep_j = repeat(A_v, X_j.crd)
X_v = load(X_j.ref) X
mul = alu(rep_j, X_v) matmul N->0,N->0
acc = accumulate(k.crd, X_j.crd, mul) sum order=1
Y_i = write(A_i.crd) Y.0
Y_j = write(acc.crd) Y.1
Y_v = write(acc.val) Y.vals
"""

# softmax(mask(Q K^T)) by rows, where M is stored
SOFTMAX = """
tensor Q[3, 1]  dense f64 tile 2x5
tensor K[4, 1]  dense f64 tile 3x5
tensor M[3, 4]  dcsr f64 tile 2x3
tensor Y[3, 4]  dcsr f64 tile 2x3
output Y
root = root()
M_i = scan(root) M.0
M_j = scan(M_i.ref) M.1
Q_i = locate(M_i.crd) Q.0
Q_k = repeat(Q_i, M_j.crd)
K_j = locate(M_j.crd) K.0
Q_d = scan(Q_k) Q.1
K_d = scan(K_j) K.1
Q_v = load(Q_d.ref) Q
K_v = load(K_d.ref) K
dot = alu(Q_v, K_v) matmul_t N->0,N->0
score = reduce(dot) sum
M_v = load(M_j.ref) M
mask = alu(M_v, score) where N->0,N->0,-inf
top = alu(mask) row_max N->-inf
most = reduce(top) max
rep_m = repeat(most, M_j.crd)
shifted = alu(mask, rep_m) sub N->0,N->0
exp = alu(shifted) exp N->-inf
part = alu(exp) row_sum N->0
total = reduce(part) sum
rep_t = repeat(total, M_j.crd)
div = alu(exp, rep_t) div N->0,N->0
Y_i = write(M_i.crd) Y.0
Y_j = write(M_j.crd) Y.1
Y_v = write(div) Y.vals
"""

# A + B where either is stored: an absent tile at the references of one side, at the values of the other
UNION = """
tensor A[2, 3]  dcsr f64 tile 2x2 fill -1.5
tensor B[2, 3]  dcsr f64 tile 2x2
tensor Y[2, 3]  dcsr f64 tile 2x2
output Y
root = root()
A_i = scan(root) A.0
B_i = scan(root) B.0
i = join(A_i.crd, A_i.ref; B_i.crd, B_i.ref) union
A_j = scan(i.out0) A.1
B_j = scan(i.out1) B.1
j = join(A_j.crd, A_j.ref; B_j.crd, B_j.ref) union
A_v = load(j.out0) A
late = load(B_j.ref) B
late_j = join(A_j.crd; B_j.crd, late) union
add = alu(A_v, late_j.out0) add N->0,N->7
Y_i = write(i.crd) Y.0
Y_j = write(j.crd) Y.1
Y_v = write(add) Y.vals
"""

# one operator on stored tiles, and their sum
ONE = """
tensor A[4]  dense f64 tile {a}
tensor B[4]  dense f64 tile {b}
tensor s[]  dense f64 tile {y}
output s
root = root()
i = scan(root) A.0
A_v = load(i.ref) A
at = locate(i.crd) B.0
B_v = load(at) B
y = alu(A_v, B_v) {function} N->0,N->0
total = reduce(y) sum
w = write(total) s.vals
"""


def blocked(array: npt.NDArray[np.float64], tile: tuple[int, int], format: str, fill: float = 0.0) -> Tensor:
    """A matrix in tiles, of which those that are not all `fill` are stored, or all of them if the format is dense."""
    rows, columns = array.shape[0] // tile[0], array.shape[1] // tile[1]
    tiles = array.reshape(rows, tile[0], columns, tile[1]).transpose(0, 2, 1, 3)
    layout = Format.parse(format, 2)
    stored = np.ones((rows, columns), bool) if layout.all_dense else (tiles != fill).any(axis=(2, 3))
    return from_coordinates((rows, columns), np.array(np.nonzero(stored)), tiles[stored], layout, fill)


def sparse(rng: np.random.Generator, shape: tuple[int, int], tile: tuple[int, int], density: float) -> npt.NDArray[np.float64]:
    """Small integers in whole tiles, the others 0."""
    kept = rng.random((shape[0] // tile[0], shape[1] // tile[1])) < density
    return rng.integers(-4, 5, shape) * np.kron(kept, np.ones(tile)) * 1.0
