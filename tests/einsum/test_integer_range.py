"""Integers that 64-bit floats do not hold are refused wherever they come from: none is rounded in silence."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

from fuseflow.compiler import compile
from fuseflow.einsum.parse import parse
from fuseflow.errors import FuseFlowError

DECLARED = "tensor a[4] i64\ntensor b[4] i64\ntensor c[4] csf i64\n"
LIMIT = 2**53


def run(statement: str, **arrays: list[int]) -> np.ndarray:
    """Run a statement, check it, and return its result as Python integers computed it."""
    program = parse(f"{DECLARED}{statement}\noutput y\n")
    tensors = {name: np.array(arrays.get(name, [1, 2, 3, 0]), dtype=np.int64) for name in "abc"}
    result = compile(program, tensors=tensors).run()
    assert result.check is not None and result.check.passed
    return result.tensors["y"].to_dense()


@pytest.mark.parametrize("value", [LIMIT, LIMIT + 1, -LIMIT - 1, 2**63 - 1])
def test_inputs(value: int) -> None:
    with pytest.raises(FuseFlowError, match=r"is 2\^53 or more: values are computed in 64-bit floats"):
        run("y[i] = a[i]", a=[0, value, 0, 0])


def test_the_largest_integers_are_exact() -> None:
    assert run("y[i] = a[i] - b[i]", a=[LIMIT - 1, 1 - LIMIT, 0, 0], b=[0, 0, 7, 0]).tolist() == [LIMIT - 1, 1 - LIMIT, -7, 0]


def test_results() -> None:
    with pytest.raises(
        FuseFlowError, match=r"tensor `y`: the value .* is 2.53 or more in magnitude, and may be a rounded integer"
    ):
        run("y = sum(i) a[i]", a=[LIMIT - 1, 1, 1, 0])


@pytest.mark.parametrize(
    "statement",
    [
        "y[i] = a[i] * a[i] - b[i] * b[i]",
        "y = sum(i) a[i] * b[i] * c[i]",
        "y[i] = a[i] * a[i] == b[i] * b[i]",
        "t[i] = a[i] + 1 - a[i] * a[i]\ny[i] = t[i] + a[i] * a[i]",
        "y[i] = where(c[i], max(a[i] * a[i], b[i]) - a[i] * a[i], 0)",
        "y[i] = 0.5 * (a[i] * a[i] == b[i] * b[i])",
    ],
)
def test_what_is_small_again_in_the_end(statement: str) -> None:
    """These would be wrong by one or more: a product of two odd numbers of 28 bits is odd, and a float of that size is even."""
    big = [2**28 + 1, -(2**28) - 1, 3, 0]
    with pytest.raises(FuseFlowError, match=r"`.` may hold rounded integers|may be a rounded integer"):
        run(statement, a=big, b=[2**28, 2**28 + 3, 5, 1], c=[1, 1, 0, 0])


def test_a_bound_of_the_largest_operands_is_not_enough_to_refuse() -> None:
    """The largest values do not meet, so that no product is large."""
    a, b = [2**40, 1, 0, 3], [1, 2**40, 5, 0]
    assert run("y[i] = a[i] * b[i]", a=a, b=b).tolist() == [2**40, 2**40, 0, 0]


def test_floats_beside_integers_may_be_large() -> None:
    program = parse("tensor z[3]\ntensor y[3] i32\ny[i] = z[i] > 0\noutput y\n")
    result = compile(program, tensors={"z": np.array([1e30, -1e30, 0], dtype=np.float32)}).run()
    assert result.check is not None and result.check.passed
    assert result.tensors["y"].to_dense().tolist() == [1, 0, 0]


def test_a_large_sparse_operand_is_looked_at_by_its_entries() -> None:
    """Its array would have 2^28 elements."""
    program = parse("tensor A[16384, 16384] csr i64\ny[i] = sum(k) A[i, k] * A[i, k]\noutput y\n")
    coordinates = (np.array([0, 3, 16383]), np.array([5, 5, 16383]))
    for value, refused in ((2**20, False), (2**28 + 1, True)):
        matrix = scipy.sparse.csr_array((np.array([value, -value, 1]), coordinates), shape=(16384, 16384))
        run = compile(program, tensors={"A": matrix}).run
        if refused:
            with pytest.raises(FuseFlowError, match=r"`y` may hold rounded integers|may be a rounded integer"):
                run()
        else:
            assert run().tensors["y"].to_dense()[[0, 3, 16383]].tolist() == [value**2, value**2, 1]
