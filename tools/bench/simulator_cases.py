"""The graphs and data of the simulator's benchmark, with what they compute and how often every node fires."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from firings import ROOT, Firings, accumulate, below, each, pointwise, reduce, repeat, scan, write_level, write_values
from scipy import sparse

from fuseflow.samml.nodes import Graph
from fuseflow.samml.text import parse
from fuseflow.tensors import Tensor, from_coordinates, pack
from fuseflow.tensors.blocks import to_blocks

WIDTH = 128
DEGREE = 10
"""Stored entries in a row of a square matrix, on average."""


@dataclass(frozen=True)
class Problem:
    graph: Graph
    tensors: Mapping[str, Tensor]
    expected: Callable[[], Any]
    """The output as scipy and NumPy compute it, in 64 bits: a dense array, or a sparse one if the output is stored sparse."""
    firings: Mapping[str, Firings]
    """Of every node, in closed form."""


@dataclass(frozen=True)
class Case:
    """`rows` is the size that is measured, `small` the size at which the reference is compared (1/20, where that ends in seconds)."""

    name: str
    about: str
    build: Callable[[int], Problem]
    rows: int = 20_000
    small: int = 1_000
    depth: int | None = None
    large: bool = False


# Data


def power_law(rows: int, entries: int, seed: int, self_loops: bool = False) -> sparse.csr_array:
    """A square matrix of exactly so many entries: a graph in which the degree of node i, in and out, is proportional to i**-0.5, the nodes
    shuffled. Values are uniform in [0.5, 1.5)."""
    assert entries <= rows * rows // 2
    rng = np.random.default_rng(seed)
    weights = np.arange(1, rows + 1) ** -0.5
    cumulative = np.cumsum(weights / weights.sum())
    names = rng.permutation(rows)
    found = np.arange(rows, dtype=np.int64) * (rows + 1) if self_loops else np.zeros(0, np.int64)
    while len(found) < entries:
        ends = names[np.minimum(np.searchsorted(cumulative, rng.random((2, 2 * entries))), rows - 1)]
        new = np.setdiff1d(ends[0] * rows + ends[1], found)
        found = np.concatenate([found, rng.permutation(new)[: entries - len(found)]])
    coordinates = np.divmod(np.sort(found), rows)
    return sparse.csr_array((_values(rng, entries), coordinates), shape=(rows, rows))


def _values(rng: np.random.Generator, *shape: int) -> npt.NDArray[np.float32]:
    return rng.random(shape, dtype=np.float32) + np.float32(0.5)


def dense(rows: int, width: int, seed: int) -> npt.NDArray[np.float32]:
    return _values(np.random.default_rng(seed), rows, width)


def packed(graph: Graph, **arrays: Any) -> dict[str, Tensor]:
    return {name: pack(array, graph.declared[name].format) for name, array in arrays.items()}


def row_sizes(matrix: sparse.csr_array) -> npt.NDArray[np.integer]:
    return np.diff(matrix.indptr)


def pattern(matrix: sparse.csr_array) -> sparse.csr_array:
    return sparse.csr_array((np.ones(matrix.nnz), matrix.indices, matrix.indptr), shape=matrix.shape)


# Y[i, j] = sum(k) A[i, k] * X[k, j]


def spmm_dense(rows: int) -> Problem:
    graph = spmm_graph(rows, "dense")
    a, x = power_law(rows, DEGREE * rows, seed=1), dense(rows, WIDTH, seed=2)
    found = row_sizes(a)
    return Problem(
        graph, packed(graph, A=a, X=x), lambda: a.astype(float) @ x.astype(float),
        spmm_firings(a, np.full(a.nnz, WIDTH), np.where(found > 0, WIDTH, 0)),
    )  # fmt: skip


def spmm_sparse(rows: int) -> Problem:
    graph = spmm_graph(rows, "csr")
    a = power_law(rows, DEGREE * rows, seed=1)
    x = sparse.random_array((rows, WIDTH), density=0.01, format="csr", rng=np.random.default_rng(2), data_sampler=_sampler)
    outputs = row_sizes(sparse.csr_array(pattern(a) @ pattern(x)))
    return Problem(
        graph, packed(graph, A=a, X=x), lambda: a.astype(float) @ x.astype(float),
        spmm_firings(a, row_sizes(x)[a.indices], outputs),
    )  # fmt: skip


def _sampler(size: int) -> npt.NDArray[np.float32]:
    return _values(np.random.default_rng(3), size)


def spmm_graph(rows: int, x_format: str) -> Graph:
    """A by rows; the rows of X are located, not joined."""
    return parse(f"""
