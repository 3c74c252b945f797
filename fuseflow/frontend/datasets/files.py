"""Finding and reading the raw files of a data set. Errors say which file is missing and where to get it, or which file is damaged."""

from __future__ import annotations

import gzip
import warnings
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

import numpy as np
import numpy.typing as npt

from fuseflow.errors import DataError, FileError
from fuseflow.filesystem.reading import MOST_BYTES
from fuseflow.tensors.npy_files import NpzArchive, open_npz

T = TypeVar("T", bound=np.generic)
_FREE_BYTES: Final = 8 << 20
_MOST_RATIO: Final = 100
"""A packed table may hold this many times its size, or `_FREE_BYTES`: a file of a few kilobytes must not take minutes."""


@dataclass(frozen=True, slots=True)
class RawFiles:
    """The raw files of a data set, whose `title` messages have: the `places`, paths below a data directory, in one of which all `files`
    lie, and the `source` from which they come."""

    title: str
    places: tuple[str, ...]
    files: tuple[str, ...]
    source: str


def find_folder(raw: RawFiles, data_dir: Path | None) -> Path:
    """Return the first folder of the places that has all files. Raise `DataError` that names the missing files and their source."""
    title, files, advice = raw.title, raw.files, f"get it from {raw.source}"
    if data_dir is None:
        hint = f"pass their directory with --data-dir; {advice}; or take `synthetic:`"
        raise DataError(f"data set {title} needs its raw files", hint=hint)
    if not data_dir.is_dir():
        raise DataError(f"no directory {data_dir}", hint=f"the raw files of {title} go there; {advice}")
    folders = [data_dir / place for place in raw.places]
    partial = [folder for folder in folders if any((folder / file).exists() for file in files)]
    for folder in partial:
        if all((folder / file).is_file() for file in files):
            return folder
    if partial:
        missing = next(file for file in files if not (partial[0] / file).is_file())
        raise DataError(f"{title}: there is no {partial[0] / missing}", hint=advice)
    raise DataError(f"no files of {title} in {data_dir}", hint=f"put {', '.join(files)} there or in {folders[0]}; {advice}")


@contextmanager
def open_archive(file: Path) -> Iterator[NpzArchive]:
    """Yield the arrays of a `.npz` file by name, without unpickling anything. Raise `DataError` for a damaged file."""
    try:
        with open_npz(file) as archive:
            yield archive
    except FileError as error:
        raise DataError(error.message, hint=error.hint) from error


def read_csv(file: Path, columns: int | None, dtype: type[T]) -> npt.NDArray[T]:
    """Return the numbers of a `.csv.gz` file, [rows, columns]. Raise `DataError` if it is damaged or does not have `columns` columns,
    unless that is None."""
    try:
        with _packed(file) as stream, warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # It says "input contained no data".
            table = np.loadtxt(stream, delimiter=",", dtype=dtype, ndmin=2, comments=None, encoding="ascii")
    except ValueError as error:
        raise DataError(f"{file} is not a table of numbers: {str(error).partition(';')[0]}") from error
    if columns is not None and table.size and table.shape[1] != columns:
        raise DataError(f"{file} has {table.shape[1]} columns, not {columns}")
    return table if table.size else table.reshape(0, columns or 0)


def read_packed(file: Path) -> bytes:
    """Return the content of a `.gz` file. Raise `DataError` if it is damaged or holds too much."""
    with _packed(file) as stream:
        content = stream.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise DataError(f"{file} holds more than {MOST_BYTES:,} bytes")
    return content


@contextmanager
def _packed(file: Path) -> Iterator[gzip.GzipFile]:
    """Yield the stream of a `.gz` file, which holds no more than is sensible for its size. Raise `DataError` if it is damaged."""
    try:
        _require_bounded(file)
        with gzip.open(file) as stream:
            yield stream
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"cannot read {file}: {getattr(error, 'strerror', None) or error}") from error


def _require_bounded(file: Path) -> None:
    """Raise `DataError` for a packed file that holds far more than its size."""
    most, held = max(_FREE_BYTES, _MOST_RATIO * file.stat().st_size), 0
    with gzip.open(file) as stream:
        while part := stream.read(_FREE_BYTES):
            held += len(part)
            if held > most:
                raise DataError(f"{file} holds far more than its {file.stat().st_size:,} bytes", hint="no table of a graph does")
