"""The variances of rounding errors against errors that are made: programs evaluated in 32 bits, beside 64 bits."""

from __future__ import annotations

import numpy as np
import pytest

from fuseflow.einsum.interpret import evaluate
from fuseflow.einsum.parse import parse
from fuseflow.einsum.rounding import rounding_variances

ROWS, COLUMNS = 60, 50
UNIT = float(np.finfo(np.float32).eps) / 2


def folded(terms: np.ndarray) -> np.ndarray:
    """The sums of rows, one term after the other in 32 bits, as an accumulator takes them."""
    return np.cumsum(terms, axis=1, dtype=np.float32)[:, -1]


def product(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    return folded(a * x)


PROGRAMS = {
    "a sum that cancels": ("Y[i] = sum(j) A[i, j] * X[j]", product),
    "a product of what cancels": (
        "T[i] = sum(j) A[i, j] * X[j]\nY[i] = T[i] * T[i]",
        lambda a, x: product(a, x) * product(a, x),
    ),
    "a quotient of what cancels": (
        "T[i] = sum(j) A[i, j] * X[j]\nU[i] = sum(k) A[i, k]\nY[i] = T[i] / (U[i] + 100)",
        lambda a, x: product(a, x) / (folded(a) + np.float32(100)),
    ),
    "a softmax": (
        "m[i] = max(k) A[i, k]\nE[i, j] = exp(A[i, j] - m[i])\nY[i] = sum(j) E[i, j] * X[j]",
        lambda a, x: product(np.exp(a - a.max(axis=1, keepdims=True)), x),
    ),
    "a difference of sums": (
        "Y[i] = (sum(j) A[i, j] * X[j]) - (sum(k) A[i, k])",
        lambda a, x: product(a, x) - folded(a),
    ),
}


@pytest.mark.parametrize("text", PROGRAMS)
def test_variances_are_those_of_errors_that_are_made(text: str):
    """Nearly all errors are within three deviations, and the deviations are no more than about a hundred times the errors."""
    statements, in_32_bits = PROGRAMS[text]
    program = parse(f"tensor A[{ROWS}, {COLUMNS}]\ntensor X[{COLUMNS}]\n{statements}\noutput Y")
    rng = np.random.default_rng(1)
    a, x = rng.standard_normal((ROWS, COLUMNS)).astype(np.float32), rng.standard_normal(COLUMNS).astype(np.float32)
    variances = rounding_variances(program, {"A": a, "X": x})
    assert variances is not None
    error = np.abs(in_32_bits(a, x).astype(np.float64) - evaluate(program, {"A": a, "X": x})["Y"])
    ratio = error / (UNIT * np.sqrt(np.asarray(variances["Y"])))
    assert np.quantile(ratio, 0.95) < 3 and ratio.max() < 16
    assert np.sqrt((ratio**2).mean()) > 0.01


def test_what_begins_anew_has_the_error_of_its_value():
    program = parse("tensor A[4]\nT = sum(i) A[i]\nY[i] = log(A[i] * T)\noutput Y")
    arrays = {"A": np.array([1.0, 2.0, -7.0, 5.0])}
    with np.errstate(all="ignore"):
        variances, value = rounding_variances(program, arrays), evaluate(program, arrays)["Y"]
    assert variances is not None
    np.testing.assert_allclose(np.asarray(variances["Y"]), value**2)


def test_what_is_exact_has_none():
    program = parse("tensor A[4]\nY[i] = max(A[i], 0)\noutput Y")
    variances = rounding_variances(program, {"A": np.array([1.0, -2.0, 3.0, 4.0])})
    assert variances is not None and not np.asarray(variances["Y"]).any()


def test_names_of_the_user_are_left_alone():
    program = parse("tensor s.variance[4]\ns = sum(i) s.variance[i]\noutput s")
    variances = rounding_variances(program, {"s.variance": np.ones(4)})
    assert variances is not None and variances["s"] == 16


def test_what_takes_too_much_has_none():
    program = parse("tensor A[40000, 40000] csr\nY[i, j] = A[i, j] * 2\noutput Y")
    assert rounding_variances(program, {}) is None
