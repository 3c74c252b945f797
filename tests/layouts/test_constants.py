"""The inputs that a training step does not change."""

from __future__ import annotations

import numpy as np
import pytest

from fuseflow.einsum.parse import parse
from fuseflow.frontend.imported_program import Source
from fuseflow.layouts.constants import Constants, stored_rows
from fuseflow.tensors import Format, Tensor
from fuseflow.tensors.array_files import pack_declared

STEP = """
tensor A[3, 3] csr
tensor T[3, 2] csr
tensor W[3, 2] csr
tensor x[3] dense
G[i, j] = T[i, j] + (sum(k) A[i, k] * W[k, j]) * x[i]
next.W[i, j] = W[i, j] - G[i, j]
output next.W
"""
ADJACENCY = np.array([[0, 2, 0], [2, 1, 0], [0, 0, 0]], np.float32)
TARGET = np.array([[0, 0], [0, 1], [0, 0]], np.float32)


def packed(array: np.ndarray, text: str) -> Tensor:
    program = parse(f"tensor A[{', '.join(map(str, array.shape))}] {text}\nB[i, j] = A[i, j]\noutput B")
    return pack_declared(array, program.declared["A"])


def test_a_step_does_not_change_inputs_without_a_new_value() -> None:
    program = parse(STEP)
    tensors = {"A": packed(ADJACENCY, "csr"), "T": packed(TARGET, "csr"), "W": packed(np.zeros((3, 2), np.float32), "csr")}
    constants = Constants.of(Source("step", program, tensors), fixed=())
    assert constants == Constants(frozenset("ATx"), frozenset("T"))


def test_the_user_decides_about_a_fixed_input() -> None:
    source = Source("step", parse(STEP), {"A": packed(ADJACENCY, "csr"), "T": packed(TARGET, "csr")})
    assert Constants.of(source, fixed=("A", "T")) == Constants(frozenset("x"), frozenset())


@pytest.mark.parametrize("format", ["csr", "csc", "coo"])
def test_rows_that_store_something_are_counted_in_every_format(format: str) -> None:
    assert stored_rows(packed(ADJACENCY, format)) == np.count_nonzero(ADJACENCY.any(1)) == 2
    assert Format.parse(format, 2) == packed(ADJACENCY, format).format
