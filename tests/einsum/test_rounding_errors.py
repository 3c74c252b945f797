"""The variances of rounding errors against errors that are made: programs evaluated in 32 bits, beside 64 bits. And which elements are
NaN in PyTorch because of a mask, against PyTorch.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from fuseflow.einsum.interpret import evaluate
from fuseflow.einsum.parse import parse
from fuseflow.einsum.rounding_errors import masked_elements, rounding_variances

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


@pytest.mark.parametrize("by", ["greatest", "least", ""])
def test_marks_are_uncertain_where_rounding_decides_between_two_entries(by: str) -> None:
    """Two columns are sums that differ by less than rounding does, and come first; the third one comes last."""
    text = f"T[i, j] = sum(k) A[i, k] * X[k, j]\nM[i, j] = mark(1 {by} over j) T[i, j]".replace("  ", " ")
    program = parse(f"tensor A[4, {COLUMNS}]\ntensor X[{COLUMNS}, 3]\n{text}\noutput M")
    rng = np.random.default_rng(2)
    a, x = rng.random((4, COLUMNS)), np.repeat(rng.random((COLUMNS, 1)), 3, axis=1)
    x[:, 1] += 1e-9
    x[:, 2] += 5 if by == "least" else -0.4
    variances = rounding_variances(program, {"A": a, "X": x})
    assert variances is not None
    unsure = np.asarray(variances["M"]) * (16 * UNIT) ** 2
    np.testing.assert_allclose(unsure, np.tile([4.0, 4.0, 0.0], (4, 1)))


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


SOFTMAX = """
m[i] = max(j) X[i, j]
e[i, j] = exp(X[i, j] - m[i])
s[i] = sum(j) e[i, j]
p[i, j] = e[i, j] / s[i]
"""
SCORES = np.array([[1.0, -math.inf, 2.0], [-math.inf] * 3, [0.0, 1.0, 2.0]])


def flags(statements: str, output: str, x: np.ndarray = SCORES) -> np.ndarray:
    program = parse(f"tensor X[3, 3]\ntensor V[3, 2]\n{statements}\noutput {output}")
    return np.asarray(masked_elements(program, {"X": x, "V": np.arange(6.0).reshape(3, 2)}).get(output, 0.0))


@pytest.mark.parametrize(
    ("statements", "output", "torch_value"),
    [
        ("", "p", lambda p, v: p),
        ("y[i, k] = sum(j) p[i, j] * V[j, k]", "y", lambda p, v: p @ v),
        ("y[i, k] = (sum(j) p[i, j] * V[j, k]) + V[i, k]", "y", lambda p, v: p @ v + v),
        ("t[j, k] = sum(i) p[i, j] * V[i, k]", "t", lambda p, v: p.T @ v),
        ("y[i, j] = where(X[i, j] == 0, 7, p[i, j])", "y", lambda p, v: torch.where(torch.tensor(SCORES) == 0, 7.0, p)),
        ("y[i, j] = relu(-p[i, j])", "y", lambda p, v: torch.relu(-p)),
        ("y[i] = max(j) p[i, j]", "y", lambda p, v: p.amax(1)),
    ],
)
def test_what_depends_on_an_empty_softmax_is_nan_in_pytorch(statements, output, torch_value):
    p = torch.softmax(torch.tensor(SCORES), 1)
    want = torch_value(p, torch.arange(6.0, dtype=torch.float64).reshape(3, 2))
    assert want.isnan().any()
    assert (flags(SOFTMAX + statements, output) == 1).tolist() == want.isnan().tolist()


@pytest.mark.parametrize(
    "statements",
    [
        "d[i] = sum(j) X[i, j]\ny[i, j] = X[i, j] / d[i]",  # 0 / 0
        "l[i, j] = log(X[i, j])\ny[i, j] = l[i, j] - l[i, j]",  # -inf - -inf, of no maximum
        "y[i, j] = X[i, j] * (1 / X[i, j])",  # 0 * inf
    ],
)
def test_no_other_nan_is_behind_a_mask(statements):
    assert not flags(statements, "y", np.zeros((3, 3))).any()


def test_names_of_the_user_are_left_alone_by_flags():
    text = "tensor X[2]\ntensor e.masked[2]\nm = max(i) X[i]\ne[i] = exp(X[i] - m) + e.masked[i]\noutput e"
    assert masked_elements(parse(text), {"X": np.full(2, -math.inf), "e.masked": np.ones(2)})["e"].tolist() == [1.0, 1.0]