graph spmm
tensor A[{rows}, {rows}]  csr
tensor X[{rows}, {WIDTH}]  {x_format}
tensor Y[{rows}, {WIDTH}]  csr
output Y
root = root()
A_i = scan(root) A.0 sequential
A_k = scan(A_i.ref) A.1 sequential
X_k = locate(A_k.crd) X.0
X_j = scan(X_k) X.1
A_val = load(A_k.ref) A
rep_j = repeat(A_val, X_j.crd)
X_val = load(X_j.ref) X
mul = alu(rep_j, X_val) mul N->0,N->0
acc = accumulate(A_k.crd, X_j.crd, mul) sum order=1
Y_i = write(A_i.crd) Y.0
Y_j = write(acc.crd) Y.1
Y_v = write(acc.val) Y.vals
""")


def spmm_firings(a: sparse.csr_array, x_sizes: Any, outputs: Any) -> dict[str, Firings]:
    """`x_sizes`: entries of X's row for every entry of A; `outputs`: entries of every row of Y."""
    i = each(ROOT, a.shape[0])
    k = below(i, row_sizes(a))
    j = below(k, x_sizes)
    y = below(i, outputs)
    return {
        "root": pointwise(ROOT), "A_i": scan(i), "A_k": scan(k), "X_k": pointwise(k), "X_j": scan(j),
        "A_val": pointwise(k), "rep_j": repeat(j), "X_val": pointwise(j), "mul": pointwise(j),
        "acc": accumulate(j, y, k, childless=j.empty), "Y_i": write_level(i), "Y_j": write_level(y), "Y_v": write_values(y),
    }  # fmt: skip


def spmm_kij(rows: int) -> Problem:
    """The same product with k outermost: the workspace holds all of Y."""
    graph = parse(f"""
graph spmm_kij
tensor A[{rows}, {rows}]  csc
tensor X[{rows}, {WIDTH}]  dense
tensor Y[{rows}, {WIDTH}]  dcsr
output Y
root = root()
A_k = scan(root) A.0 sequential
A_i = scan(A_k.ref) A.1 sequential
X_k = locate(A_k.crd) X.0
rep_i = repeat(X_k, A_i.crd)
X_j = scan(rep_i) X.1
A_val = load(A_i.ref) A
rep_j = repeat(A_val, X_j.crd)
X_val = load(X_j.ref) X
mul = alu(rep_j, X_val) mul N->0,N->0
acc = accumulate(A_k.crd, A_i.crd, X_j.crd, mul) sum order=2
Y_i = write(acc.crd1) Y.0
Y_j = write(acc.crd2) Y.1
Y_v = write(acc.val) Y.vals
""")
    a, x = power_law(rows, DEGREE * rows, seed=1), dense(rows, WIDTH, seed=2)
    k = each(ROOT, rows)
    i = below(k, np.bincount(a.indices, minlength=rows))
    j = each(i, WIDTH)
    y_i = each(ROOT, int((row_sizes(a) > 0).sum()))
    y_j = each(y_i, WIDTH)
    firings = {
        "root": pointwise(ROOT), "A_k": scan(k), "A_i": scan(i), "X_k": pointwise(k), "rep_i": repeat(i), "X_j": scan(j),
        "A_val": pointwise(i), "rep_j": repeat(j), "X_val": pointwise(j), "mul": pointwise(j),
        "acc": accumulate(j, y_j, k, i, childless=i.empty), "Y_i": write_level(y_i), "Y_j": write_level(y_j), "Y_v": write_values(y_j),
    }  # fmt: skip
    return Problem(graph, packed(graph, A=a, X=x), lambda: a.astype(float) @ x.astype(float), firings)


def spmm_tiles(rows: int, side: int = 16) -> Problem:
    """The same product of tiles: `rows` rows of them in A, 4 columns in X."""
    columns, tile = 4, f"f32 tile {side}x{side}"
    graph = parse(f"""
graph spmm_tiles
tensor A[{rows}, {rows}]  csr {tile}
tensor X[{rows}, {columns}]  dense {tile}
tensor Y[{rows}, {columns}]  csr {tile}
output Y
root = root()
A_i = scan(root) A.0 sequential
A_k = scan(A_i.ref) A.1 sequential
X_k = locate(A_k.crd) X.0
X_j = scan(X_k) X.1
A_val = load(A_k.ref) A
rep_j = repeat(A_val, X_j.crd)
X_val = load(X_j.ref) X
mul = alu(rep_j, X_val) matmul N->0,N->0
acc = accumulate(A_k.crd, X_j.crd, mul) sum order=1
Y_i = write(A_i.crd) Y.0
Y_j = write(acc.crd) Y.1
Y_v = write(acc.val) Y.vals
""")
    a, rng = power_law(rows, DEGREE * rows, seed=1), np.random.default_rng(2)
    tiles, x = _values(rng, a.nnz, side, side), dense(rows * side, columns * side, seed=3)
    row_of = np.repeat(np.arange(rows), row_sizes(a))
    tensors = {
        "A": from_coordinates(a.shape, np.array([row_of, a.indices], np.int64), tiles, graph.declared["A"].format),
        "X": to_blocks(pack(x, graph.declared["X"].format), (side, side)),
    }

    def expected() -> npt.NDArray[np.float64]:
        whole = sparse.bsr_array((tiles.astype(float), a.indices, a.indptr), shape=(rows * side, rows * side)) @ x.astype(float)
        return np.asarray(whole).reshape(rows, side, columns, side).transpose(0, 2, 1, 3)

    outputs = np.where(row_sizes(a) > 0, columns, 0)
    return Problem(graph, tensors, expected, spmm_firings(a, np.full(a.nnz, columns), outputs))


