"""A trial finds out how a run would go on, in a copy of the process: the run goes on in the copy, and the original stays as
it is.

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
"""The copy writes this for an answer of None."""


class TrialFailure(Exception):
    """The copy of the process failed, or was ended, before it gave an answer."""


def run_in_copy(attempt: Callable[[Callable[[int], None]], int | None]) -> int | None:
    """Return the result of `attempt` in a copy of the process. `attempt` gets a function to call now and then, which ends the
    copy if the original has ended. Raise `TrialFailure` if the copy ends without an answer."""
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
    """Write the answer of `attempt` and end the process, whatever happens: nothing that the original would do on its way out is
    done twice."""

    def check_parent(_: int) -> None:
        if os.getppid() != parent:
            os._exit(1)

    try:
        result = attempt(check_parent)
        os.write(write_end, NO_ANSWER if result is None else str(result).encode())
    finally:
        os._exit(0)
