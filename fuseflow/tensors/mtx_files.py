"""Matrices in MatrixMarket files, `.mtx`: https://math.nist.gov/MatrixMarket/formats.html.

A file is read as the format defines it, or refused with the line that is against it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from fuseflow.errors import FileError
from fuseflow.filesystem import read_bytes
from fuseflow.tensors.number_text import NotARow, read_columns, row_lines

if TYPE_CHECKING:
    from scipy import sparse

Numbers = npt.NDArray[Any]

_MOST_ELEMENTS: Final = 2**62
_LEAST: Final = {"integer": 1 - 2**63, "unsigned-integer": 0}
"""The least value of a field of integers. A skew-symmetric matrix has also the negative of every value."""
_VALUE: Final = {
    "real": "a real number that 64 bits hold",
    "double": "a real number that 64 bits hold",
    "integer": "an integer of 64 bits",
    "unsigned-integer": "an integer of 63 bits",
    "pattern": "",
}
"""The value of an entry of each field."""
_FORTRAN_EXPONENT: Final = bytes.maketrans(b"dD", b"ee")


def read_mtx(path: Path) -> Numbers | sparse.coo_array:
    """Return the matrix in a MatrixMarket file, dense or sparse. The entries of a pattern are 1.

    Real numbers may have exponents of Fortran, as in `1.5D+02`. A Hermitian matrix of real numbers is a symmetric one. Raise `FileError`
    with the line if the file is none, has complex numbers, has other entries than its header states, or entries on both sides of the
    diagonal of a matrix that stores one of them.
    """
    file = _open(path)
    columns = _read_entries(file)
    stored = len(columns[0])
    if stored != file.stored:
        sizes = f"{file.rows:,} x {file.columns:,}"
        raise file.error(
            file.sizes_at, f"{file.stored:,} entries of {sizes} are stated here, and {stored:,} lines of them follow"
        )
    values = columns[-1] if _VALUE[file.field] else np.ones(stored)
    if file.field in _LEAST:
        file.require(values >= _LEAST[file.field], "the value is too small")
    return _dense(file, values) if file.layout == "array" else _sparse(file, columns[0], columns[1], values)


@dataclass(frozen=True, slots=True)
class _File:
    """The header of a file, and the text of the lines behind line `sizes_at`, which has the sizes."""

    path: Path
    layout: str
    field: str
    symmetry: str
    rows: int
    columns: int
    stored: int
    sizes_at: int
    entries: bytes

    def error(self, line: int, why: str, hint: str = "") -> FileError:
        return _error(self.path, line, why, hint)

    def require(self, holds: npt.NDArray[np.bool_], why: str) -> None:
        """Raise `FileError`, which says `why`, with the line of the first entry for which `holds` is false."""
        if not holds.all():
            raise self.entry_error(row_lines(self.entries)[int(np.argmin(holds))], why)

    def entry_error(self, number: int, why: str) -> FileError:
        """Return an error, which says `why`, at a line of the entries, counted from 0."""
        text = self.entries.split(b"\n")[number].decode("latin-1").strip()
        return self.error(self.sizes_at + 1 + number, f"`{text[:40]}`: {why}")


def _error(path: Path, line: int, why: str, hint: str = "") -> FileError:
    return FileError(f"`{path}`, line {line}: {why}", hint=hint)


def _open(path: Path) -> _File:
    """Read the header of a file."""
    first, _, rest = read_bytes(path).partition(b"\n")
    banner = first[:1000].decode("latin-1").lower().split()
    if len(banner) != 5 or banner[0] not in ("%%matrixmarket", "%matrixmarket") or banner[1] != "matrix":
        raise FileError(f"`{path}` is no MatrixMarket file: its first line is no `%%MatrixMarket matrix ...`")
    _, _, layout, field, symmetry = banner
    if symmetry not in ("general", "symmetric", "skew-symmetric", "hermitian"):
        raise _error(path, 1, f"the symmetry `{symmetry[:40]}` is unknown")
    if field == "complex":
        raise _error(path, 1, "the numbers are complex", "store real numbers")
    if layout not in ("array", "coordinate") or field not in _VALUE or (layout, field) == ("array", "pattern"):
        raise _error(path, 1, f"the kind `{f'{layout} {field}'[:40]}` of a matrix is unknown")
    if field == "pattern" and symmetry not in ("general", "symmetric"):
        raise _error(path, 1, f"a pattern has no values, so it is not {symmetry}")
    at, line = 1, b"%"
    while rest and (not line.strip() or line.lstrip().startswith(b"%")):
        line, _, rest = rest.partition(b"\n")
        at += 1
    words = line.split()
    if len(words) != (2 if layout == "array" else 3) or not all(word.isdigit() and len(word) < 19 for word in words):
        raise _error(path, at, "expected a line with the sizes of the matrix" + (" and its entries" if layout != "array" else ""))
    rows, columns, *entries = map(int, words)
    if symmetry != "general" and rows != columns:
        raise _error(path, at, f"a {symmetry} matrix is square, and this one is {rows:,} x {columns:,}")
    if rows * columns >= _MOST_ELEMENTS:
        raise _error(path, at, f"{rows:,} x {columns:,} elements are too many")
    below = rows * (rows - 1) // 2
    whole = {"general": rows * columns, "skew-symmetric": below}.get(symmetry, below + rows)
    return _File(path, layout, field, symmetry, rows, columns, entries[0] if entries else whole, at, rest)


def _read_entries(file: _File) -> list[Numbers]:
    """Return the columns of numbers in the lines of the entries."""
    value, text = _VALUE[file.field], file.entries
    whole = file.field in _LEAST
    types: list[type[np.generic]] = [np.int64, np.int64] if file.layout == "coordinate" else []
    types += [np.int64 if whole else np.float64] if value else []
    if value and not whole:
        text = text.translate(_FORTRAN_EXPONENT)
    try:
        return read_columns(text, types)
    except NotARow as error:
        place = "" if file.layout == "array" else "a row, a column and " if value else "a row and a column"
        raise file.entry_error(error.line, f"expected {place}{value}") from None


def _dense(file: _File, values: Numbers) -> Numbers:
    """Return a matrix whose elements, or the ones on and below its diagonal, are listed column by column."""
    shape = file.rows, file.columns
    if file.symmetry == "general":
        return np.ascontiguousarray(values.reshape(shape, order="F"))
    sign = -1 if file.symmetry == "skew-symmetric" else 1
    columns, rows = np.triu_indices(file.rows, 1 if sign < 0 else 0)
    matrix = np.zeros(shape, values.dtype)
    matrix[columns, rows] = sign * values
    matrix[rows, columns] = values
    return matrix


def _sparse(file: _File, rows: Numbers, columns: Numbers, values: Numbers) -> sparse.coo_array:
    from scipy import sparse  # see `pack.is_scipy`

    for name, numbers, size in (("row", rows, file.rows), ("column", columns, file.columns)):
        file.require((numbers >= 1) & (numbers <= size), f"the {name} is outside of 1..{size:,}")
    rows, columns = rows - 1, columns - 1
    if file.symmetry != "general":
        side = np.sign(rows - columns)
        if file.symmetry == "skew-symmetric":
            file.require(side != 0, "a skew-symmetric matrix stores nothing on its diagonal")
        first = next(iter(side[side != 0][:1]), 0)
        file.require((side == first) | (side == 0), f"a {file.symmetry} matrix stores entries on one side of its diagonal only")
        mirrored = np.flatnonzero(side)
        sign = -1 if file.symmetry == "skew-symmetric" else 1
        values = np.concatenate([values, sign * values[mirrored]])
        rows, columns = np.concatenate([rows, columns[mirrored]]), np.concatenate([columns, rows[mirrored]])
    return sparse.coo_array((values, (rows, columns)), shape=(file.rows, file.columns))
