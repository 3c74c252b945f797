"""Large sparse operands in the dense meaning of a program. Their products are left to scipy, so that their dense form is never made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse

from fuseflow.einsum.nodes import Access, Expr
from fuseflow.ops import Array
from fuseflow.tensors import Tensor

Operand: TypeAlias = Array | sparse.csr_array
"""An operand of an Einsum: a dense array, or a matrix in CSR form."""


def to_operand(tensor: Tensor, largest: int) -> Operand:
    """Return the numbers of a tensor. A sparse matrix stays sparse if it has more than `largest` elements."""
    rows = len(tensor.shape) == 2 and not tensor.tile and tensor.fill == 0 and not tensor.format.all_dense
    if rows and tensor.shape[0] * tensor.shape[1] > largest:
        return tensor.to_scipy().tocsr().astype(np.float64)
    return tensor.to_dense().astype(np.float64)


def sparse_product(
    factors: Sequence[Expr], over: tuple[str, ...], operands: Mapping[str, Operand]
) -> tuple[Array, tuple[str, ...]] | None:
    """Compute the sum of a product of two accesses over one index, where one is of a sparse matrix. Return the array and the names of its
    axes. Return None for any other form, and where an infinity or a NaN takes part: there the annihilators of the operator table decide.
    """
    if len(factors) != 2 or len(over) != 1 or not all(_plain(f) for f in factors):
        return None
    first, second = sorted(
        (f for f in factors if isinstance(f, Access)), key=lambda f: not isinstance(operands[f.tensor], sparse.csr_array)
    )
    matrix, other = operands[first.tensor], operands[second.tensor]
    shared = set(first.names) & set(second.names)
    if not isinstance(matrix, sparse.csr_array) or shared != set(over):
        return None
    (reduced,) = over
    kept = next(name for name in first.names if name != reduced)
    left = matrix if first.names[1] == reduced else matrix.T.tocsr()
    rest = tuple(name for name in second.names if name != reduced)
    if isinstance(other, sparse.csr_array):
        right = other if second.names[0] == reduced else other.T.tocsr()
        return _finite((left @ right).toarray(), (kept, *rest))
    front = np.moveaxis(other, second.names.index(reduced), 0)
    if not np.isfinite(front).all():
        return None
    result: npt.NDArray[np.float64] = left @ front.reshape(front.shape[0], -1)
    return _finite(result.reshape(left.shape[0], *front.shape[1:]), (kept, *rest))


def _plain(factor: Expr) -> bool:
    """Return whether a factor is an access of distinct whole dimensions."""
    names = factor.indices if isinstance(factor, Access) else ()
    return bool(names) and all(isinstance(name, str) for name in names) and len(set(names)) == len(names)


def _finite(result: Array, names: tuple[str, ...]) -> tuple[Array, tuple[str, ...]] | None:
    return (result, names) if np.isfinite(result).all() else None
