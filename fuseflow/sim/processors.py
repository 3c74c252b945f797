"""The processors that this process may use, which its simulations share."""

from __future__ import annotations

import os
from threading import Lock


class Processors:
    """At most `limit` processors. If that is None: all that the process may run on, but for those that other processes kept busy in the
    last minute. Whoever takes some gives them back."""

    def __init__(self, limit: int | None = None) -> None:
        self.limit = limit
        self._taken, self._lock = 0, Lock()

    @property
    def count(self) -> int:
        """The processors that may be taken together."""
        if self.limit is not None:
            return self.limit
        others = max(round(os.getloadavg()[0]) - max(self._taken, 1), 0) if hasattr(os, "getloadavg") else 0
        return max(cores() - others, 1)

    def take(self, most: int) -> int:
        """Take up to `most` processors that are free, and return their number."""
        with self._lock:
            taken = max(min(most, self.count - self._taken), 0)
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
