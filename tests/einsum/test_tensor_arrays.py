"""Packed tensors as operands: the same elements as a list of positions, and matrices that share the tensor's coordinates."""

from __future__ import annotations

import numpy as np
import pytest

from fuseflow.einsum.sparse_arrays import SparseArray
from fuseflow.einsum.tensor_arrays import TensorArray
from fuseflow.tensors import Format, pack

FORMATS = ("csr", "dcsr", "csc", "coo", "(dense, bitmap)", "(compressed, dense)", "(bitmap, compressed)")


@pytest.mark.parametrize("format", FORMATS)
def test_the_elements_are_those_of_the_tensor(format: str) -> None:
    rng = np.random.default_rng(0)
    array = (rng.random((9, 7)) < 0.3) * rng.random((9, 7))
    array[3] = 0
    tensor = pack(array, Format.parse(format, 2))
    operand, listed = TensorArray(tensor), SparseArray.of_tensor(tensor)
    np.testing.assert_array_equal(operand.tocsr().toarray(), array)
    np.testing.assert_array_equal(operand.positions, listed.positions)
    np.testing.assert_array_equal(operand.values, listed.values)
    assert (operand.shape, operand.size, operand.fill) == (listed.shape, listed.size, listed.fill)


def test_a_matrix_stored_by_rows_shares_its_coordinates() -> None:
    tensor = pack(np.eye(5), Format.parse("dcsr", 2))
    assert np.shares_memory(TensorArray(tensor).tocsr().indices, tensor.levels[1].arrays["crd"])
