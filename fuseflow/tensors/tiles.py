"""Tensors of tiles from arrays, and back.

The rows of tiles lie along the last dimension but one, their columns along the last. A vector is cut into columns or rows. Tiles with
fewer dimensions around them than that have the last two of the array for themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse

from fuseflow.errors import TensorError
from fuseflow.tensors.format import Format
from fuseflow.tensors.levels import Dense
from fuseflow.tensors.levels.base import Ints
from fuseflow.tensors.pack import from_coordinates
from fuseflow.tensors.tensor import Tensor

Axis: TypeAlias = tuple[bool, int | None]
"""Of a dimension of the array: whether tiles are counted along it, and the axis of the tile that lies along it."""


@dataclass(frozen=True, slots=True)
class Tiles:
    """An array in tiles: `shape` counts them, `where` [rank, n] are the coordinates of those that are there, `values` [n, rows, columns]
    their elements. Of an array that was dense all are there."""

    shape: tuple[int, ...]
    where: Ints
    values: npt.NDArray[Any]
    dense: bool

    def pack(self, format: Format, fill: float) -> Tensor:
        """Stored are the tiles of a sparse array, or those of a dense one that are not all `fill`; all in a dense format."""
        kept = slice(None) if format.all_dense or not self.dense else (self.values != fill).any(axis=(1, 2))
        return from_coordinates(self.shape, self.where[:, kept], self.values[kept], format, fill)


def cut(array: npt.NDArray[Any] | sparse.coo_array, tile: tuple[int, ...], rank: int) -> Tiles:
    """The array in tiles that `rank` dimensions address. Raises `TensorError` if it is not made of them.

    >>> cut(np.arange(8).reshape(2, 4), (2, 2), 2).values.tolist()
    [[[0, 1], [4, 5]], [[2, 3], [6, 7]]]
    """
    axes = _axes(rank, tile)
    sides = [1 if axis is None else tile[axis] for _, axis in axes]
    if array.ndim != len(axes):
        raise TensorError(f"an array of {array.ndim} dimensions, not {len(axes)}")
    for dimension, (size, side, (counted, _)) in enumerate(zip(array.shape, sides, axes, strict=True)):
        if size % side or (not counted and size != side):
            due = f"no multiple of {side}" if counted else f"not {side}"
            raise TensorError(f"dimension {dimension} has size {size}, {due}: tiles are {tile[0]} x {tile[1]}")
    counts = [size // side for size, side in zip(array.shape, sides, strict=True)]
    shape = tuple(count for count, (counted, _) in zip(counts, axes, strict=True) if counted)
    if not isinstance(array, np.ndarray):
        return _grouped(array, axes, sides, shape, tile)
    split = array.reshape([size for pair in zip(counts, sides, strict=True) for size in pair])
    values = split.transpose([*range(0, split.ndim, 2), *range(1, split.ndim, 2)]).reshape(-1, *tile)
    return Tiles(shape, np.indices(shape).reshape(rank, prod(shape)), values, dense=True)


def whole(tensor: Tensor) -> Tensor:
    """The tensor whose elements are those of the tiles; in its format, with a level more for a dimension that only tiles have."""
    if not tensor.tile:
        return tensor
    axes, rank = _axes(len(tensor.shape), tensor.tile), len(tensor.shape)
    where = iter(tensor.coordinates()[:, :, None])
    inside = np.indices(tensor.tile).reshape(2, 1, -1)
    shape, found, counts = [], [], iter(tensor.shape)
    for counted, axis in axes:
        side = 1 if axis is None else tensor.tile[axis]
        shape.append(side * next(counts) if counted else side)
        crd = next(where) * side if counted else np.zeros((1, 1), np.int64)
        found.append(np.broadcast_to(crd + (0 if axis is None else inside[axis]), (len(tensor.values), inside.shape[2])).ravel())
    more = range(rank, len(axes))
    format = Format((*tensor.format.levels, *(Dense() for _ in more)), (*tensor.format.order, *more))
    return from_coordinates(tuple(shape), np.array(found), tensor.values.reshape(-1), format, tensor.fill)


def _axes(rank: int, tile: tuple[int, ...]) -> list[Axis]:
    if rank >= 2:
        return [*[(True, None)] * (rank - 2), (True, 0), (True, 1)]
    if rank == 1 and 1 in tile:
        return [(True, 0 if tile[1] == 1 else 1)]
    return [*[(True, None)] * rank, (False, 0), (False, 1)]


def _grouped(array: sparse.coo_array, axes: list[Axis], sides: list[int], shape: tuple[int, ...], tile: tuple[int, ...]) -> Tiles:
    """The tiles in which a sparse array has entries; those of one place are added up."""
    parts = [np.divmod(np.asarray(crds, dtype=np.int64), side) for crds, side in zip(array.coords, sides, strict=True)]
    where = [tiles for (tiles, _), (counted, _) in zip(parts, axes, strict=True) if counted]
    inside = [np.zeros(array.nnz, np.int64)] * 2
    for (_, place), (_, axis) in zip(parts, axes, strict=True):
        if axis is not None:
            inside[axis] = place
    keys = np.ravel_multi_index(where, shape) if shape else np.zeros(array.nnz, np.int64)
    found, which = np.unique(keys, return_inverse=True)
    values = np.zeros((len(found), *tile), array.data.dtype)
    np.add.at(values, (which, *inside), array.data)
    return Tiles(shape, np.array(np.unravel_index(found, shape or (1,)))[: len(shape)], values, dense=False)
