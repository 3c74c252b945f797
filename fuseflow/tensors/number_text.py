"""Columns of numbers in a text. One parser, the one of NumPy, decides what a number is. A line that it does not read is an error."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from io import BytesIO
from typing import Any

import numpy as np
import numpy.typing as npt


class NotARow(Exception):
    """The first line of a text that is no row of its table. Lines are counted from 0."""

    def __init__(self, line: int) -> None:
        super().__init__(line)
        self.line = line


def read_columns(text: bytes, types: Sequence[type[np.generic]]) -> list[npt.NDArray[Any]]:
    """Return the columns of a table that has a row on each line that is not blank, with blanks between its numbers.

    Raise `NotARow` for a line with more or fewer numbers than there are types, with a word that is no number of its type, or with
    a number that is too large for it.

    >>> [column.tolist() for column in read_columns(b"1 0.5\\n\\n2 -inf", [np.int64, np.float64])]
    [[1, 2], [0.5, -inf]]
    """
    try:
        table = _parse(BytesIO(text), types)
    except ValueError:
        raise NotARow(_first_refused(text.split(b"\n"), types)) from None
    columns = [np.ascontiguousarray(table[name]) for name in table.dtype.names or ()]
    infinite = sum(int(np.isinf(column).sum()) for column in columns)
    if infinite > text.lower().count(b"inf"):
        rows = np.flatnonzero(np.any([np.isinf(column) for column in columns], axis=0))
        numbers, lines = row_lines(text), text.lower().split(b"\n")
        raise NotARow(next(line for line in (numbers[row] for row in rows) if b"inf" not in lines[line]))
    return columns


def row_lines(text: bytes) -> list[int]:
    """Return the line of each row of a table, counted from 0. It loops over all lines, so it is for messages."""
    return [number for number, line in enumerate(text.split(b"\n")) if line.decode("latin-1").strip()]


def _parse(lines: Iterable[bytes], types: Sequence[type[np.generic]]) -> npt.NDArray[Any]:
    row = np.dtype([(str(number), type) for number, type in enumerate(types)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # It says "input contained no data".
        return np.loadtxt(lines, dtype=row, comments=None, encoding="latin-1", ndmin=1)


def _first_refused(lines: list[bytes], types: Sequence[type[np.generic]]) -> int:
    """Return the number of the first line that is no row; there must be one. Each step halves the lines in question, so all steps
    together read them once."""
    first, end = 0, len(lines)
    while end - first > 1:
        middle = (first + end) // 2
        try:
            _parse(lines[first:middle], types)
            first = middle
        except ValueError:
            end = middle
    return first
