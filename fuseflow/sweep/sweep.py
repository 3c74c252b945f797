"""A sweep: its points, what is known of them, and what is left to do."""

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
"""Called with every point that was done."""


@dataclass(slots=True)
class Sweep:
    """`again`: rows that do not count as done, `failed` or `stale` (of another fuseflow)."""

    file: SweepFile
    space: DesignSpace
    store: Store
    again: frozenset[str] = frozenset()

    @property
    def modes(self) -> tuple[Mode, ...]:
        match self.file.content.mode:
            case "estimate":
                return ("estimate",)
            case "simulate":
                return ("simulate",)
            case _:
                return ("estimate", "simulate")

    def task(self, place: LabeledPoint, mode: Mode) -> Task:
        return Task(place.point, mode, self.file.content.limit)

    def run(self, runner: Runner, report: PointCallback = lambda place, task, outcome: None) -> None:
        """Do what is left; every point is in the store before it is reported."""
        known = self.store.rows()
        for row in known.values():
            if row.outcome.peak:
                runner.learn(row.source, row.mode, row.outcome.peak)
        for mode in self.modes:
            chosen = self.chosen(mode)
            named = {place.point.key(mode): place for place in chosen}
            tasks = [self.task(place, mode) for place in chosen]
            for task, outcome in runner.run([t for t in tasks if not self.done(t, known.get(t.key))]):
                outcome = replace(outcome, error=outcome.error.replace(f"{self.file.folder}/", ""))
                place = named[task.key]
                self.store.add(task, place.labels, outcome)
                report(place, task, outcome)

    def done(self, task: Task, row: ResultRow | None) -> bool:
        """Whether a row is an answer to a task; one that ran into a limit is none to a task with more time."""
        if row is None or ("stale" in self.again and row.code != code_version()):
            return False
        if row.outcome.ok:
            return True
        longer = row.outcome.reason == "limit" and (task.limit is None or task.limit > row.limit)
        return not longer and "failed" not in self.again

    def chosen(self, mode: Mode) -> tuple[LabeledPoint, ...]:
        """The points to do in a mode: all of them; or, for the simulations of `prune`, those with the best estimates. Of equal ones the
        first in the file."""
        if self.file.content.mode != "prune" or mode == "estimate":
            return self.space.places
        estimates = recorded_outcomes(self.store.rows(), self.space, "estimate")
        good = [place for place in self.space.places if (o := estimates.get(place.point.key("estimate"))) and o.ok]
        top = set[str]()
        for group in _by_workload(good).values():
            ranked = sorted(group, key=lambda p: estimates[p.point.key("estimate")].values[self.file.content.objective])
            top |= {place.point.key("simulate") for place in ranked[: self.file.content.top]}
        return tuple(place for place in self.space.places if place.point.key("simulate") in top)

    def settled(self) -> bool:
        """Whether all tasks are known: of `prune`, whether all estimates are there."""
        rows = self.store.rows()
        return self.file.content.mode != "prune" or len(recorded_outcomes(rows, self.space, "estimate")) == len(self.space)

    def expected(self) -> int:
        """How many tasks there are, as far as that is known: of `prune`, with as many simulations as there may be."""
        if self.file.content.mode != "prune":
            return len(self.space)
        groups = _by_workload(list(self.space.places)).values()
        return len(self.space) + sum(min(len(group), self.file.content.top) for group in groups)


def recorded_outcomes(rows: Mapping[str, ResultRow], space: DesignSpace, mode: Mode) -> dict[str, TaskOutcome]:
    """What is known of the points of a space in a mode, by key."""
    keys = (place.point.key(mode) for place in space.places)
    return {key: rows[key].outcome for key in keys if key in rows}


def _by_workload(places: list[LabeledPoint]) -> dict[str, list[LabeledPoint]]:
    """Points that can be compared: of one model, data and machine."""
    found: dict[str, list[LabeledPoint]] = {}
    for place in places:
        found.setdefault(place.point.workload, []).append(place)
    return found
