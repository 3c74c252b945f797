"""Packing of matrices that already have the arrays of a compressed level, as CSR and CSC have: nothing is sorted, and arrays are shared."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fuseflow.tensors.format import Format
from fuseflow.tensors.levels.base import Ints
from fuseflow.tensors.tensor import Tensor

_PIECE = 1 << 22
"""How many coordinates are checked at a time, so that the check takes little memory."""


def pack_compressed(
    shape: tuple[int, ...], pos: Ints, crd: npt.NDArray[np.integer], values: npt.NDArray[np.generic], format: Format
) -> Tensor | None:
    """Pack a matrix whose slice r along dimension `format.order[0]` has the coordinates crd[pos[r]..pos[r+1]) and the values beside them.

    The tensor may share `crd` and `values`. Return None if the levels of the format are not built from such arrays, or if the arrays are no
    matrix of this shape whose coordinates ascend in every slice: then `from_coordinates` packs it, or raises an error.

    >>> pack_compressed((2, 3), np.array([0, 1, 1]), np.array([2]), np.array([5.0]), Format.parse("csr", 2))
    Tensor((2, 3), csr, float64, 1 stored)
    """
    if format.complete or format.rank != 2 or not all(level.appended for level in format.levels) or format.levels[1].full:
        return None
    rows, columns = (shape[dimension] for dimension in format.order)
    if not is_compressed(rows, columns, pos, crd) or len(values) != len(crd):
        return None
    pos = pos.astype(np.int64, copy=False)
    outer, inner = format.levels
    if outer.full:
        stored = np.arange(0)
    else:
        stored = np.flatnonzero(np.diff(pos))
        pos = np.append(pos[stored], len(crd))
    above = outer.append(rows, 1, np.array([0, len(stored)], dtype=np.int64), stored)
    below = inner.append(columns, above.entries, pos, crd)
    return Tensor(tuple(shape), format, (above, below), values)


def is_compressed(rows: int, columns: int, pos: Ints, crd: npt.NDArray[np.integer]) -> bool:
    """Return whether `pos` and `crd` are the arrays of a matrix with `rows` x `columns` whose coordinates ascend in every row."""
    if len(pos) != rows + 1 or pos[0] != 0 or pos[-1] != len(crd) or (np.diff(pos) < 0).any():
        return False
    for start in range(0, len(crd), _PIECE):
        piece = crd[start : start + _PIECE + 1]  # the last one is the first of the next piece
        if piece.min() < 0 or piece.max() >= columns:
            return False
        falls = np.flatnonzero(piece[1:] <= piece[:-1]) + start + 1
        if not np.array_equal(
            pos[np.searchsorted(pos, falls)], falls
        ):  # only the first of a row may be smaller than the one before
            return False
    return True
