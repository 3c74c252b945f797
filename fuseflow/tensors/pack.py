"""Packing of dense arrays, scipy sparse arrays and coordinate lists as fibertrees of any format."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from itertools import takewhile
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np
import numpy.typing as npt

from fuseflow.errors import OverfullError, TensorError, counted
from fuseflow.tensors.dtypes import ElementType
from fuseflow.tensors.format import Format
from fuseflow.tensors.levels.base import Fibers, Ints, Level, Overfull, run_starts
from fuseflow.tensors.tensor import Tensor

if TYPE_CHECKING:
    import torch
    from scipy import sparse


def pack(
    array: npt.ArrayLike | sparse.sparray | sparse.spmatrix,
    format: Format,
    fill: float = 0.0,
    *,
    copy: bool = True,
    type: ElementType | None = None,
) -> Tensor:
    """Pack an array. The tensor stores the entries of a scipy array, explicit zeros included, or the elements of a dense array that
    differ from `fill`.

    Without `copy`, the tensor may share the memory of a dense, CSR or CSC array. `type` is the element type where NumPy's type
    does not say it. Raise `TensorError` if array, format and `fill` do not fit together.

    >>> pack([[0, 5], [0, 0]], Format.parse("csr", 2)).values.tolist()
    [5]
    """
    if is_scipy(array):
        if fill != 0:
            raise TensorError("a scipy array has the implicit value 0", hint="pass a dense array or coordinates")
        return _pack_scipy(array, format, copy, type)
    dense = np.asarray(array)
    _check(format, dense.shape, fill, dense.dtype)
    if format.all_dense:
        ordered = dense.transpose(format.order)
        values = ordered.flatten() if copy else np.ascontiguousarray(ordered).reshape(-1)
        levels = dense_levels(format.levels, [dense.shape[d] for d in format.order])
        return Tensor(dense.shape, format, levels, values, fill, type)
    stored = np.nonzero(np.ones(dense.shape, dtype=bool) if format.complete else dense != fill)
    return from_coordinates(dense.shape, np.array(stored, dtype=np.int64), dense[stored], format, fill, type)


def _pack_scipy(array: Any, format: Format, copy: bool, type: ElementType | None) -> Tensor:
    from scipy import sparse  # see `pack.is_scipy`

    if array.format in ("csr", "csc") and array.ndim == format.rank == 2:
        _check(format, array.shape, 0, array.dtype)
        ordered = array.tocsr() if format.order[0] == 0 else array.tocsc()
        rows, columns = (array.shape[dimension] for dimension in format.order)
        complete = len(ordered.data) == ordered.indptr[-1]
        if format.all_dense and complete and is_compressed(rows, columns, ordered.indptr, ordered.indices):
            return pack(ordered.toarray(), format, copy=False, type=type)
        copied = copy and ordered is array
        crd, values = (ordered.indices.copy(), ordered.data.copy()) if copied else (ordered.indices, ordered.data)
        packed = pack_compressed(array.shape, ordered.indptr, crd, values, format)
        if packed is not None:
            return replace(packed, type=type)
    coo = sparse.coo_array(array)
    return from_coordinates(coo.shape, np.array(coo.coords, dtype=np.int64), coo.data, format, type=type)


def from_coordinates(
    shape: tuple[int, ...],
    coordinates: Ints,
    values: npt.NDArray[np.generic],
    format: Format,
    fill: float = 0.0,
    type: ElementType | None = None,
) -> Tensor:
    """Pack a list of n entries. `coordinates` is [rank, n] in dimension order; `values` is [n], or [n, rows, columns] for tiles.

    Duplicates are added up, see `add_up`. Levels that pad decide themselves where the implicit value is stored, so no entry with this
    value is packed in them. Raise `TensorError` for a coordinate outside `shape`, and if a level has no room for all entries.
    """
    _check(format, shape, fill, values.dtype)
    coordinates = np.asarray(coordinates, dtype=np.int64).reshape(len(shape), -1 if shape else len(values))
    if coordinates.shape[1] != len(values):
        raise TensorError(f"{coordinates.shape[1]} coordinates and {len(values)} values")
    if format.complete and len(values) < math.prod(shape):
        return _completed(shape, coordinates, values, format, fill, type)
    for dimension, size in enumerate(shape):
        outside = (coordinates[dimension] < 0) | (coordinates[dimension] >= size)
        if outside.any():
            wrong = coordinates[dimension][outside][0]
            raise TensorError(f"coordinate {wrong} of dimension {dimension} is outside 0..{size - 1}")
    columns, values = add_up(coordinates, values, format.order)
    if any(level.pads for level in format.levels):
        needed = _differs(values, fill)
        columns, values = columns[:, needed], values[needed]
    refs = prefixes = np.zeros(len(values), dtype=np.int64)
    parents, levels = 1, list[Fibers]()
    for at, (level, dimension) in enumerate(zip(format.levels, format.order, strict=True)):
        try:
            fibers, refs = _pack_level(format, at, shape[dimension], parents, refs, prefixes, columns[at:])
        except Overfull as error:
            above = {d: str(column[error.entry]) for d, column in zip(format.order, columns[: len(levels)], strict=False)}
            place = ", ".join({**above, dimension: str(error.start)}.get(d, "*") for d in range(len(shape)))
            message = f"level {len(levels)} ({level.text}), from coordinate ({place}) on: {error.why}"
            raise OverfullError(message, hint=error.hint) from None
        prefixes = _refine(prefixes, columns[at])
        parents = fibers.entries
        levels.append(fibers)
    stored = np.full((parents, *values.shape[1:]), fill, dtype=values.dtype)
    stored[refs] = values
    return Tensor(tuple(shape), format, tuple(levels), stored, fill, type)


def _pack_level(
    format: Format, at: int, size: int, parents: int, refs: Ints, prefixes: Ints, columns: Ints
) -> tuple[Fibers, Ints]:
    """Pack level `at`, given the coordinates of this level and of the levels below, `columns`. Other arguments are as in
    `Level.pack`. A list of coordinates names each coordinate once, however many values are below it."""
    level = format.levels[at]
    if level.unique and not level.follows:
        return level.pack(size, parents, refs, prefixes, columns[0])
    listed = 1 if level.unique else 1 + len(list(takewhile(lambda below: below.follows, format.levels[at + 1 :])))
    numbers = reduce(_refine, columns[:listed], prefixes)
    first = run_starts(numbers)
    fibers, below = level.pack(size, parents, refs[first], prefixes[first], columns[0][first])
    return fibers, below[numbers]


def _completed(
    shape: tuple[int, ...],
    coordinates: Ints,
    values: npt.NDArray[np.generic],
    format: Format,
    fill: float,
    type: ElementType | None,
) -> Tensor:
    """Pack a list of entries in a complete format. All other entries get the implicit value."""
    if math.prod(shape) > MOST_COMPLETED:
        size = " x ".join(map(str, shape))
        raise TensorError(f"`{format.short()}` stores all entries of {size}", hint=f"`{replace(format, complete=False).short()}`")
    some = from_coordinates(shape, coordinates, values, replace(format, complete=False), fill, type)
    every = np.indices(shape).reshape(len(shape), -1)
    dense = some.to_dense() if not some.tile else np.full((*shape, *some.tile), fill, dtype=values.dtype)
    if some.tile:
        stored, tiles = some.entries()
        dense[tuple(stored)] = tiles
    return from_coordinates(shape, every, dense.reshape(-1, *values.shape[1:]), format, fill, type)


MOST_COMPLETED = 1 << 28
"""The most entries of a tensor that stores all of them in a sparse format."""


def repack(tensor: Tensor, format: Format) -> Tensor:
    """Return a tensor with the same stored entries in another format. The entries of a tensor without a pattern follow from the
    format: they differ from its implicit value, unless the format is complete."""
    coordinates, values = entries_in(tensor, format)
    return from_coordinates(tensor.shape, coordinates, values, format, tensor.fill, tensor.type)


def entries_in(tensor: Tensor, format: Format) -> tuple[Ints, npt.NDArray[np.generic]]:
    """Return the coordinates and the values of the entries that a tensor has when it is repacked in a format, before a level or `all` adds
    any.

    >>> entries_in(pack([[0, 5], [0, 0]], Format.dense(2)), Format.parse("csr", 2))[0].tolist()
    [[0], [1]]
    """
    has_pattern = not (tensor.format.all_dense or tensor.format.complete)
    if has_pattern or format.all_dense or format.complete:
        return tensor.entries()
    if not tensor.format.all_dense:
        coordinates, values = tensor.entries()
        differs = _differs(values, tensor.fill)
        return coordinates[:, differs], values[differs]
    # The elements stand in storage order, so that elements that are left out are not listed.
    stored = np.flatnonzero(_differs(tensor.values, tensor.fill))
    coordinates = np.empty((len(tensor.shape), len(stored)), dtype=np.int64)
    coordinates[list(tensor.format.order)] = np.unravel_index(stored, [tensor.shape[d] for d in tensor.format.order])
    return coordinates, tensor.values[stored]


def _differs(values: npt.NDArray[np.generic], fill: float) -> npt.NDArray[np.bool_]:
    """Return which values, or tiles of values, are not the implicit one."""
    return np.asarray((values != fill).any(axis=tuple(range(1, values.ndim))))


def _check(format: Format, shape: tuple[int, ...], fill: float, dtype: np.dtype[Any]) -> None:
    if format.rank != len(shape):
        raise TensorError(f"format {format} has {counted(format.rank, 'level')}, the tensor {counted(len(shape), 'dimension')}")
    if dtype.kind in "iu" and not float(fill).is_integer():
        raise TensorError(f"the implicit value {fill:g} is not an integer, the elements are {dtype}")


def add_up(
    coordinates: Ints, values: npt.NDArray[np.generic], order: tuple[int, ...] | None = None
) -> tuple[Ints, npt.NDArray[np.generic]]:
    """Return a list of n entries, sorted by their coordinates, with the values of equal coordinates added up in their own type.

    `coordinates` is [rank, n] in dimension order; `values` is [n], or [n, rows, columns] for tiles. The coordinates that are returned are
    in the `order` in which dimensions are stored. Truth values add up to their disjunction, as in scipy and PyTorch. Raise `TensorError`
    for integers whose sum is too large for their type.
    """
    columns = coordinates if order is None else coordinates[list(order)]
    if len(columns):
        sorting = np.lexsort(columns[::-1])
        coordinates, columns, values = coordinates[:, sorting], columns[:, sorting], values[sorting]
        is_first = run_starts(*columns)
    else:
        is_first = np.arange(len(values)) == 0
    if is_first.all():
        return columns, values
    sums, wrapped = _sums(values, np.flatnonzero(is_first))
    if wrapped.any():
        place = ", ".join(map(str, coordinates[:, is_first][:, np.argmax(wrapped)]))
        raise TensorError(
            f"the sum of the entries at ({place}) is more than `{values.dtype}` holds", hint="store the entries in a wider type"
        )
    return columns[:, is_first], sums


def _sums(values: npt.NDArray[np.generic], starts: Ints) -> tuple[npt.NDArray[np.generic], npt.NDArray[np.bool_]]:
    """Return the sums of the slices of `values` that begin at `starts`, and for each sum whether it wrapped around."""
    if values.dtype.kind == "b":
        return np.asarray(np.logical_or.reduceat(values, starts)), np.zeros(len(starts), dtype=bool)
    with np.errstate(invalid="ignore", over="ignore"):  # infinities of both signs are NaN
        sums: npt.NDArray[np.generic] = np.add.reduceat(values, starts).astype(values.dtype)
    if values.dtype.kind == "f":
        return sums, np.zeros(len(starts), dtype=bool)
    error = np.abs(sums - np.add.reduceat(values.astype(np.float64), starts))  # a multiple of 2^bits, and the rounding of floats
    return sums, (error > 2.0 ** (8 * values.itemsize - 1)).reshape(len(starts), -1).any(axis=1)


def _refine(prefixes: Ints, crds: Ints) -> Ints:
    """Return the numbers of coordinate prefixes that are one level longer. Entries share a number if they shared the last one and
    have the same coordinate."""
    return np.cumsum(run_starts(prefixes, crds)) - 1


def dense_levels(levels: Sequence[Level], sizes: Sequence[int], parents: int = 1) -> tuple[Fibers, ...]:
    """Return the fibers of levels that store every coordinate. `sizes` are the extents of their dimensions."""
    fibers, none = list[Fibers](), np.zeros(0, dtype=np.int64)
    for level, size in zip(levels, sizes, strict=True):
        fibers.append(level.pack(size, parents, none, none, none)[0])
        parents *= size
    return tuple(fibers)


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
        # Only the first of a row may be smaller than the one before.
        if not np.array_equal(pos[np.searchsorted(pos, falls)], falls):
            return False
    return True


def is_scipy(value: Any) -> bool:
    """Return whether a value is a sparse array or matrix of scipy. There is none before something loads scipy. Loading takes longer
    than a small run, so scipy is loaded where one of its arrays is made."""
    module = sys.modules.get("scipy.sparse")
    return module is not None and bool(module.issparse(value))


def is_torch(value: Any) -> TypeGuard[torch.Tensor]:
    """Return whether a value is a PyTorch tensor. There is none before something loads PyTorch."""
    module = sys.modules.get("torch")
    return module is not None and isinstance(value, module.Tensor)
