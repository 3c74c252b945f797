"""Sparse arrays of scipy in `.npz` archives and matrices in `.mtx` files, checked before scipy's compiled code sees them.

That code trusts its arguments: an archive whose positions are negative makes it write outside of its memory.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np
import numpy.typing as npt

from fuseflow.errors import FileError
from fuseflow.filesystem import read_bytes
from fuseflow.tensors.npy_files import NpzArchive

if TYPE_CHECKING:
    from scipy import sparse

_LARGEST: Final = 2**62
"""No product of two sizes, or a coordinate, may need more than 64 bits."""
_MOST_STORED: Final = 1 << 33


class Arrays(Protocol):
    """Arrays by name."""

    def __getitem__(self, name: str, /) -> npt.NDArray[Any]: ...


class _Malformed(Exception):
    """What is wrong with the arrays of a sparse array."""


def read_sparse(path: Path, archive: NpzArchive) -> sparse.coo_array:
    """Return the sparse array that `scipy.sparse.save_npz` wrote. Raise `FileError` for one whose parts do not fit together."""
    kind = _text(archive, path)
    if kind not in _KINDS:
        raise FileError(f"`{path}` has the sparse format `{kind[:40]}`", hint=f"known: {', '.join(_KINDS)}")
    try:
        shape = _shape(archive)
        array: sparse.coo_array = _KINDS[kind](archive, shape)
        return array
    except _Malformed as error:
        raise FileError(f"`{path}` is no sparse array: {error}", hint="write it with `scipy.sparse.save_npz`") from None


def read_named_csr(path: Path, archive: NpzArchive, part: str) -> sparse.coo_array:
    """Return a CSR matrix whose arrays have the names `part_data`, `part_indices`, `part_indptr` and `part_shape`. Raise `FileError` if one
    is missing, or if they do not fit together."""
    arrays = _Part(archive, part)
    try:
        shape = _shape(arrays)
        if len(shape) != 2:
            raise _Malformed(f"`{part}_shape` has {len(shape)} elements")
        return _csr(arrays, shape)
    except _Malformed as error:
        raise FileError(f"`{path}` has no matrix `{part}`: {error}") from None


@dataclass(frozen=True, slots=True)
class _Part:
    """The arrays of an archive whose names begin alike."""

    archive: NpzArchive
    name: str

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        return self.archive[f"{self.name}_{name}"]


def _text(archive: NpzArchive, path: Path) -> str:
    value = archive["format"]
    if value.dtype.kind not in "SU" or value.size != 1:
        raise FileError(f"`{path}` does not say its sparse format", hint="write it with `scipy.sparse.save_npz`")
    text = value.reshape(()).item()
    return text.decode("latin-1") if isinstance(text, bytes) else str(text)


def _shape(archive: Arrays) -> tuple[int, ...]:
    extents = _integers(archive, "shape", 1).tolist()
    if not 1 <= len(extents) <= 32 or min(extents) < 0 or prod(max(extent, 1) for extent in extents) >= _LARGEST:
        raise _Malformed(f"its shape is {extents[:8]}")
    return tuple(extents)


def _integers(archive: Arrays, name: str, rank: int) -> npt.NDArray[np.int64]:
    array = archive[name]
    if array.dtype.kind not in "iu" or array.ndim != rank:
        raise _Malformed(f"`{name}` is not {'a list' if rank == 1 else 'a table'} of whole numbers")
    if array.dtype.kind == "u" and array.size and int(array.max()) >= _LARGEST:
        raise _Malformed(f"`{name}` has a number that is too large")
    return array.astype(np.int64, copy=False)


def _numbers(archive: Arrays, rank: int) -> npt.NDArray[Any]:
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


def _compressed(archive: Arrays, rows: int, columns: int, rank: int) -> tuple[npt.NDArray[Any], Any, Any]:
    """Return the values, and the row and column of each, of a matrix that is compressed by rows."""
    indptr, indices, data = _integers(archive, "indptr", 1), _integers(archive, "indices", 1), _numbers(archive, rank)
    if len(indices) != len(data):
        raise _Malformed(f"it has {len(data)} values at {len(indices)} coordinates")
    if len(indptr) != rows + 1 or indptr[0] != 0 or indptr[-1] != len(indices) or (np.diff(indptr) < 0).any():
        raise _Malformed(f"`indptr` does not divide {len(indices)} values among {rows} rows or columns")
    _require_inside("indices", indices, columns)
    return data, np.repeat(np.arange(rows, dtype=np.int64), np.diff(indptr)), indices


def _array(data: npt.NDArray[Any], coordinates: Any, shape: tuple[int, ...]) -> sparse.coo_array:
    from scipy import sparse  # see `scipy_arrays`

    if data.dtype == np.float16:  # scipy has no such arrays
        data = data.astype(np.float32)
    array: sparse.coo_array = sparse.coo_array((data, tuple(coordinates)), shape=shape)
    return array


def _matrix(shape: tuple[int, ...]) -> tuple[int, int]:
    if len(shape) != 2:
        raise _Malformed(f"its shape is {list(shape)}, and a matrix has two dimensions")
    return shape[0], shape[1]


def _csr(archive: Arrays, shape: tuple[int, ...]) -> sparse.coo_array:
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


def read_mtx(path: Path) -> Any:
    """Return the matrix in a MatrixMarket file, dense or sparse. Raise `FileError` if it says that it has more entries than the file has
    bytes for."""
    content = read_bytes(path)
    header = _mtx_header(path, content)
    if header.rows * header.columns >= _LARGEST:
        raise FileError(f"`{path}` has {header.rows:,} x {header.columns:,} elements, which is too many")
    entries = _entries(path, content, header)
    from scipy import io  # see `scipy_arrays`

    return io.mmread(BytesIO(header.text + entries + b"\n"))


@dataclass(frozen=True, slots=True)
class _MtxHeader:
    """What the first lines of a MatrixMarket file state. The entries begin at the byte `start`, each with so many `positions` before its
    `numbers`. `text` is the header without comments."""

    rows: int
    columns: int
    stored: int
    positions: int
    numbers: int
    start: int
    text: bytes


_NUMBERS_OF_FIELD: Final = {"real": 1, "double": 1, "integer": 1, "unsigned-integer": 1, "complex": 2, "pattern": 0}
_NUMBER: Final = rb"[-+]?(?:\d++\.?+\d*+(?:[eEdD][-+]?\d++)?+|\.\d++(?:[eEdD][-+]?\d++)?+|[nN][aA][nN]|[iI][nN][fF](?:inity)?+)"


def _mtx_header(path: Path, content: bytes) -> _MtxHeader:
    """Return the header of a file."""
    lines = BytesIO(content)
    banner = lines.readline(1000).decode("latin-1").lower().split()
    if len(banner) != 5 or banner[0] not in ("%%matrixmarket", "%matrixmarket") or banner[1] != "matrix":
        raise FileError(f"`{path}` is no MatrixMarket file: its first line is no `%%MatrixMarket matrix ...`")
    _, _, layout, field, symmetry = banner
    if symmetry not in ("general", "symmetric", "skew-symmetric", "hermitian"):
        raise FileError(f"`{path}` has a matrix of the unknown symmetry `{symmetry[:40]}`")
    if layout not in ("array", "coordinate") or field not in _NUMBERS_OF_FIELD or (layout, field) == ("array", "pattern"):
        raise FileError(f"`{path}` has a matrix of the unknown kind `{layout} {field}`")
    line = next((text for text in lines if text.strip() and not text.lstrip().startswith(b"%")), b"")
    words = line.split()
    if len(words) != (2 if layout == "array" else 3) or not all(word.isdigit() and len(word) < 19 for word in words):
        raise FileError(f"`{path}` has no line with the sizes of its matrix")
    rows, columns, *entries = map(int, words)
    if layout == "array" and symmetry != "general" and rows != columns:
        raise FileError(f"`{path}` has a {symmetry} matrix of {rows:,} x {columns:,}")
    below = rows * (rows - 1) // 2
    whole = {"general": rows * columns, "skew-symmetric": below}.get(symmetry, below + rows)
    stored = entries[0] if entries else whole
    text = f"%%MatrixMarket matrix {layout} {field} {symmetry}\n{' '.join(str(int(word)) for word in words)}\n".encode()
    return _MtxHeader(rows, columns, stored, 2 if entries else 0, _NUMBERS_OF_FIELD[field], lines.tell(), text)


def _entries(path: Path, content: bytes, header: _MtxHeader) -> bytes:
    """Return the lines of the entries. Raise `FileError` unless each is as many numbers as the header says. (Where there is anything else,
    scipy's reader reads and writes outside of its memory.)"""
    body = content[header.start :].strip(b" \t\r\n")
    count = body.count(b"\n") + bool(body)
    if count != header.stored:
        body = b"\n".join(line for line in body.split(b"\n") if line.strip())
        count = body.count(b"\n") + bool(body)
    if count != header.stored:
        sizes = f"{header.rows:,} x {header.columns:,}"
        raise FileError(f"`{path}` says that it has {header.stored:,} entries of {sizes}, and has {count:,} lines of them")
    word = rb"[ \t]*+" + rb"[ \t]++".join([rb"\d++"] * header.positions + [_NUMBER] * header.numbers) + rb"[ \t\r]*+"
    end = match.end() if (match := re.match(rb"(?:" + word + rb"(?:\n|\Z))*+", body)) else 0
    if end != len(body):
        raise FileError(f"`{path}` has an entry `{body[end : end + 40].decode('latin-1').partition(chr(10))[0]}`")
    return body
