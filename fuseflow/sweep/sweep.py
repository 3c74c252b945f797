"""A sweep: its points, their results, the tasks that are left, and its progress."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from fuseflow.sweep.design_space import DesignSpace, LabeledPoint
from fuseflow.sweep.point import ALL_MODES, Mode, Task, TaskOutcome, code_version, value_name
from fuseflow.sweep.store import ResultRow, Store
from fuseflow.sweep.sweep_file import SweepFile
from fuseflow.sweep.time_left import Rest, TimeLeft

MODE_WORDS: dict[Mode, str] = {"estimate": "expected ", "sample": "sampled ", "simulate": ""}
"""The word before the name of a value, by the mode in which it was measured."""
PointCallback = Callable[[LabeledPoint, Task, TaskOutcome], None]
"""A function that is called with every point that was done."""


@dataclass(slots=True)
class SweepProgress:
    """The progress of a sweep.

    `total` is the number of tasks, as far as it is known. `objective` names a value for which less is better.
    """

    total: int
    objective: str
    done: int = 0
    failed: int = 0
    time: TimeLeft = field(default_factory=TimeLeft)
    """What is known of the seconds that the tasks take."""
    best: dict[tuple[str, Mode], tuple[float, LabeledPoint]] = field(default_factory=dict)
    """The least value and its point, by workload and mode."""

    @property
    def left(self) -> int:
        """The number of tasks that are left."""
        return max(0, self.total - self.done)

    def note(self, labeled: LabeledPoint, mode: Mode, outcome: TaskOutcome, reused: bool = False) -> None:
        """Count the outcome of the task of a point in a mode, which an earlier run did if `reused`, and note the best value."""
        self.done += 1
        labels = {**labeled.labels, "mode": mode}
        if reused:
            self.time.learn(labels, outcome.seconds)
        else:
            self.time.note(labeled.point.key(mode), labels, outcome.seconds)
        if not outcome.ok:
            self.failed += 1
            return
        value, key = outcome.number(value_name(mode, self.objective)), (labeled.point.workload, mode)
        if value is not None and (key not in self.best or value < self.best[key][0]):
            self.best[key] = value, labeled

    def expect(self, labeled: LabeledPoint, mode: Mode) -> None:
        """Note that the task of a point in a mode is left."""
        self.time.expect(labeled.point.key(mode), {**labeled.labels, "mode": mode})

    def take_tasks(self, other: SweepProgress) -> None:
        """Take over the number of tasks, and the tasks that are left, of a progress that knows more of them."""
        self.total = other.total
        self.time.take_tasks(other.time)

    def line(self, axes: tuple[str, ...]) -> str:
        """Return the progress as a line, with the best point in the mode that was noted last, named by its labels on `axes`."""
        parts = [f"{self.done:,} of {self.total:,}"]
        parts += [f"{self.failed:,} failed"] if self.failed else []
        if self.left and (rest := self.time.rest) is not None and (rest.is_whole or rest.seconds >= 1):
            parts.append(f"{rest_text(rest)} left")
        if self.best:
            _, mode = list(self.best)[-1]
            value, labeled = min((best for (_, of), best in self.best.items() if of == mode), key=lambda best: best[0])
            name = labeled.name(axes)
            expected = MODE_WORDS[mode]
            parts.append(f"best {value:,} {expected}{self.objective}{f' at {name}' if name else ''}")
        return ", ".join(parts)


def rest_text(rest: Rest) -> str:
    """Return the seconds that are left as text.

    >>> rest_text(Rest(43.2, is_whole=True)), rest_text(Rest(100, is_whole=False))
    ('about 43 s', 'more than 2 min')
    """
    return f"{'about' if rest.is_whole else 'more than'} {duration(rest.seconds)}"


def duration(seconds: float) -> str:
    """Return a time as text.

    >>> duration(8.2), duration(100), duration(9000)
    ('8 s', '2 min', '2.5 h')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


class Runner(Protocol):
    """A runner of tasks, of which it runs `jobs` at a time."""

    @property
    def jobs(self) -> int: ...

    def run(self, tasks: Iterable[Task]) -> Iterator[tuple[Task, TaskOutcome]]:
        """Yield every task with its outcome as soon as it is known, in any order. A task that fails has an outcome, too.

        Closing the iterator ends the tasks that run.
        """
        ...

    def learn(self, source: str, mode: str, peak: int) -> None:
        """Note the `peak`, the bytes that a point of this source and mode took in an earlier run."""
        ...

    def close(self) -> None:
        """End all that the runner started."""
        ...


