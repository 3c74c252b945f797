"""Operators and products of arrays that store little, in the meaning of a program. They take time in proportion to the stored elements."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeGuard

import numpy as np
import numpy.typing as npt

from fuseflow.einsum.nodes import Access, Expr
from fuseflow.einsum.sparse_arrays import LabeledSparse, SparseArray
from fuseflow.ops import Array, Operator
from fuseflow.tensors.levels.base import Ints


@dataclass(frozen=True, slots=True, eq=False)
class LabeledArray:
    """An array with the index name of each of its axes."""

    array: Array
    names: tuple[str, ...]

    def over(self, names: tuple[str, ...]) -> Array:
        """Return the array with its axes in the order of `names`, and with an axis of length 1 for each name that it lacks."""
        axes = [self.names.index(n) for n in names if n in self.names]
        shape = iter(self.array.shape[a] for a in axes)
        return self.array.transpose(axes).reshape([next(shape) if n in self.names else 1 for n in names])

    def at(self, points: Mapping[str, Ints]) -> Array:
        """Return the elements at these points, which are given by index. A number is the same at all of them."""
        return self.array[tuple(points[n] for n in self.names)]


Labeled = LabeledArray | LabeledSparse
"""A value of an expression, dense or sparse."""


def sparse_pointwise(row: Operator, operands: Sequence[Labeled], constants: Sequence[float | None]) -> LabeledSparse | None:
    """Apply an operator to operands; some are sparse. Return None if the result is not sparse.

    It is sparse if one operand has all the indices and annihilates outside of its stored elements, or if all operands that are not numbers
    are sparse and have the same indices. `constants` gives the value of each operand that is a constant of the program.
    """
    indices = set().union(*(set(operand.names) for operand in operands))
    for position, operand in enumerate(operands):
        if isinstance(operand, LabeledSparse) and set(operand.names) == indices:
            fixed = row.annihilated(position, operand.array.fill, constants)
            if fixed is not None:
                return _at_positions(row, operands, operand, operand.array.positions, fixed)
    first = next(operand for operand in operands if isinstance(operand, LabeledSparse))
    if any(set(o.names) != indices if isinstance(o, LabeledSparse) else o.names for o in operands):
        return None
    aligned = [o.over(first.names) if isinstance(o, LabeledSparse) else o for o in operands]
    positions = np.unique(np.concatenate([o.array.positions for o in aligned if isinstance(o, LabeledSparse)]))
    fills = [o.array.fill if isinstance(o, LabeledSparse) else float(o.array) for o in aligned]
    return _at_positions(row, aligned, first, positions, float(row(*fills)))


def _at_positions(row: Operator, operands: Sequence[Labeled], like: LabeledSparse, positions: Ints, fill: float) -> LabeledSparse:
    """Return the result of the operator `row` at some positions of an array with the shape of `like`, and `fill` elsewhere."""
    columns = SparseArray(like.array.shape, positions, np.zeros(0)).points
    points = dict(zip(like.names, columns, strict=True))
    values = np.broadcast_to(row(*(operand.at(points) for operand in operands)), positions.shape)
    return LabeledSparse(SparseArray(like.array.shape, positions, values, fill), like.names)


def sparse_product(factors: Sequence[Labeled], reduced: str, largest: int) -> Labeled | None:
    """Compute the sum of a product over the one index that its two factors share, where one is a sparse matrix. A product of two sparse
    matrices with more than `largest` elements is sparse. Return None for any other form, and where an infinity or a NaN takes part: there
    the annihilators of the operator table decide.
    """
    first, second = sorted(factors, key=lambda factor: not isinstance(factor, LabeledSparse))
    if not _is_matrix(first) or set(first.names) & set(second.names) != {reduced}:
        return None
    kept = next(name for name in first.names if name != reduced)
    left = first.array.tocsr() if first.names[1] == reduced else first.array.tocsr().T
    rest = tuple(name for name in second.names if name != reduced)
    if isinstance(second, LabeledSparse):
        if not _is_matrix(second):
            return None
        right = second.array.tocsr()
        product = left.tocsr() @ (right if second.names[0] == reduced else right.T.tocsr())
        if not np.isfinite(product.data).all():
            return None
        if math.prod(product.shape) <= largest:
            return LabeledArray(product.toarray(), (kept, *rest))
        return LabeledSparse(SparseArray.of_scipy(product), (kept, *rest))
    front = np.moveaxis(second.array, second.names.index(reduced), 0)
    if not np.isfinite(front).all():
        return None
    result: npt.NDArray[np.float64] = left @ front.reshape(front.shape[0], -1)
    result = result.reshape(left.shape[0], *front.shape[1:])
    return LabeledArray(result, (kept, *rest)) if np.isfinite(result).all() else None


def _is_matrix(operand: Labeled) -> TypeGuard[LabeledSparse]:
    """Return whether an operand is a sparse matrix with the implicit value 0."""
    return isinstance(operand, LabeledSparse) and len(operand.names) == 2 and operand.array.fill == 0


def plain_access(factor: Expr) -> Access | None:
    """Return a factor that is an access of distinct whole dimensions, None for any other."""
    names = factor.indices if isinstance(factor, Access) else ()
    is_plain = bool(names) and all(isinstance(name, str) for name in names) and len(set(names)) == len(names)
    return factor if is_plain and isinstance(factor, Access) else None
