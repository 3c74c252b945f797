"""The process of a command: its standard streams, which may be closed, and the effect of Ctrl-C.

Ctrl-C ends the process at once while modules are imported, and raises `KeyboardInterrupt` while a command works. A module that is
interrupted in the middle of its import raises whatever it likes, and nothing is written before a command works.
"""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final, TextIO

INTERRUPTED: Final = 130
"""The exit status of a command that was interrupted, as shells have it."""

OUTPUT_CLOSED: Final = 141
"""The exit status of a command whose output was a pipe that its reader closed, as shells have it: 128 and the number of SIGPIPE."""


class Interruptions:
    """Whether the command of this process was interrupted: a library may turn a `KeyboardInterrupt` into another error."""

    seen = False


def end_when_interrupted() -> None:
    """Let Ctrl-C end the process at once, with one word and the status of an interruption."""
    signal.signal(signal.SIGINT, _end)


@contextmanager
def interruptible() -> Iterator[None]:
    """Let Ctrl-C raise `KeyboardInterrupt` inside the block. Only the main thread can receive it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        # Python notes that an interruption left a text that was executed with `exec`, as `dataclasses` and `namedtuple` do. Under
        # `python -m`, it would end the process by that signal, though the interruption was handled. To execute a text resets the note.
        exec("")


def _end(_signal: int, _frame: FrameType | None) -> None:
    os.write(2, b"interrupted\n")
    os._exit(INTERRUPTED)


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    Interruptions.seen = True
    raise KeyboardInterrupt


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