@dataclass(slots=True)
class Sweep:
    """A sweep of a design space, with the store of its results. `redo` names rows that do not count as done: `failed` ones, `stale`
    ones of another version of fuseflow, and simulations whose run was not `kept`. `keep_runs` keeps the run of each simulation for its
    page."""

    space: DesignSpace
    store: Store
    redo: frozenset[str] = frozenset()
    keep_runs: bool = True

    @property
    def file(self) -> SweepFile:
        """The file of the sweep, as it was read."""
        return self.space.file

    @property
    def modes(self) -> tuple[Mode, ...]:
        """The modes in which points are measured, in order."""
        stated = self.file.content.mode
        return ("estimate", "simulate") if stated == "prune" else tuple(mode for mode in ALL_MODES if mode == stated)

    def task(self, labeled: LabeledPoint, mode: Mode) -> Task:
        """Return the task of a point in a mode."""
        return Task(labeled.point, mode, self.file.content.limit, self.keep_runs and mode == "simulate")

    def run(self, runner: Runner, report: PointCallback = lambda point, task, outcome: None) -> None:
        """Run the tasks that are left. Every outcome is in the store before it is reported."""
        rows = self.store.rows()
        for row in rows.values():
            if row.outcome.peak:
                runner.learn(row.source, row.mode, row.outcome.peak)
        for mode in self.modes:
            points = self.chosen(mode)
            points_by_key = {labeled.point.key(mode): labeled for labeled in points}
            tasks = [self.task(labeled, mode) for labeled in points]
            for task, outcome in runner.run([t for t in tasks if not self.done(t, rows.get(t.key))]):
                outcome = replace(outcome, error=outcome.error.replace(f"{self.file.folder}/", ""))
                labeled = points_by_key[task.key]
                self.store.add(task, labeled.labels, outcome)
                report(labeled, task, outcome)

    def done(self, task: Task, row: ResultRow | None) -> bool:
        """Return whether a row answers a task. A row that ran into its limit does not answer a task with more time."""
        if row is None or ("stale" in self.redo and row.code != code_version()):
            return False
        if "unkept" in self.redo and row.mode == "simulate" and not row.has_run:
            return False
        if row.outcome.ok:
            return True
        longer = row.outcome.reason == "limit" and (task.limit is None or task.limit > row.limit)
        return not longer and "failed" not in self.redo

    def chosen(self, mode: Mode) -> tuple[LabeledPoint, ...]:
        """Return the points to measure in a mode: all of them, or, for the simulations of `prune`, the points with the best estimates.

        Of points with equal estimates, the first in the file are taken.
        """
        if self.file.content.mode != "prune" or mode == "estimate":
            return self.space.points
        estimates = recorded_outcomes(self.store.rows(), self.space, "estimate")
        numbers = {key: o.number(self.file.content.objective) for key, o in estimates.items() if o.ok}
        known = {key: number for key, number in numbers.items() if number is not None}
        good = [labeled for labeled in self.space.points if labeled.point.key("estimate") in known]
        top = set[str]()
        for group in _by_workload(good).values():
            ranked = sorted(group, key=lambda p: known[p.point.key("estimate")])
            top |= {labeled.point.key("simulate") for labeled in ranked[: self.file.content.top]}
        return tuple(labeled for labeled in self.space.points if labeled.point.key("simulate") in top)

    def tasks_are_known(self) -> bool:
        """Return whether all tasks are known. The tasks of `prune` are known when all estimates are done."""
        rows = self.store.rows()
        return self.file.content.mode != "prune" or len(recorded_outcomes(rows, self.space, "estimate")) == len(self.space)

    def expected_tasks(self) -> int:
        """Return the number of tasks, as far as it is known. For `prune` it is the greatest number that is possible."""
        if self.file.content.mode != "prune":
            return len(self.space)
        groups = _by_workload(list(self.space.points)).values()
        return len(self.space) + sum(min(len(group), self.file.content.top) for group in groups)


def recorded_outcomes(rows: Mapping[str, ResultRow], space: DesignSpace, mode: Mode) -> dict[str, TaskOutcome]:
    """Return the outcomes, by key, that the rows of a store have for the points of a space in a mode."""
    keys = (labeled.point.key(mode) for labeled in space.points)
    return {key: rows[key].outcome for key in keys if key in rows}


def _by_workload(points: list[LabeledPoint]) -> dict[str, list[LabeledPoint]]:
    """Group the points that can be compared: the points of one model, data and machine."""
    groups: dict[str, list[LabeledPoint]] = {}
    for labeled in points:
        groups.setdefault(labeled.point.workload, []).append(labeled)
    return groups
