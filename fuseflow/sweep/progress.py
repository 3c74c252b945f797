"""The progress of a sweep: how many tasks are done, the time that is left, and the best points so far."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from fuseflow.sweep.design_space import LabeledPoint
from fuseflow.sweep.point import Mode, TaskOutcome, value_name

MODE_WORDS: dict[Mode, str] = {"estimate": "expected ", "sample": "sampled ", "simulate": ""}
"""The word before the name of a value, by the mode in which it was measured."""


@dataclass(slots=True)
class SweepProgress:
    """The progress of a sweep.

    `total` is the number of tasks, as far as it is known. `objective` names a value for which less is better. `reused` is the
    number of done tasks that were done in an earlier run.
    """

    total: int
    objective: str
    done: int = 0
    failed: int = 0
    reused: int = 0
    clock: Callable[[], float] = time.monotonic
    best: dict[tuple[str, Mode], tuple[float, LabeledPoint]] = field(default_factory=dict)
    """The least value and its point, by workload and mode."""
    _began: float = field(init=False)

    def __post_init__(self) -> None:
        self._began = self.clock()

    @property
    def left(self) -> int:
        """The number of tasks that are left."""
        return max(0, self.total - self.done)

    def note(self, labeled: LabeledPoint, mode: Mode, outcome: TaskOutcome, reused: bool = False) -> None:
        """Count the outcome of the task of a point in a mode, which an earlier run did if `reused`, and note the best value."""
        self.done += 1
        self.reused += reused
        if not outcome.ok:
            self.failed += 1
            return
        value, key = outcome.number(value_name(mode, self.objective)), (labeled.point.workload, mode)
        if value is None:
            return
        if key not in self.best or value < self.best[key][0]:
            self.best[key] = value, labeled

    @property
    def seconds_left(self) -> float | None:
        """The seconds that are left at the rate of this run. None before a task was done in it."""
        new = self.done - self.reused
        return None if not new else self.left * (self.clock() - self._began) / new

    def line(self, axes: tuple[str, ...]) -> str:
        """Return the progress as one line of text, with the best point of all in the mode that was noted last. `axes` are the
        axes whose labels name the point."""
        parts = [f"{self.done:,} of {self.total:,}"]
        parts += [f"{self.failed:,} failed"] if self.failed else []
        if self.left and self.seconds_left is not None:
            parts.append(f"{duration(self.seconds_left)} left")
        if self.best:
            _, mode = list(self.best)[-1]
            value, labeled = min((best for (_, of), best in self.best.items() if of == mode), key=lambda best: best[0])
            name = labeled.name(axes)
            expected = MODE_WORDS[mode]
            parts.append(f"best {value:,} {expected}{self.objective}{f' at {name}' if name else ''}")
        return ", ".join(parts)


def duration(seconds: float) -> str:
    """Return a time as text.

    >>> duration(8.2), duration(100), duration(9000)
    ('8 s', '2 min', '2.5 h')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
