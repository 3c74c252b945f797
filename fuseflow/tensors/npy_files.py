"""Reading arrays of NumPy from `.npy` files and `.npz` archives that may come from anywhere.

The sizes that a file states are compared with the bytes that it has before there is memory for them, and nothing in it is unpickled.
"""

from __future__ import annotations

import os
import tokenize
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import IO, Any, Final

import numpy as np
import numpy.typing as npt

from fuseflow.errors import FileError

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
