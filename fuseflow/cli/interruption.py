"""The effect of Ctrl-C: while modules are imported it ends the process at once, and while a command works it raises `KeyboardInterrupt`.

A module that is interrupted in the middle of its import raises whatever it likes, and nothing is written before a command works.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

INTERRUPTED: Final = 130
"""The exit status of a command that was interrupted, as shells have it."""


class _Interruptions:
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
        _let_python_forget()


def was_interrupted() -> bool:
    """Return whether Ctrl-C was pressed while a command worked."""
    return _Interruptions.seen


def _let_python_forget() -> None:
    """Reset Python's note that an interruption left a text that was executed with `exec`, as `dataclasses` and `namedtuple` do.
    Under `python -m`, Python would end the process by that signal, though the interruption was handled. The note is reset
    whenever Python begins to execute a text."""
    exec("")


def _end(_signal: int, _frame: FrameType | None) -> None:
    os.write(2, b"interrupted\n")
    os._exit(INTERRUPTED)


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    _Interruptions.seen = True
    raise KeyboardInterrupt
