"""Products with matrices that stay sparse: the same numbers as of their dense form."""

import numpy as np
import pytest
from scipy import sparse

from fuseflow.einsum.interpret import evaluate
from fuseflow.einsum.parse import parse
from fuseflow.einsum.sparse_operands import to_operand
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
    assert isinstance(to_operand(packed, 100), sparse.csr_array)
    assert isinstance(to_operand(pack(np.eye(3), Format.parse("csr", 2)), 9), np.ndarray)
    x = np.arange(n)[:, None]
    np.testing.assert_array_equal(evaluate(program, {"A": to_operand(packed, 100), "x": x})["Y"], x)


def test_only_outputs_are_kept() -> None:
    program = parse("tensor A[2, 2] dense\nB[i, j] = A[i, j] + 1\nC[i, j] = B[i, j] * A[i, j]\nD[i, j] = 2 * B[i, j]\noutput C\n")
    results = evaluate(program, {"A": np.eye(2)}, outputs_only=True)
    assert set(results) == {"C"}
    np.testing.assert_array_equal(results["C"], evaluate(program, {"A": np.eye(2)})["C"])
