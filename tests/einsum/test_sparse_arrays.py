"""Matrices that stay sparse have the same numbers as their dense form, in products too; packed tensors share their coordinates."""

import numpy as np
import pytest
from scipy import sparse

from fuseflow.einsum import interpret
from fuseflow.einsum.interpret import evaluate, evaluate_operands
from fuseflow.einsum.parse import parse
from fuseflow.einsum.sparse_arrays import Operand, SparseArray, TensorArray, to_operand
from fuseflow.tensors import Format, pack

DECLARED = "tensor A[5, 7] csr\ntensor B[7, 6] csr\ntensor C[6, 7] csr\ntensor D[7, 3] dense\ntensor E[2, 7, 3] dense\ntensor v[7] dense\n"


def arrays(**changed: np.ndarray) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    shapes = {"A": (5, 7), "B": (7, 6), "C": (6, 7), "D": (7, 3), "E": (2, 7, 3), "v": (7,)}
    return {name: rng.integers(-3, 4, shape) * (rng.random(shape) < 0.4) for name, shape in shapes.items()} | changed


@pytest.mark.parametrize(
    "statement",
    [
        "Y[i, j] = sum(k) A[i, k] * B[k, j]",
        "Y[j, i] = sum(k) A[i, k] * C[j, k]",
        "Y[i, j] = sum(k) A[i, k] * D[k, j]",
        "Y[b, i, j] = sum(k) E[b, k, j] * A[i, k]",
        "Y[k, j] = sum(i) A[i, k] * A[i, j]",
        "Y[i] = sum(k) A[i, k] * v[k]",
        "Y[i, k] = A[i, k] * v[k]",
        "Y[i] = max(k) A[i, k] * v[k]",
        "Y[i, k] = relu(sum(j) B[k, j] * C[j, k] - A[i, k])",
        "Y[i] = sum(k, j) A[i, k] * D[k, j]",
        "Y[i, j] = sum(k) A[i, k] * relu(D[k, j] + v[k])",
        "Y[i, j] = sum(k) relu(D[k, j]) * A[i, k]",
        "Y[i, j] = sum(k) A[i, k] * relu(B[k, j])",
        "Y[i] = sum(k) A[i, k] * 2",
    ],
)
def test_same_as_dense(statement: str) -> None:
    program = parse(DECLARED + statement + "\noutput Y\n")
    dense = arrays()
    mixed = dense | {name: sparse.csr_array(dense[name].astype(float)) for name in "ABC"}
    np.testing.assert_array_equal(evaluate(program, mixed)["Y"], evaluate(program, dense)["Y"])


@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_what_is_not_finite_is_left_to_the_operators(value: float) -> None:
    program = parse(DECLARED + "Y[i, j] = sum(k) A[i, k] * D[k, j]\noutput Y\n")
    d = np.ones((7, 3))
    d[2, 1] = value
    dense = arrays(D=d)
    mixed = dense | {"A": sparse.csr_array(dense["A"].astype(float))}
    np.testing.assert_array_equal(evaluate(program, mixed)["Y"], evaluate(program, dense)["Y"])


def test_the_dense_form_of_a_large_matrix_is_never_made() -> None:
    """It would take 8 TB."""
    n = 1_000_000
    program = parse(f"tensor A[{n}, {n}] csr\ntensor x[{n}, 1] dense\nY[i, j] = sum(k) A[i, k] * x[k, j]\noutput Y\n")
    packed = pack(sparse.eye_array(n, format="csr", dtype=np.float32), Format.parse("csr", 2))
    assert isinstance(to_operand(packed, 100), SparseArray)
    assert isinstance(to_operand(pack(np.eye(3), Format.parse("csr", 2)), 9), np.ndarray)
    x = np.arange(n)[:, None]
    np.testing.assert_array_equal(evaluate(program, {"A": to_operand(packed, 100), "x": x})["Y"], x)


def test_a_large_matrix_times_an_expression_is_never_dense() -> None:
    """As the second layer of a fused GCN has it. The dense form of the matrix would take 8 TB."""
    n = 1_000_000
    statement = "Y[i, j] = sum(k) A[i, k] * max(x[k, j] + b[j], 0)"
    program = parse(f"tensor A[{n}, {n}] csr\ntensor x[{n}, 1] dense\ntensor b[1] dense\n{statement}\noutput Y\n")
    a = SparseArray.of_scipy(sparse.eye_array(n, format="csr"))
    x = np.arange(n)[:, None] - 10.0
    computed = evaluate(program, {"A": a, "x": x, "b": np.ones(1)})["Y"]
    np.testing.assert_array_equal(computed, np.maximum(x + 1, 0))


def test_only_outputs_are_kept() -> None:
    program = parse("tensor A[2, 2] dense\nB[i, j] = A[i, j] + 1\nC[i, j] = B[i, j] * A[i, j]\nD[i, j] = 2 * B[i, j]\noutput C\n")
    results = evaluate(program, {"A": np.eye(2)}, outputs_only=True)
    assert set(results) == {"C"}
    np.testing.assert_array_equal(results["C"], evaluate(program, {"A": np.eye(2)})["C"])


