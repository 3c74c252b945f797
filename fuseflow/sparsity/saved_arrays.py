"""Arrays in an archive of NumPy, whose shapes and types are known before they are read, so no archive can fill the memory."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator, Set
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fuseflow.errors import FileError

_MAGIC = b"\x93NUMPY\x01\x00"
_HINT = "save it again"
_BROKEN = (OSError, ValueError, EOFError, NotImplementedError, RuntimeError, zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error)
"""The errors of reading an archive that is cut off, encrypted or no archive."""


class SavedArrays:
    """The arrays of an archive by name."""

    def __init__(self, path: Path, archive: zipfile.ZipFile) -> None:
        self._path, self._archive = path, archive

    def require_names(self, names: Set[str]) -> None:
        """Raise `FileError` if the archive has not exactly the arrays of these names."""
        there = {info.filename.removesuffix(".npy") for info in self._archive.infolist()}
        if there != names:
            name = min(there ^ names)
            raise FileError(f"`{self._path}` {'has an unknown' if name in there else 'lacks the'} array `{name}`", hint=_HINT)

    def read(self, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
        """Return an array. Raise `FileError` if it has another shape or type, before there is memory for it."""
        header, values = self._parts(name, prod(shape) * dtype.itemsize)
        expected = f"{{'descr': {np.lib.format.dtype_to_descr(dtype)!r}, 'fortran_order': False, 'shape': {shape}, }}"
        if header != expected:
            raise FileError(f"`{name}` in `{self._path}` is no array of {dtype} in the shape {list(shape)}", hint=_HINT)
        if len(values) != prod(shape) * dtype.itemsize:
            raise FileError(f"`{name}` in `{self._path}` is cut off", hint=_HINT)
        return np.frombuffer(values, dtype).reshape(shape)

    def _parts(self, name: str, size: int) -> tuple[str, bytes]:
        """Return the header of an array, and up to `size` + 1 bytes of its values. One more byte means too many."""
        try:
            info = self._archive.getinfo(f"{name}.npy")
            if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):  # Others are not unpacked part by part.
                raise ValueError("it is packed in an unknown way")
            with self._archive.open(info) as file:
                start = file.read(len(_MAGIC) + 2)
                length = int.from_bytes(start[len(_MAGIC) :], "little")
                if not start.startswith(_MAGIC):
                    raise ValueError("it is no array of NumPy")
                header = file.read(length)
                return header.decode("latin-1").rstrip(), file.read(size + 1)
        except (KeyError, *_BROKEN) as error:
            raise FileError(f"cannot read `{name}` in `{self._path}`: {error}", hint=_HINT) from None


@contextmanager
def saved_arrays(path: Path) -> Iterator[SavedArrays]:
    """Yield the arrays of an archive while it is open. Raise `FileError` for a file that is no archive."""
    if not path.is_file():
        raise FileError(f"cannot read `{path}`: there is no such file", hint=_HINT)
    try:
        archive = zipfile.ZipFile(path)
    except _BROKEN as error:
        raise FileError(f"cannot read `{path}`: {error}", hint=_HINT) from None
    with archive:
        yield SavedArrays(path, archive)
