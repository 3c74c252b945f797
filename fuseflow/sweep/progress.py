"""How far a sweep is: counts, the time that is left, the best so far."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from fuseflow.sweep.design_space import LabeledPoint
from fuseflow.sweep.point import Mode, TaskOutcome


@dataclass(slots=True)
class SweepProgress:
    """`total`: tasks, as far as known; `objective`: the value of which less is better; `reused`: tasks that were done before."""

    total: int
    objective: str
    done: int = 0
    failed: int = 0
    reused: int = 0
    clock: Callable[[], float] = time.monotonic
    best: dict[tuple[str, Mode], tuple[float, LabeledPoint]] = field(default_factory=dict)
    """By workload and mode: the least value, and where."""
    _began: float = field(init=False)

    def __post_init__(self) -> None:
        self._began = self.clock()

    @property
    def left(self) -> int:
        return max(0, self.total - self.done)

    def note(self, place: LabeledPoint, mode: Mode, outcome: TaskOutcome, reused: bool = False) -> None:
        self.done += 1
        self.reused += reused
        if not outcome.ok:
            self.failed += 1
            return
        value, which = outcome.values[self.objective], (place.point.workload, mode)
        if which not in self.best or value < self.best[which][0]:
            self.best[which] = value, place

    @property
    def seconds_left(self) -> float | None:
        """At the rate of this run; None before anything was done in it."""
        new = self.done - self.reused
        return None if not new else self.left * (self.clock() - self._began) / new

    def line(self, axes: tuple[str, ...]) -> str:
        """All of it in a line; of several workloads the best of the one that was seen last."""
        parts = [f"{self.done:,} of {self.total:,}"]
        parts += [f"{self.failed:,} failed"] if self.failed else []
        if self.left and self.seconds_left is not None:
            parts.append(f"{duration(self.seconds_left)} left")
        if self.best:
            (_, mode), (value, place) = list(self.best.items())[-1]
            where = place.named(axes)
            expected = "expected " if mode == "estimate" else ""
            parts.append(f"best {value:,} {expected}{self.objective}{f' at {where}' if where else ''}")
        return ", ".join(parts)


def duration(seconds: float) -> str:
    """
    >>> duration(8.2), duration(100), duration(9000)
    ('8 s', '2 min', '2.5 h')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
