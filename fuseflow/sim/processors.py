"""The processors that this process may use, which its simulations share."""

from __future__ import annotations

import os
from threading import Lock


class Processors:
    """At most `limit` processors, all that the process may run on if that is None. Whoever takes some gives them back."""

    def __init__(self, limit: int | None = None) -> None:
        self.limit = cores() if limit is None else limit
        self._taken, self._lock = 0, Lock()

    def take(self, most: int) -> int:
        """Take up to `most` processors that are free, and return their number."""
        with self._lock:
            taken = max(min(most, self.limit - self._taken), 0)
            self._taken += taken
            return taken

    def give_back(self, count: int) -> None:
        with self._lock:
            self._taken -= count


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


PROCESSORS = Processors()
"""Those of this process. `--threads` sets their limit."""
