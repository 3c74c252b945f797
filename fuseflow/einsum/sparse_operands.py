"""Operators and products of arrays that store little, in the meaning of a program. What they compute takes the time of what is stored."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeGuard

import numpy as np
import numpy.typing as npt

from fuseflow.einsum.nodes import Access, Expr
from fuseflow.einsum.sparse_arrays import LabeledSparse, Operand, SparseArray
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
    """Apply an operator to operands of which some are sparse. Return None if the result is not sparse.

    It is, where one operand annihilates outside of what it stores and has all the indices, and where all operands that are not numbers are
    sparse and have the same indices. `constants` gives the value of each operand that is a constant of the program.
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
    """Return the operator on what its operands have at some positions of an array like this one."""
    columns = SparseArray(like.array.shape, positions, np.zeros(0)).points
    points = dict(zip(like.names, columns, strict=True))
    values = np.broadcast_to(row(*(operand.at(points) for operand in operands)), positions.shape)
    return LabeledSparse(SparseArray(like.array.shape, positions, values, fill), like.names)


def sparse_product(
    factors: Sequence[Expr], over: tuple[str, ...], operands: Mapping[str, Operand], largest: int
) -> Labeled | None:
    """Compute the sum of a product of two accesses over one index, where one is of a sparse matrix. A product of two sparse matrices with
    more than `largest` elements is sparse. Return None for any other form, and where an infinity or a NaN takes part: there the
    annihilators of the operator table decide.
    """
    if len(factors) != 2 or len(over) != 1 or not all(_plain(f) for f in factors):
        return None
    first, second = sorted(
        (f for f in factors if isinstance(f, Access)), key=lambda f: not isinstance(operands[f.tensor], SparseArray)
    )
    matrix, other = operands[first.tensor], operands[second.tensor]
    shared = set(first.names) & set(second.names)
    if not _is_matrix(matrix) or shared != set(over):
        return None
    (reduced,) = over
    kept = next(name for name in first.names if name != reduced)
    left = matrix.tocsr() if first.names[1] == reduced else matrix.tocsr().T
    rest = tuple(name for name in second.names if name != reduced)
    if isinstance(other, SparseArray):
        if not _is_matrix(other):
            return None
        product = left.tocsr() @ (other.tocsr() if second.names[0] == reduced else other.tocsr().T.tocsr())
        if not np.isfinite(product.data).all():
            return None
        if math.prod(product.shape) <= largest:
            return LabeledArray(product.toarray(), (kept, *rest))
        return LabeledSparse(SparseArray.of_scipy(product), (kept, *rest))
    front = np.moveaxis(other, second.names.index(reduced), 0)
    if not np.isfinite(front).all():
        return None
    result: npt.NDArray[np.float64] = left @ front.reshape(front.shape[0], -1)
    result = result.reshape(left.shape[0], *front.shape[1:])
    return LabeledArray(result, (kept, *rest)) if np.isfinite(result).all() else None


def _is_matrix(operand: Operand) -> TypeGuard[SparseArray]:
    """Return whether an operand is a sparse matrix with the implicit value 0."""
    return isinstance(operand, SparseArray) and len(operand.shape) == 2 and operand.fill == 0


def _plain(factor: Expr) -> bool:
    """Return whether a factor is an access of distinct whole dimensions."""
    names = factor.indices if isinstance(factor, Access) else ()
    return bool(names) and all(isinstance(name, str) for name in names) and len(set(names)) == len(names)
