"""Reading arrays of NumPy from `.npy` files and `.npz` archives that may come from anywhere.

The sizes that a file states are compared with the bytes that it has before there is memory for them, and nothing in it is unpickled.

Sparse arrays of scipy are checked before scipy's compiled code sees them: it trusts its arguments, and does not survive all of them.
"""

from __future__ import annotations

import os
import tokenize
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from fuseflow.errors import FileError

if TYPE_CHECKING:
    from scipy import sparse


_FREE_BYTES: Final = 64 << 20
_MOST_RATIO: Final = 400
"""An archive may hold this many times its size, or `_FREE_BYTES`: a packed file of a few kilobytes must not fill the memory."""
_MOST_MEMBERS: Final = 10_000
_LONGEST_HEADER: Final = 10_000
_METHODS: Final = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
BROKEN: Final = (
    EOFError,
    NotImplementedError,
    RecursionError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
    tokenize.TokenError,  # NumPy tokenizes a header that is no expression
    zipfile.BadZipFile,
    zipfile.LargeZipFile,
    zlib.error,
)
"""The errors that Python raises for an archive or an array that is cut off, encrypted, or none."""


@contextmanager
def _file_errors(path: Path) -> Iterator[None]:
    """Turn the errors of reading `path` inside the block into a `FileError` that names the file."""
    try:
        yield
    except OSError as error:
        raise FileError(f"cannot read `{path}`: {error.strerror or error}") from error
    except BROKEN as error:
        raise FileError(f"cannot read `{path}`: {str(error).partition(chr(10))[0]}") from error


def read_npy(path: Path) -> npt.NDArray[Any]:
    """Return the array in a `.npy` file. Raise `FileError` for a file that holds no array of numbers or texts, or not all of it."""
    with _file_errors(path), path.open("rb") as stream:
        if stream.read(2) == b"PK":
            raise FileError(f"`{path}` does not hold one NumPy array", hint="an archive of arrays is a `.npz` file")
        stream.seek(0)
        return _read_array(stream, os.fstat(stream.fileno()).st_size)


class NpzArchive:
    """The arrays in an archive, by name: what follows the `prefix` that their names have. Each is read when it is needed."""

    def __init__(self, path: Path, archive: zipfile.ZipFile, prefix: str = "") -> None:
        self._path, self._archive, self._prefix = path, archive, prefix
        self._members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}

    @property
    def names(self) -> tuple[str, ...]:
        """The whole names of all arrays, in the order of the archive."""
        return tuple(self._members)

    def __contains__(self, name: str) -> bool:
        return self._prefix + name in self._members

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        """Return an array. Raise `FileError` if it is not there or cannot be read."""
        name = self._prefix + name
        if name not in self._members:
            raise FileError(f"`{self._path}` holds no array `{name}`")
        info = self._members[name]
        with _file_errors(self._path), self._archive.open(info) as stream:
            return _read_array(stream, info.file_size)

    def part(self, prefix: str) -> NpzArchive:
        """Return the arrays whose names begin with `prefix`, by the rest of their names."""
        return NpzArchive(self._path, self._archive, prefix)


@contextmanager
def open_npz(path: Path) -> Iterator[NpzArchive]:
    """Yield the arrays of a `.npz` archive while it is open. Raise `FileError` for a file that is no archive, or whose stated
    content is far larger than the file."""
    with _file_errors(path):
        archive = zipfile.ZipFile(path)
    with archive:
        infos = archive.infolist()
        most = max(_FREE_BYTES, _MOST_RATIO * path.stat().st_size)
        if len(infos) > _MOST_MEMBERS or sum(info.file_size for info in infos) > most:
            message = f"`{path}` says that it holds far more than its {path.stat().st_size:,} bytes"
            raise FileError(message, hint="write it without compression")
        if any(info.compress_type not in _METHODS or info.flag_bits & 1 for info in infos):
            raise FileError(f"`{path}` is packed in a way that NumPy does not use", hint="write it with `numpy.savez`")
        yield NpzArchive(path, archive)


def _read_array(stream: IO[bytes], size: int) -> npt.NDArray[Any]:
    """Read one array of NumPy from a stream of `size` bytes. Raise a `BROKEN` error for anything else."""
    version = np.lib.format.read_magic(stream)
    if version == (1, 0):
        header = np.lib.format.read_array_header_1_0(stream, max_header_size=_LONGEST_HEADER)
    elif version == (2, 0):
        header = np.lib.format.read_array_header_2_0(stream, max_header_size=_LONGEST_HEADER)
    else:  # only arrays whose elements have named parts need version 3
        raise ValueError(f"it is an array of version {version[0]}.{version[1]}, which no array of numbers needs")
    shape, in_columns, dtype = header
    if dtype.hasobject or dtype.kind not in "biufcSU":
        raise ValueError(
            "it holds Python objects, dates or records, not numbers"
            if dtype.hasobject
            else f"it holds elements of type `{dtype}`"
        )
    if any(extent < 0 for extent in shape):
        raise ValueError(f"it has the shape {list(shape)}")
    count, left = prod(shape), size - stream.tell()
    if count * dtype.itemsize != left:
        problem = "is cut off" if count * dtype.itemsize > left else "has more in it than the array"
        raise ValueError(
            f"it {problem}: an array of {list(shape)} has {count * dtype.itemsize:,} bytes, and {left:,} follow its header"
        )
    values = np.empty(count, dtype)
    filled, buffer = 0, values.view(np.uint8).data if count and dtype.itemsize else memoryview(b"")
    while filled < len(buffer):
        read = stream.readinto(buffer[filled:])  # type: ignore[attr-defined]
        if not read:
            raise EOFError("it is cut off")
        filled += read
    if not stream.read(1):  # the end of a member, where its checksum is compared
        return values.reshape(shape[::-1]).T if in_columns else values.reshape(shape)
    raise ValueError("it has more in it than the array")


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
