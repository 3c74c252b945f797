"""Where programs come from: what each kind of source takes and refuses."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import fuseflow as ff
from fuseflow.einsum.parse import parse
from fuseflow.errors import ProgramError, UsageError


@pytest.mark.parametrize("inputs", [torch.ones(2, 5), 3])
def test_inputs_are_a_list_or_tuple(inputs: object) -> None:
    with pytest.raises(UsageError, match="the inputs of `Linear` are a"):
        ff.compile(torch.nn.Linear(5, 3), inputs)  # type: ignore[arg-type]


def test_a_module_needs_inputs() -> None:
    with pytest.raises(UsageError, match="needs inputs"):
        ff.compile(torch.nn.Linear(5, 3))


def test_arrays_by_name_are_packed_as_declared() -> None:
    program = parse("tensor A[2, 3] csr f64\nY[i, j] = A[i, j] * 2\noutput Y")
    result = ff.compile(program, tensors={"A": np.array([[0, 1, 0], [0, 0, 0]])}).run()
    assert result.outputs["Y"].toarray().tolist() == [[0, 2, 0], [0, 0, 0]]  # type: ignore[union-attr]
    with pytest.raises(UsageError, match="no input `B`"):
        ff.compile(program, tensors={"B": np.zeros((2, 3))})


def test_sizes_are_coordinates() -> None:
    with pytest.raises(ProgramError, match="the last 32-bit coordinate"):
        ff.compile(parse("tensor A[99999999999] f64\nY[i] = A[i] * 2\noutput Y"))
