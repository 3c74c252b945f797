"""What would become of a run, found in a copy of the process: it goes on there, and here everything stays as it is.

The state of a run is arrays that refer to each other by address; a forked process has them at the same addresses, and only copies what it
changes.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable

POSSIBLE = hasattr(os, "fork")
NOTHING = b"-"


class TrialFailure(Exception):
    """The copy failed, or was ended."""


def tried(attempt: Callable[[Callable[[int], None]], int | None]) -> int | None:
    """What `attempt` returns, in a copy of the process; it gets what to call now and then, which ends the copy if the original has
    ended. Raises `TrialFailure` if the copy ends without an answer."""
    reading, writing = os.pipe()
    original = os.getpid()
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", DeprecationWarning
        )  # threads of others are not in the copy, which calls nothing of theirs
        child = os.fork()
    if child == 0:
        _answer(attempt, writing, original)
    os.close(writing)
    with open(reading, "rb") as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    if not said:
        raise TrialFailure
    return None if said == NOTHING else int(said)


def _answer(attempt: Callable[[Callable[[int], None]], int | None], writing: int, original: int) -> None:
    """Ends the process, whatever happens: nothing that the original would do on its way out is done twice."""

    def alive(_: int) -> None:
        if os.getppid() != original:
            os._exit(1)

    try:
        found = attempt(alive)
        os.write(writing, NOTHING if found is None else str(found).encode())
    finally:
        os._exit(0)