# Y[i, j] = A[i, j] * (sum(k) B[i, k] * C[j, k])


def sddmm(rows: int) -> Problem:
    graph = parse(f"""
graph sddmm
tensor A[{rows}, {rows}]  csr
tensor B[{rows}, {WIDTH}]  dense
tensor C[{rows}, {WIDTH}]  dense
tensor Y[{rows}, {rows}]  csr
output Y
root = root()
A_i = scan(root) A.0 sequential
A_j = scan(A_i.ref) A.1 sequential
B_i = locate(A_i.crd) B.0
rep_i = repeat(B_i, A_j.crd)
B_k = scan(rep_i) B.1
C_j = locate(A_j.crd) C.0
rep_k = repeat(C_j, B_k.crd)
C_k = locate(B_k.crd, rep_k) C.1
B_val = load(B_k.ref) B
C_val = load(C_k) C
mul = alu(B_val, C_val) mul N->0,N->0
dot = reduce(mul) sum
A_val = load(A_j.ref) A
out = alu(A_val, dot) mul N->0,N->0
Y_i = write(A_i.crd) Y.0
Y_j = write(A_j.crd) Y.1
Y_v = write(out) Y.vals
""")
    a, b, c = power_law(rows, DEGREE * rows, seed=1), dense(rows, WIDTH, seed=2), dense(rows, WIDTH, seed=3)
    i = each(ROOT, rows)
    j = below(i, row_sizes(a))
    k = each(j, WIDTH)
    firings = {
        "root": pointwise(ROOT), "A_i": scan(i), "A_j": scan(j), "B_i": pointwise(i), "rep_i": repeat(j), "B_k": scan(k),
        "C_j": pointwise(j), "rep_k": repeat(k), "C_k": pointwise(k), "B_val": pointwise(k), "C_val": pointwise(k),
        "mul": pointwise(k), "dot": reduce(k, j), "A_val": pointwise(j), "out": pointwise(j),
        "Y_i": write_level(i), "Y_j": write_level(j), "Y_v": write_values(j),
    }  # fmt: skip

    def expected() -> sparse.csr_array:
        of = np.repeat(np.arange(rows), row_sizes(a))
        dots = np.einsum("nk,nk->n", b[of].astype(float), c[a.indices].astype(float))
        return sparse.csr_array((a.data * dots, a.indices, a.indptr), shape=a.shape)

    return Problem(graph, packed(graph, A=a, B=b, C=c), expected, firings)


# Y[i, j] = A[i, j] + B[i, j]


def union(rows: int) -> Problem:
    graph = parse(f"""
graph union
tensor A[{rows}, {rows}]  csr
tensor B[{rows}, {rows}]  csr
tensor Y[{rows}, {rows}]  csr
output Y
root = root()
A_i = scan(root) A.0 sequential
B_i = locate(A_i.crd) B.0
A_j = scan(A_i.ref) A.1 sequential
B_j = scan(B_i) B.1
j = join(A_j.crd, A_j.ref; B_j.crd, B_j.ref) union
A_val = load(j.out0) A
B_val = load(j.out1) B
add = alu(A_val, B_val) add N->0,N->0
Y_i = write(A_i.crd) Y.0
Y_j = write(j.crd) Y.1
Y_v = write(add) Y.vals
""")
    a, b = power_law(rows, DEGREE * rows, seed=1), power_law(rows, DEGREE * rows, seed=2)
    i = each(ROOT, rows)
    a_j, b_j = below(i, row_sizes(a)), below(i, row_sizes(b))
    j = below(i, row_sizes(sparse.csr_array(pattern(a) + pattern(b))))
    firings = {
        "root": pointwise(ROOT), "A_i": scan(i), "B_i": pointwise(i), "A_j": scan(a_j), "B_j": scan(b_j), "j": pointwise(j),
        "A_val": pointwise(j), "B_val": pointwise(j), "add": pointwise(j),
        "Y_i": write_level(i), "Y_j": write_level(j), "Y_v": write_values(j),
    }  # fmt: skip
    return Problem(graph, packed(graph, A=a, B=b), lambda: a.astype(float) + b.astype(float), firings)


