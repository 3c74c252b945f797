"""Kernels in every order and format, against NumPy."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest

from fuseflow.compiler import compile
from fuseflow.einsum.parse import parse
from fuseflow.errors import FusionError
from fuseflow.schedule import Schedule

MATMUL = parse("tensor A[4, 5] f64\ntensor X[5, 3] f64\nY[i, j] = sum(k) A[i, k] * X[k, j]\noutput Y")
ORDERS = ["".join(p) for p in permutations("ijk")]
FORMATS = ["csr", "csc", "coo", "dense", "dcsr", "(compressed(nonunique), singleton) order (1, 0)"]

LEGAL = {  # which index a stored matrix wants first; None: located in any order
    "A": {"csr": "ik", "csc": "ki", "coo": "ik", "dcsr": "ik", FORMATS[-1]: "ki"},
    "X": {"csr": "kj", "csc": "jk", "coo": "kj", "dcsr": "kj", FORMATS[-1]: "jk"},
}


def legal(order: str, a: str, x: str) -> bool:
    wanted = [LEGAL["A"].get(a), LEGAL["X"].get(x)]
    return all(w is None or order.index(w[0]) < order.index(w[1]) for w in wanted)


def matrix(rng: np.random.Generator, shape: tuple[int, int], density: float) -> np.ndarray:
    values = np.where(rng.random(shape) < density, rng.integers(1, 9, shape), 0).astype(np.float64)
    values[rng.integers(shape[0])] = 0
    return values


@pytest.mark.parametrize(("a", "x"), list(product(FORMATS, FORMATS)))
def test_matmul_in_all_six_orders(a, x):
    rng = np.random.default_rng(FORMATS.index(a) * 8 + FORMATS.index(x))
    left, right = matrix(rng, (4, 5), 0.5), matrix(rng, (5, 3), 0.6)
    for order in ORDERS:
        schedule = Schedule.format("A", a).format("X", x).order("Y", list(order))
        if not legal(order, a, x):
            with pytest.raises(FusionError, match="legal orders: "):
                compile(MATMUL, tensors={"A": left, "X": right}, schedule=schedule.lower(copies=False))
        compiled = compile(MATMUL, tensors={"A": left, "X": right}, schedule=schedule)
        assert bool(compiled.regions[-1].fused.copies) != legal(order, a, x)
        assert compiled.regions[-1].fused.order == tuple(order)
        result = compiled.run()
        np.testing.assert_array_equal(result.tensors["Y"].to_dense(), left @ right)
        assert result.check is not None and result.check.passed


SDDMM = """
tensor M[{n}, {m}] csr f64
tensor Q[{n}, {d}] f64
tensor K[{m}, {d}] f64
D[i, j] = sum(k) Q[i, k] * K[j, k]
Y[i, j] = M[i, j] * D[i, j]
output Y
"""


@pytest.mark.parametrize("fuse", ["none", "full"])
@pytest.mark.parametrize(("n", "m", "d"), [(6, 5, 3), (1, 1, 1), (0, 0, 2), (3, 4, 0), (0, 0, 0)])
def test_csr_masked_sddmm(n, m, d, fuse):
    """Empty rows, rows of one entry, no rows at all, no inner dimension."""
    rng = np.random.default_rng(n + 10 * m)
    mask = np.zeros((n, m))
    if n and m:
        mask[0, 0] = 1
    if n > 4:
        mask[2], mask[4, 1] = 1, 1  # rows 1, 3 and 5 are empty, rows 0 and 4 have one entry
    q, k = rng.integers(-3, 4, (n, d)).astype(float), rng.integers(-3, 4, (m, d)).astype(float)
    compiled = compile(parse(SDDMM.format(n=n, m=m, d=d)), tensors={"M": mask, "Q": q, "K": k}, schedule=Schedule.fuse(fuse))
    result = compiled.run()
    np.testing.assert_array_equal(result.tensors["Y"].to_dense(), mask * (q @ k.T))
    if fuse == "full":
        assert result.flops <= np.count_nonzero(mask) * (2 * d + 1)  # only sampled products are computed


def test_a_result_can_be_stored_in_a_chosen_mode_order():
    rng = np.random.default_rng(3)
    left, right = matrix(rng, (4, 5), 0.5), matrix(rng, (5, 3), 0.6)
    compiled = compile(MATMUL, tensors={"A": left, "X": right}, schedule=Schedule.format("Y", "csc"))
    assert compiled.regions[0].fused.order.index("j") < compiled.regions[0].fused.order.index("i")
    result = compiled.run()
    assert result.tensors["Y"].format.short() == "csc" and result.tensors["Y"].dtype == np.float64
    np.testing.assert_array_equal(result.outputs["Y"].toarray(), left @ right)


def test_an_intermediate_keeps_the_mode_order_that_its_reader_needs():
    """T could be written column by column more cheaply, but its reader scans it row by row."""
    text = """
    tensor A[6, 6] csf f64
    tensor B[6, 6] csf f64
    tensor C[6, 6] csf f64
    T[i, j] = A[i, j] * B[i, j]
    Y[i, j] = sum(k) T[i, k] * C[k, j]
    output Y
    """
    rng = np.random.default_rng(5)
    arrays = {name: matrix(rng, (6, 6), 0.5) for name in "ABC"}
    result = compile(parse(text), tensors=arrays, schedule=Schedule.fuse("none")).run()
    np.testing.assert_array_equal(result.tensors["Y"].to_dense(), (arrays["A"] * arrays["B"]) @ arrays["C"])


def test_the_hint_of_an_order_cycle_works():
    program = parse("tensor A[3, 3] csr f64\nY[i, j] = A[i, j] + A[j, i]\noutput Y")
    a = np.arange(9.0).reshape(3, 3)
    with pytest.raises(FusionError, match="--format A=dense"):
        compile(program, tensors={"A": a}, schedule=Schedule().lower(copies=False))
    result = compile(program, tensors={"A": a}, schedule=Schedule.format("A", "dense")).run()
    np.testing.assert_array_equal(result.tensors["Y"].to_dense(), a + a.T)


ATTENTION = """
tensor M[24, 24] csr f64
tensor Q[24, 8] dense f64
tensor K[24, 8] dense f64
tensor V[24, 8] dense f64
S[i, j] = sum(k) Q[i, k] * K[j, k]
P[i, j] = where(M[i, j] == 0, -inf, S[i, j] / 8)
m[i] = max(j) P[i, j]
E[i, j] = exp(P[i, j] - m[i])
D[i] = sum(j) E[i, j]
W[i, j] = E[i, j] / D[i]
O[i, l] = sum(j) W[i, j] * V[j, l]
output O
"""


def test_fused_attention_computes_no_score_that_the_mask_hides():
    """The mask is joined before the loop of the inner product: 8 products a stored entry, for the scores and for the values."""
    rng = np.random.default_rng(0)
    mask = rng.random((24, 24)) < 0.2
    mask[:, 0] = True
    tensors = {"M": mask.astype(np.float64), **{name: rng.random((24, 8)) for name in "QKV"}}
    fused = compile(parse(ATTENTION), tensors=tensors).run()
    alone = compile(parse(ATTENTION), tensors=tensors, schedule=Schedule.fuse("none")).run()
    assert fused.check is not None and fused.check.passed and alone.check is not None and alone.check.passed
    products = [sum(r.simulation.operators.get("mul", 0) for r in result.regions) for result in (fused, alone)]
    assert products == [2 * 8 * mask.sum(), 8 * (24 * 24 + mask.sum())]
