"""Packed tensors as operands of Einsums: a product of matrices reads the levels of the tensor as they are."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from fuseflow.einsum.sparse_arrays import LARGEST_SIZE, Operand, SparseArray
from fuseflow.ops import Array
from fuseflow.tensors import Tensor
from fuseflow.tensors.levels.base import Ints
from fuseflow.tensors.levels.compressed import CompressedFibers

if TYPE_CHECKING:
    from scipy import sparse

STORED_SHARE = 1 / 2
"""The largest share of elements that a sparse array may store. With more, its dense form is smaller."""


class TensorArray(SparseArray):
    """The elements of a tensor without tiles. Their positions are computed when they are first needed, and take several times the
    memory of the tensor."""

    __slots__ = ("_listed", "tensor")

    tensor: Tensor
    _listed: SparseArray | None

    def __init__(self, tensor: Tensor) -> None:
        for name, value in (("tensor", tensor), ("shape", tensor.shape), ("fill", tensor.fill), ("_listed", None)):
            object.__setattr__(self, name, value)

    @property
    def positions(self) -> Ints:
        return self._list().positions

    @property
    def values(self) -> Array:
        return self._list().values

    def tocsr(self) -> sparse.csr_array:
        """Return the elements of a matrix. One that is stored row by row shares its coordinates with the tensor."""
        tensor = self.tensor
        if (
            tensor.format.order != (0, 1)
            or not isinstance(tensor.levels[1], CompressedFibers)
            or tensor.levels[1].firsts is not None
        ):
            return super().tocsr()
        from scipy import sparse  # see `tensors.pack.is_scipy`

        _, rows, _ = tensor.levels[0].expand(np.zeros(1, dtype=np.int64))
        counts = np.zeros(tensor.shape[0] + 1, dtype=np.int64)
        counts[rows + 1] = np.diff(tensor.levels[1].pos)
        pos = np.cumsum(counts, dtype=tensor.levels[1].crd.dtype if tensor.stored < 1 << 31 else np.int64)
        return sparse.csr_array(
            (tensor.values.astype(np.float64), tensor.levels[1].crd, pos), shape=(tensor.shape[0], tensor.shape[1])
        )

    def _list(self) -> SparseArray:
        """Return the elements with their positions, which are computed once."""
        if self._listed is None:
            object.__setattr__(self, "_listed", SparseArray.of_tensor(self.tensor))
        assert self._listed is not None
        return self._listed


def to_operand(tensor: Tensor, largest: int) -> Operand:
    """Return the numbers of a tensor. It stays sparse if it has more than `largest` elements and stores few of them."""
    size = math.prod(tensor.shape)
    is_sparse = not tensor.tile and not tensor.format.all_dense and largest < size < LARGEST_SIZE
    if is_sparse and tensor.stored <= STORED_SHARE * size:
        return TensorArray(tensor)
    return tensor.to_dense().astype(np.float64)
