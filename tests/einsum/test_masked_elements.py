"""Which elements are NaN in PyTorch because of a mask, against PyTorch."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from fuseflow.einsum.comparison import masked_elements
from fuseflow.einsum.parse import parse

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


def test_names_of_the_user_are_left_alone():
    text = "tensor X[2]\ntensor e.masked[2]\nm = max(i) X[i]\ne[i] = exp(X[i] - m) + e.masked[i]\noutput e"
    assert masked_elements(parse(text), {"X": np.full(2, -math.inf), "e.masked": np.ones(2)})["e"].tolist() == [1.0, 1.0]
