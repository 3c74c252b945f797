"""Memory of a sweep: what points are expected to take, and what there is, so that heavy ones run alone."""

from __future__ import annotations

import resource
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from fuseflow.sweep.point import Task

BUDGET_SHARE = 0.85
"""Of the memory that is free when a sweep begins: what it may use."""
RESERVE_SHARE = 0.04
"""Of all memory: if less is free, something is ended before the system ends anything."""

_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def peak_memory() -> int:
    """The most bytes of memory that this process had, since `forget_peak` where the system can forget."""
    try:
        line = next(line for line in _STATUS.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    except (OSError, StopIteration):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def reset_peak_memory() -> None:
    try:
        _CLEAR.write_text("5")
    except OSError:
        return


def available_memory() -> int:
    return int(psutil.virtual_memory().available)


def memory_is_scarce() -> bool:
    """Whether the system is about to run out of memory."""
    found = psutil.virtual_memory()
    return bool(found.available < RESERVE_SHARE * found.total)


def memory_of(pid: int) -> int:
    """The bytes that a process has now; 0 if it is gone."""
    try:
        return int(psutil.Process(pid).memory_info().rss)
    except psutil.Error:
        return 0


@dataclass(slots=True)
class MemoryForecast:
    """What tasks are expected to take, of a `budget`: what those of the same source and mode took at most; before one has run, the
    share of one of `jobs`."""

    budget: int
    jobs: int
    _peaks: dict[tuple[str, str], int] = field(default_factory=dict)

    def learn(self, source: str, mode: str, peak: int) -> None:
        self._peaks[source, mode] = max(peak, self._peaks.get((source, mode), 0))

    def of(self, task: Task) -> int:
        return self._peaks.get((task.point.source, task.mode), self.budget // self.jobs)

    def fits(self, task: Task, beside: Iterable[tuple[Task, int]]) -> bool:
        """Whether a task can start beside those that run, each with what it uses now."""
        return self.of(task) + sum(max(self.of(other), now) for other, now in beside) <= self.budget
