"""The elements that an access with offsets and strides reads: `X[2*p + r - 1]` is an array over p and r, with 0 where the
coordinate lies outside of `X`.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate

import numpy as np

from fuseflow.einsum.nodes import Affine, Index, index_names
from fuseflow.ops import Array


def read_affine(array: Array, indices: tuple[Index, ...], sizes: Mapping[str, int]) -> Array:
    """Return the array with the axis of each affine index replaced by one axis for each of its terms. Other axes stay.

    >>> read_affine(np.array([5.0, 6.0, 7.0]), (Affine((("p", 2),), -1),), {"p": 3}).tolist()
    [0.0, 6.0, 0.0]
    """
    widths = [len(index_names((index,))) if isinstance(index, Affine) else 1 for index in indices]
    for axis, index in zip(accumulate(widths, initial=0), indices, strict=False):
        if isinstance(index, Affine):
            array = _gathered(array, axis, coordinates(index, sizes))
    return array


def coordinates(index: Affine, sizes: Mapping[str, int]) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """Return an array of coordinates with an axis for each term of an affine index, in the order of the terms. `sizes` are the
    extents of the terms."""
    grid = np.full([1] * len(index.terms), index.offset, np.int64)
    for position, (name, factor) in enumerate(index.terms):
        column = [-1 if other == position else 1 for other in range(len(index.terms))]
        grid = grid + (factor * np.arange(sizes[name], dtype=np.int64)).reshape(column)
    return grid


def _gathered(array: Array, axis: int, wanted: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> Array:
    inside = (wanted >= 0) & (wanted < array.shape[axis])
    if not inside.any():  # an empty axis has nothing to take
        return np.zeros((*array.shape[:axis], *wanted.shape, *array.shape[axis + 1 :]))
    taken = np.take(array, np.where(inside, wanted, 0), axis=axis)
    mask = inside.reshape([1] * axis + list(wanted.shape) + [1] * (array.ndim - axis - 1))
    return np.where(mask, taken, 0.0)
