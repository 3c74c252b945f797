"""The notice about NaN and infinite values of inputs."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import fuseflow as ff
from fuseflow.einsum.parse import parse

PROGRAM = "program p\ntensor A[2, 2] csr\ntensor x[2] dense\ny[i] = sum(k) A[i, k] * x[k]\noutput y\n"


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("stored", "vector", "text"),
    [
        ([1.0, 2.0], [1.0, 1.0], ""),
        ([np.nan, np.inf], [np.inf, 1.0], "1 NaN and 1 infinite in `A`, 1 infinite in `x`"),
        ([1e300, 1.0], [1.0, 1.0], "1 infinite in `A`"),  # too large for 32 bits, and SciPy says so in its own way
        ([1.0, 1.0], [1e300, 1.0], "1 infinite in `x`"),
    ],
)
def test_values_that_are_not_finite_are_counted_once(stored, vector, text):
    matrix = sparse.csr_array((np.array(stored), ([0, 1], [1, 0])), shape=(2, 2))
    compiled = ff.compile(parse(PROGRAM), tensors={"A": matrix, "x": np.array(vector)})
    notices = [n for n in compiled.notices if "no finite numbers" in n]
    assert notices == ([f"inputs have values that are no finite numbers: {text}"] if text else [])
