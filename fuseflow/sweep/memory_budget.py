"""The memory budget of a sweep: the expected memory of points and the free memory, so that heavy points run alone."""

from __future__ import annotations

import resource
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from fuseflow.sweep.point import Task

BUDGET_SHARE = 0.85
"""The share of the memory that is free when a sweep begins that it may use."""
RESERVE_SHARE = 0.04
"""The share of all memory that stays free. If less is free, a task is ended before the system ends a process."""

_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def peak_memory() -> int:
    """Return the most bytes of memory that this process had, since `reset_peak_memory` where the system can reset it."""
    try:
        line = next(line for line in _STATUS.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    except (OSError, StopIteration):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def reset_peak_memory() -> None:
    """Reset the peak of this process, where the system can."""
    try:
        _CLEAR.write_text("5")
    except OSError:
        return


def available_memory() -> int:
    """Return the bytes of memory that are free."""
    return int(psutil.virtual_memory().available)


def memory_is_scarce() -> bool:
    """Return whether the system is about to run out of memory."""
    memory = psutil.virtual_memory()
    return bool(memory.available < RESERVE_SHARE * memory.total)


def memory_of(pid: int) -> int:
    """Return the bytes that a process has now; 0 if it is gone."""
    try:
        return int(psutil.Process(pid).memory_info().rss)
    except psutil.Error:
        return 0


@dataclass(slots=True)
class MemoryForecast:
    """A forecast of the bytes of memory that tasks take, of a `budget`.

    A task is expected to take the most that a task of the same source and mode took so far. Before such a task has run, it is
    expected to take the budget divided by `jobs`.
    """

    budget: int
    jobs: int
    _peaks: dict[tuple[str, str], int] = field(default_factory=dict)

    def learn(self, source: str, mode: str, peak: int) -> None:
        """Take the peak of the memory of a task of this source and mode into account."""
        self._peaks[source, mode] = max(peak, self._peaks.get((source, mode), 0))

    def bytes_of(self, task: Task) -> int:
        """Return the bytes that a task is expected to take."""
        return self._peaks.get((task.point.source, task.mode), self.budget // self.jobs)

    def fits(self, task: Task, beside: Iterable[tuple[Task, int]]) -> bool:
        """Return whether a task can start beside the tasks that run, each with the bytes that it uses now."""
        return self.bytes_of(task) + sum(max(self.bytes_of(other), now) for other, now in beside) <= self.budget