# Y[i, l] = sum(j) (sum(k) A[i, k] * X[k, j]) * W[j, l]


def gcn(rows: int, out: int = WIDTH) -> Problem:
    """A layer of a graph convolution: every row of A X is accumulated, multiplied with W of `out` columns, and accumulated again."""
    graph = parse(f"""
graph gcn
tensor A[{rows}, {rows}]  csr
tensor X[{rows}, {WIDTH}]  dense
tensor W[{WIDTH}, {out}]  dense
tensor Y[{rows}, {out}]  dense
output Y
root = root()
A_i = scan(root) A.0 sequential
A_k = scan(A_i.ref) A.1 sequential
X_k = locate(A_k.crd) X.0
X_j = scan(X_k) X.1
A_val = load(A_k.ref) A
rep_j = repeat(A_val, X_j.crd)
X_val = load(X_j.ref) X
mul = alu(rep_j, X_val) mul N->0,N->0
T = accumulate(A_k.crd, X_j.crd, mul) sum order=1
W_j = locate(T.crd) W.0
W_l = scan(W_j) W.1
W_val = load(W_l.ref) W
rep_l = repeat(T.val, W_l.crd)
mul2 = alu(rep_l, W_val) mul N->0,N->0
acc = accumulate(T.crd, W_l.crd, mul2) sum order=1
Y_i = write(A_i.crd) Y.0
Y_l = write(acc.crd) Y.1
Y_v = write(acc.val) Y.vals
""")
    a = power_law(rows, DEGREE * rows + rows // 128, seed=1, self_loops=True)
    x, w = dense(rows, WIDTH, seed=2), dense(WIDTH, out, seed=3)
    i = each(ROOT, rows)
    k = below(i, row_sizes(a))
    j, t = each(k, WIDTH), each(i, WIDTH)
    l, y = each(t, out), each(i, out)
    firings = {
        "root": pointwise(ROOT), "A_i": scan(i), "A_k": scan(k), "X_k": pointwise(k), "X_j": scan(j),
        "A_val": pointwise(k), "rep_j": repeat(j), "X_val": pointwise(j), "mul": pointwise(j), "T": accumulate(j, t, k),
        "W_j": pointwise(t), "W_l": scan(l), "W_val": pointwise(l), "rep_l": repeat(l), "mul2": pointwise(l),
        "acc": accumulate(l, y, t), "Y_i": write_level(i), "Y_l": write_level(y), "Y_v": write_values(y),
    }  # fmt: skip
    return Problem(graph, packed(graph, A=a, X=x, W=w), lambda: (a.astype(float) @ x.astype(float)) @ w.astype(float), firings)


SPMM = "SpMM, loops i k j: A 20,000 x 20,000 with 200,000 entries (power-law graph), X dense 20,000 x 128"
CASES = (
    Case("spmm_dense", SPMM, spmm_dense),
    Case("spmm_dense_depth64", "the same, FIFOs of 64 tokens", spmm_dense, depth=64),
    Case("spmm_dense_depth16", "5,000 rows, FIFOs of 16 tokens", spmm_dense, rows=5_000, small=250, depth=16),
    Case("spmm_dense_depth4", "5,000 rows, FIFOs of 4 tokens", spmm_dense, rows=5_000, small=250, depth=4),
    Case("spmm_sparse", "X with 1 % of its entries stored: fibers of 1.3", spmm_sparse),
    Case("spmm_kij", "loops k i j: an accumulate of order 2 holds all of Y", spmm_kij),
    Case("sddmm", "A (as above) times the dot products of rows of two dense 20,000 x 128", sddmm),
    Case("tiles_16", "SpMM of tiles of 16 x 16: 2,000 rows of 10 tiles, X with 4 columns of them", spmm_tiles, rows=2_000, small=100),
    Case("tiles_32", "of 32 x 32: 500 rows", partial(spmm_tiles, side=32), rows=500, small=25),
    Case("tiles_64", "of 64 x 64: 125 rows", partial(spmm_tiles, side=64), rows=125, small=25),
    Case("union", "the sum of two sparse 20,000 x 20,000 with 200,000 entries each", union),
    Case(
        "gcn_collab", "fused layer (A X) W of a graph convolution: 235,868 nodes, 2,360,522 edges (power-law graph), 128 -> 128",
        gcn, rows=235_868, small=235, large=True,
    ),
    Case("gcn_collab_16", "the same, 128 -> 16", partial(gcn, out=16), rows=235_868, small=235, large=True),
)  # fmt: skip
