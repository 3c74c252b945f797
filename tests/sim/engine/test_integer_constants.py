"""A constant that a caller gives as a Python integer is a float of the program: kernels read its bits as those of a float."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import fuseflow as ff
from fuseflow.einsum.nodes import Access, Apply, Const
from fuseflow.einsum.parse import parse
from fuseflow.samml.nodes import Operand


def test_numbers_of_nodes_are_floats() -> None:
    for value in (Const(7).value, Operand(7, constant=True).value):
        assert isinstance(value, float) and value == 7


def test_tiles_are_multiplied_by_an_integer() -> None:
    program = parse("tensor A[8, 8] (compressed, dense) block 4x4\nY[i, j] = A[i, j] * 7\noutput Y")
    body = Apply("mul", (Access("A", ("i", "j")), Const(7)))
    program = replace(program, einsums=(replace(program.einsums[0], body=body),))
    A = np.kron(np.eye(2), np.arange(16.0).reshape(4, 4))
    compiled = ff.compile(program, tensors={"A": A})
    for engine in ("reference", "fast"):
        assert np.array_equal(compiled.run(engine=engine).tensors["Y"].to_dense(), 7 * A)
