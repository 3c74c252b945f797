"""The standard streams of a process that was started without them."""

from __future__ import annotations

import io
import os
import sys
from typing import TextIO


def open_closed_streams() -> None:
    """Open any of the three standard streams that is closed. Otherwise the first file that is opened would get the number of a closed one,
    and printed text would go into that file or be lost without a word. Each write to a standard output that was closed is an `OSError`."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_WRONLY if number == 2 else os.O_RDONLY)  # The lowest number that is free is this one.
    sys.stdout = sys.stdout or _unbuffered(1)
    sys.stderr = sys.stderr or _unbuffered(2)


def drop_output() -> None:
    """Drop the text in the buffer of standard output, which could not be written. Python would try again when the process ends,
    and end with a status of its own, 120."""
    sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - until the process ends


def _unbuffered(number: int) -> TextIO:
    """Return a stream to the open file `number` that keeps no text that it could not write: Python would try again at the end."""
    return io.TextIOWrapper(io.FileIO(number, "w", closefd=False), write_through=True)  # type: ignore[type-var,arg-type,unused-ignore]
