"""The variances of rounding errors against errors that are made: programs evaluated in 32 bits, beside 64 bits."""

from __future__ import annotations

import numpy as np
import pytest

from fuseflow.einsum.comparison import rounding_variances
from fuseflow.einsum.interpret import evaluate
from fuseflow.einsum.parse import parse

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
    error = np.abs(in_32_bits(a, x).astype(np.float64) - evaluate(program, {"A": a, "X": x}, wide=True)["Y"])
    ratio = error / (UNIT * np.sqrt(np.asarray(variances["Y"])))
    assert np.quantile(ratio, 0.95) < 3 and ratio.max() < 16
    assert np.sqrt((ratio**2).mean()) > 0.01


FUNCTIONS = {
    "sqrt": lambda d: 1 / (2 * np.sqrt(d)),
    "rsqrt": lambda d: d**-1.5 / 2,
    "log": lambda d: 1 / d,
    "exp": np.exp,
    "sigmoid": lambda d: np.exp(-d) / (1 + np.exp(-d)) ** 2,
    "tanh": lambda d: 1 / np.cosh(d) ** 2,
    "sin": np.cos,
    "cos": np.sin,
}


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_function_passes_errors_on_as_its_derivative_says(function: str):
    program = parse(f"tensor A[2, 4]\nT[i] = sum(j) A[i, j]\nY[i] = {function}(T[i])\noutput Y")
    arrays = {"A": np.array([[10.0, -20.0, 15.0, -4.5], [1.0, -2.0, 7.0, -5.0]])}
    sums, magnitudes = arrays["A"].sum(1), np.abs(arrays["A"]).sum(1)
    variances, value = rounding_variances(program, arrays), evaluate(program, arrays, wide=True)["Y"]
    assert variances is not None
    want = (magnitudes * FUNCTIONS[function](sums)) ** 2 + value**2
    np.testing.assert_allclose(np.asarray(variances["Y"]), want, rtol=1e-3)


@pytest.mark.parametrize("body", ["sqrt(T[i])", "rsqrt(T[i])", "log(T[i])", "1 / T[i]"])
def test_a_variance_is_infinite_where_rounding_may_have_no_value(body: str):
    """The first sum is as large as its rounding error, and the second is not."""
    program = parse(f"tensor A[2, 3]\nT[i] = sum(j) A[i, j]\nY[i] = {body}\noutput Y")
    variances = rounding_variances(program, {"A": [[1e8, 1.0, -1e8], [100.0, 1.0, -100.0]]})
    assert variances is not None
    assert np.isinf(np.asarray(variances["Y"])).tolist() == [True, False]


def test_what_is_infinite_has_none():
    program = parse("tensor A[2, 2]\nY[i] = sum(j) A[i, j] * 3\noutput Y")
    variances = rounding_variances(program, {"A": [[1.0, -np.inf], [1.0, 1.0]]})
    assert variances is not None and np.asarray(variances["Y"])[0] == 0 < np.asarray(variances["Y"])[1]


def test_the_largest_has_the_error_of_what_may_be_the_largest():
    """The masked score has a large error, which the maximum of the row has only where all scores are masked."""
    program = parse("tensor A[2, 2]\ntensor B[2, 2]\nT[i, j] = A[i, j] + B[i, j]\nm[i] = max(j) T[i, j]\noutput m")
    variances = rounding_variances(program, {"A": [[1.0, 2.0], [1.0, 2.0]], "B": [[-1e9, 0.0], [-1e9, -1e9]]})
    assert variances is not None
    assert np.asarray(variances["m"])[0] == 4 and np.asarray(variances["m"])[1] > 1e17


@pytest.mark.parametrize("comparison", ["==", "<", "<=", ">", ">="])
def test_what_rounding_decides_may_be_either(comparison: str):
    program = parse(f"tensor A[3, 2]\nT[i] = sum(j) A[i, j]\nY[i] = where(T[i] {comparison} 2, 5, 7)\noutput Y")
    variances = rounding_variances(program, {"A": [[1.0, 1.0], [1.0, 1.5], [-3.0, -4.0]]})
    assert variances is not None
    doubtful = np.sqrt(np.asarray(variances["Y"])) * 16 * UNIT >= 2
    assert doubtful.tolist() == [True, False, False]


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
