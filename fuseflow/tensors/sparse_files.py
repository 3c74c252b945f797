"""Sparse arrays of scipy in `.npz` archives, checked before scipy's compiled code sees them.

That code trusts its arguments, and does not survive all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from fuseflow.errors import FileError
from fuseflow.tensors.npy_files import NpzArchive

if TYPE_CHECKING:
    from scipy import sparse

_LARGEST: Final = 2**62
"""No product of two sizes, or a coordinate, may need more than 64 bits."""
_MOST_STORED: Final = 1 << 33


class _Malformed(Exception):
    """A fault in the arrays of a sparse array."""


def read_sparse(path: Path, archive: NpzArchive) -> sparse.coo_array:
    """Return the sparse array that `scipy.sparse.save_npz` wrote, or a `sparse.COO` whose fill value is 0. Raise `FileError` for one whose
    parts do not fit together."""
    text = archive["format"]
    if text.dtype.kind not in "SU" or text.size != 1:
        raise FileError(f"`{path}` does not say its sparse format", hint="write it with `scipy.sparse.save_npz`")
    kind = text.reshape(()).item()
    kind = kind.decode("latin-1") if isinstance(kind, bytes) else str(kind)
    if kind == "gcxs":
        raise FileError(
            f"`{path}` has a GCXS array of the package `sparse`", hint="write it by `sparse.save_npz(FILE, array.tocoo())`"
        )
    if kind not in _KINDS:
        raise FileError(f"`{path}` has the sparse format `{kind[:40]}`", hint=f"known: {', '.join(_KINDS)}")
    _require_zero_fill(archive, path)
    try:
        shape = _shape(archive)
        array: sparse.coo_array = _KINDS[kind](archive, shape)
        return array
    except _Malformed as error:
        raise FileError(f"`{path}` is no sparse array: {error}", hint="write it with `scipy.sparse.save_npz`") from None


def _require_zero_fill(archive: NpzArchive, path: Path) -> None:
    fill = archive["fill_value"] if "fill_value" in archive else np.zeros(())  # which arrays of the package `sparse` have
    if fill.shape != () or fill.dtype.kind not in "buif" or fill != 0:
        raise FileError(
            f"`{path}` has the fill value {str(fill)[:40]}: what a sparse file does not store is read as 0",
            hint="write it dense, by `numpy.save(FILE, array.todense())`",
        )


def read_named_csr(path: Path, archive: NpzArchive, part: str) -> sparse.coo_array:
    """Return a CSR matrix whose arrays have the names `part_data`, `part_indices`, `part_indptr` and `part_shape`. Raise `FileError` if one
    is missing, or if they do not fit together."""
    arrays = archive.part(f"{part}_")
    try:
        shape = _shape(arrays)
        if len(shape) != 2:
            raise _Malformed(f"`{part}_shape` has {len(shape)} elements")
        return _csr(arrays, shape)
    except _Malformed as error:
        raise FileError(f"`{path}` has no matrix `{part}`: {error}") from None


def _shape(archive: NpzArchive) -> tuple[int, ...]:
    extents = _integers(archive, "shape", 1).tolist()
    if not 1 <= len(extents) <= 32 or min(extents) < 0 or prod(max(extent, 1) for extent in extents) >= _LARGEST:
        raise _Malformed(f"its shape is {extents[:8]}")
    return tuple(extents)


def _integers(archive: NpzArchive, name: str, rank: int) -> npt.NDArray[np.int64]:
    array = archive[name]
    if array.dtype.kind not in "iu" or array.ndim != rank:
        raise _Malformed(f"`{name}` is not {'a list' if rank == 1 else 'a table'} of whole numbers")
    if array.dtype.kind == "u" and array.size and int(array.max()) >= _LARGEST:
        raise _Malformed(f"`{name}` has a number that is too large")
    return array.astype(np.int64, copy=False)


def _numbers(archive: NpzArchive, rank: int) -> npt.NDArray[Any]:
    data = archive["data"]
    if data.dtype.kind not in "buif":
        raise _Malformed(f"it holds elements of type `{data.dtype}`, not numbers")
    if data.ndim != rank:
        raise _Malformed(f"its values have {data.ndim} dimensions, not {rank}")
    return data


def _require_inside(name: str, coordinates: npt.NDArray[np.int64], size: int) -> None:
    if coordinates.size and (coordinates.min() < 0 or coordinates.max() >= size):
        wrong = coordinates[(coordinates < 0) | (coordinates >= size)].flat[0]
        raise _Malformed(f"`{name}` has the coordinate {wrong}, outside of 0..{size - 1}")


def _compressed(archive: NpzArchive, rows: int, columns: int, rank: int) -> tuple[npt.NDArray[Any], Any, Any]:
    """Return the values, and the row and column of each, of a matrix that is compressed by rows."""
    indptr, indices, data = _integers(archive, "indptr", 1), _integers(archive, "indices", 1), _numbers(archive, rank)
    if len(indices) != len(data):
        raise _Malformed(f"it has {len(data)} values at {len(indices)} coordinates")
    if len(indptr) != rows + 1 or indptr[0] != 0 or indptr[-1] != len(indices) or (np.diff(indptr) < 0).any():
        raise _Malformed(f"`indptr` does not divide {len(indices)} values among {rows} rows or columns")
    _require_inside("indices", indices, columns)
    return data, np.repeat(np.arange(rows, dtype=np.int64), np.diff(indptr)), indices


def _array(data: npt.NDArray[Any], coordinates: Any, shape: tuple[int, ...]) -> sparse.coo_array:
    from scipy import sparse  # see `pack.is_scipy`

    if data.dtype == np.float16:  # scipy has no such arrays
        data = data.astype(np.float32)
    data = data.astype(data.dtype.newbyteorder("="), copy=False)
    array: sparse.coo_array = sparse.coo_array((data, tuple(coordinates)), shape=shape)
    return array


def _matrix(shape: tuple[int, ...]) -> tuple[int, int]:
    if len(shape) != 2:
        raise _Malformed(f"its shape is {list(shape)}, and a matrix has two dimensions")
    return shape[0], shape[1]


def _csr(archive: NpzArchive, shape: tuple[int, ...]) -> sparse.coo_array:
    if len(shape) == 1:
        data, _, columns = _compressed(archive, 1, shape[0], 1)
        return _array(data, (columns,), shape)
    data, rows, columns = _compressed(archive, *_matrix(shape), 1)
    return _array(data, (rows, columns), shape)


def _csc(archive: NpzArchive, shape: tuple[int, ...]) -> sparse.coo_array:
    rows, columns = _matrix(shape)
    data, column_of, row_of = _compressed(archive, columns, rows, 1)
    return _array(data, (row_of, column_of), shape)


def _bsr(archive: NpzArchive, shape: tuple[int, ...]) -> sparse.coo_array:
    height, width = _matrix(shape)
    tall, wide = _numbers(archive, 3).shape[1:]
    if not tall or not wide or height % tall or width % wide:
        raise _Malformed(f"blocks of {tall} x {wide} do not divide {height} x {width}")
    data, rows, columns = _compressed(archive, height // tall, width // wide, 3)
    within = np.indices((tall, wide)).reshape(2, 1, -1)
    row_of, column_of = (rows * tall)[:, None] + within[0], (columns * wide)[:, None] + within[1]
    return _array(data.reshape(-1), (row_of.reshape(-1), column_of.reshape(-1)), shape)


def _dia(archive: NpzArchive, shape: tuple[int, ...]) -> sparse.coo_array:
    height, width = _matrix(shape)
    offsets, data = _integers(archive, "offsets", 1), _numbers(archive, 2)
    if len(offsets) != len(data) or len(np.unique(offsets)) != len(offsets):
        raise _Malformed(f"it has {len(data)} diagonals at {len(offsets)} offsets")
    if len(offsets) and np.abs(offsets).max() >= _LARGEST:
        raise _Malformed("`offsets` has a number that is too large")
    columns = np.arange(min(data.shape[1], width), dtype=np.int64)
    rows = columns[None, :] - offsets[:, None]
    stored = (rows >= 0) & (rows < height) & (data[:, : len(columns)] != 0)
    return _array(data[:, : len(columns)][stored], (rows[stored], np.broadcast_to(columns, rows.shape)[stored]), shape)


def _coo(archive: NpzArchive, shape: tuple[int, ...]) -> sparse.coo_array:
    data = _numbers(archive, 1)
    if "coords" in archive:
        coordinates = tuple(_integers(archive, "coords", 2))
    else:
        coordinates = (_integers(archive, "row", 1), _integers(archive, "col", 1))
    if len(coordinates) != len(shape) or any(len(axis) != len(data) for axis in coordinates):
        raise _Malformed(f"it has {len(data)} values, and not so many coordinates of {len(shape)} dimensions")
    for number, (axis, size) in enumerate(zip(coordinates, shape, strict=True)):
        _require_inside(f"dimension {number}", axis, size)
    return _array(data, coordinates, shape)


_KINDS: Final[dict[str, Callable[[NpzArchive, tuple[int, ...]], sparse.coo_array]]] = {
    "csr": _csr,
    "csc": _csc,
    "coo": _coo,
    "bsr": _bsr,
    "dia": _dia,
}
"""The formats that `scipy.sparse.save_npz` writes."""