STATEMENTS = [
    "Y = sum(i, k) A[i, k]",
    "Y[i] = sum(k) A[i, k]",
    "Y[k] = max(i) F[i, k]",
    "Y[k] = min(i) A[i, k]",
    "Y[i] = prod(k) F[i, k]",
    "Y[i, k] = A[i, k] * 2 + 1",
    "Y[k, i] = A[i, k]",
    "Y[i, k] = A[i, k] - F[i, k]",
    "Y[i, k] = max(A[i, k], F[i, k]) / 3",
    "Y[i, k] = A[i, k] * F[i, k] * v[k]",
    "Y[i, k] = where(A[i, k] == 0, -inf, F[i, k])",
    "Y[i, k] = where(A[i, k], F[i, k], 2)",
    "Y[i] = sum(k) exp(A[i, k]) * F[i, k]",
    "Y[i] = sum(k, j) A[i, k] * D[k, j]",
    "Y[i, j] = sum(k) A[i, k] * B[k, j]",
    "Y[i, j] = relu((sum(k) A[i, k] * D[k, j]) + D[i, j])",
    "Y[i, k] = A[i, k] / (sum(j) F[i, j])",
    "Y[i] = sum(k) A[i, k] * (max(j) F[k, j])",
    "Y[k] = v[k] + (sum(i) A[i, k])",
    "Y[i] = S[i, i] * 2",
    "Y[a, b, k] = A[a*2 + b, k] + A[a*2 + b, k]",
    "Y[a*2 + b, k] = H[a, b, k] * 2",
    "Y[i, k] = v[i] * v[k]",
]


@pytest.mark.parametrize("statement", STATEMENTS)
@pytest.mark.parametrize("largest", [1, 40, 1 << 22])
@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_sparse_is_dense(statement: str, largest: int, share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """What may stay sparse is what it would be if it were dense, with any implicit value and infinities among the values."""
    monkeypatch.setattr(interpret, "MAX_POINTS", largest)
    rng = np.random.default_rng(round(10 * share))
    declared = {"A": (6, 6, 0.0), "B": (6, 6, 0.0), "F": (6, 6, 2.0), "S": (6, 6, -np.inf), "H": (3, 2, 6, 0.0)}
    lines = [f"tensor {name}[{', '.join(map(str, shape))}] csf fill {fill}" for name, (*shape, fill) in declared.items()]
    program = parse("\n".join([*lines, "tensor D[6, 6]", "tensor v[6]", statement, "output Y", ""]))
    dense = {"D": rng.integers(-3, 4, (6, 6)).astype(float), "v": rng.integers(-3, 4, 6).astype(float)}
    mixed: dict[str, Operand] = dict(dense)
    for name, (*shape, fill) in declared.items():
        values = rng.choice([-2.0, -1.0, 0.0, 1.0, 3.0, np.inf], shape, p=[0.2, 0.2, 0.1, 0.3, 0.15, 0.05])
        dense[name] = np.where(rng.random(shape) < share, values, fill)
        points = np.argwhere(dense[name] != fill).T
        mixed[name] = SparseArray.of_points(tuple(shape), points, dense[name][tuple(points)], fill)
    expected = evaluate(program, dense)["Y"]
    result = evaluate_operands(program, mixed)["Y"]
    np.testing.assert_allclose(result.toarray() if isinstance(result, SparseArray) else result, expected, rtol=1e-12)


def test_large_results_that_store_little_stay_sparse() -> None:
    """Each would take 8 TB."""
    n = 1_000_000
    statements = (
        "s = sum(i, j) A[i, j]\nC[i, j] = 2 * A[i, j] + B[j, i]\nP[i, j] = sum(k) C[i, k] * A[j, k]\nm[i] = max(j) P[i, j]\n"
    )
    program = parse(f"tensor A[{n}, {n}] dcsr\ntensor B[{n}, {n}] dcsr\n{statements}output s, C, P, m\n")
    entries = np.arange(0, n, 20_000, dtype=np.int64)
    a = SparseArray.of_points((n, n), np.array([entries, entries]), np.ones(50))
    results = evaluate_operands(program, {"A": a, "B": a})
    assert results["s"] == 50
    for name in "CP":
        result = results[name]
        assert isinstance(result, SparseArray) and result.values.tolist() == [3.0] * 50
    np.testing.assert_array_equal(np.flatnonzero(results["m"]), entries)


FORMATS = ("csr", "dcsr", "csc", "coo", "(dense, bitmap)", "(compressed, dense)", "(bitmap, compressed)")


@pytest.mark.parametrize("format", FORMATS)
def test_the_elements_are_those_of_the_tensor(format: str) -> None:
    rng = np.random.default_rng(0)
    array = (rng.random((9, 7)) < 0.3) * rng.random((9, 7))
    array[3] = 0
    tensor = pack(array, Format.parse(format, 2))
    operand, listed = TensorArray(tensor), SparseArray.of_tensor(tensor)
    np.testing.assert_array_equal(operand.tocsr().toarray(), array)
    np.testing.assert_array_equal(operand.positions, listed.positions)
    np.testing.assert_array_equal(operand.values, listed.values)
    assert (operand.shape, operand.size, operand.fill) == (listed.shape, listed.size, listed.fill)


def test_a_matrix_stored_by_rows_shares_its_coordinates() -> None:
    tensor = pack(np.eye(5), Format.parse("dcsr", 2))
    assert np.shares_memory(TensorArray(tensor).tocsr().indices, tensor.levels[1].arrays["crd"])
