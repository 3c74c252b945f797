"""The moment at which a search stops with the best that it has found."""

from __future__ import annotations

import time
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Deadline:
    """A moment at which a search stops with the best that it has found, in seconds of the monotonic clock; None is never."""

    at: float | None = None

    @classmethod
    def after(cls, seconds: float | None) -> Deadline:
        """Return the moment in this number of seconds; None is never."""
        return cls(None if seconds is None else time.monotonic() + seconds)

    @property
    def passed(self) -> bool:
        return self.at is not None and time.monotonic() >= self.at
