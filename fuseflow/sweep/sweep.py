"""A sweep: its points, their results, and the tasks that are left."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from fuseflow.sweep.design_space import DesignSpace, LabeledPoint
from fuseflow.sweep.digests import code_version
from fuseflow.sweep.file import SweepFile
from fuseflow.sweep.point import Mode, Task, TaskOutcome
from fuseflow.sweep.runner import Runner
from fuseflow.sweep.store import ResultRow, Store

PointCallback = Callable[[LabeledPoint, Task, TaskOutcome], None]
"""A function that is called with every point that was done."""


@dataclass(slots=True)
class Sweep:
    """A sweep of a design space. `redo` names rows that do not count as done: `failed` ones, `stale` ones of another version of
    fuseflow, and simulations whose run was not `kept`. `keep_runs` keeps the run of each simulation for its page."""

    file: SweepFile
    space: DesignSpace
    store: Store
    redo: frozenset[str] = frozenset()
    keep_runs: bool = True

    @property
    def modes(self) -> tuple[Mode, ...]:
        """The modes in which points are measured, in order."""
        match self.file.content.mode:
            case "estimate":
                return ("estimate",)
            case "simulate":
                return ("simulate",)
            case "sample":
                return ("sample",)
            case "prune":
                return ("estimate", "simulate")
            case unknown:
                raise AssertionError(f"`read_sweep` lets no mode `{unknown}` pass")

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
