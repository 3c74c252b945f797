"""A trial continues a run in a copy of the process, to find out how the run would go on without changing it.

The state of a run is arrays that refer to each other by address. A forked process has them at the same addresses, and copies only
the pages that it changes.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from threading import Lock

FORK_AVAILABLE = hasattr(os, "fork")
"""Whether this system can copy a process."""
FORKING = Lock()
"""One thread at a time copies the process, since the filter of warnings belongs to all of them."""
NO_ANSWER = b"-"
"""The bytes that the copy writes for the result None."""


class TrialFailure(Exception):
    """The copy of the process failed, or was ended, before it gave an answer."""


def run_in_copy(attempt: Callable[[Callable[[int], None]], int | None]) -> int | None:
    """Return the result of `attempt`, called in a copy of the process. `attempt` gets a function to call now and then, which ends
    the copy if the original process has ended. Raise `TrialFailure` if the copy ends without an answer."""
    read_end, write_end = os.pipe()
    parent = os.getpid()
    with FORKING, warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", DeprecationWarning
        )  # threads of others are not in the copy, which calls nothing of theirs
        child = os.fork()
    if child == 0:
        _answer(attempt, write_end, parent)
    os.close(write_end)
    with open(read_end, "rb") as pipe:
        answer = pipe.read()
    os.waitpid(child, 0)
    if not answer:
        raise TrialFailure
    return None if answer == NO_ANSWER else int(answer)


def _answer(attempt: Callable[[Callable[[int], None]], int | None], write_end: int, parent: int) -> None:
    """In the copy, write the result of `attempt` to the pipe and end the process at once, so that no exit handler of the original
    runs twice. `parent` is the number of the original process."""

    def check_parent(_: int) -> None:
        if os.getppid() != parent:
            os._exit(1)

    try:
        result = attempt(check_parent)
        os.write(write_end, NO_ANSWER if result is None else str(result).encode())
    finally:
        os._exit(0)
