"""The request for a search within a budget: what it may decide, the moment at which it stops, and the agenda by which it reports
progress.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeAlias

from fuseflow.array.capacity import tile_limits
from fuseflow.array.settings import ArraySettings
from fuseflow.autoscheduler.budget.settings import SETTINGS
from fuseflow.autoscheduler.search_defaults import ALLOWED, DEFAULT_TOP
from fuseflow.errors import ScheduleError, UsageError, did_you_mean
from fuseflow.resources.budget import Budget, component_name
from fuseflow.schedule import Schedule


@dataclass(frozen=True, slots=True)
class BudgetRequest:
    """A request for a search: a budget, the components for which a curve is wanted (`pareto`), what else may be decided
    (`allow`), how many programs are simulated (`top`), the seconds after which the search stops with its results so far
    (`limit`), for how many lanes of a range graphs are made (`tried`; None is all that may be the best), and the `array` on which each
    region must fit."""

    budget: Budget
    pareto: tuple[str, ...] = ()
    allow: frozenset[str] = frozenset()
    top: int = DEFAULT_TOP
    limit: float | None = None
    tried: int | None = SETTINGS.max_tried
    array: ArraySettings | None = None

    def __post_init__(self) -> None:
        for component in self.pareto:
            component_name(component)
        for name in sorted(self.allow):
            if name not in ALLOWED:
                raise UsageError(f"`{name}` is nothing that can be allowed", hint=did_you_mean(name, ALLOWED))
        if self.top < 0:
            raise UsageError(f"{self.top} schedules to simulate", hint="1 or more, or 0 to choose by estimate only")
        if self.limit is not None and self.limit <= 0:
            raise UsageError(f"a limit of {self.limit:g} s leaves no time", hint="some seconds, or no limit")

    @property
    def whole_budget(self) -> Budget:
        """The budget, with the tiles of the array."""
        return self.budget if self.array is None else self.budget.on_array(self.array.name, tile_limits(self.array))


def refuse_decided(schedule: Schedule) -> None:
    """Raise `ScheduleError` for a schedule that decides something that a search under a budget is to choose."""
    sections = {
        "par": [name for name, _ in schedule.parallel],
        "order": [name for name, _ in schedule.orders],
        "split": [name for name, _ in schedule.splits],
        "depth": [name for name, _ in schedule.depths],
        "regions": [name for name, _ in schedule.regions],
        "recompute": list(schedule.recomputed),
        "fuse": [] if schedule.leaves_cut or schedule.fuse_regions == ("auto",) else list(schedule.fuse_regions),
    }
    for section, names in sections.items():
        if names:
            raise ScheduleError(
                f"`{section}` names `{names[0]}`, but that is to be chosen under the budget",
                hint="leave it out; `fuseflow run` takes schedules that are complete",
                span=schedule.place(section, names[0]),
            )
    if schedule.plan.auto or schedule.intermediates == "dense":
        what = "`plan: auto`" if schedule.plan.auto else "`intermediates: dense`"
        raise ScheduleError(f"{what} cannot be chosen under a budget", hint="leave it out")


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


SearchProgress: TypeAlias = Callable[[str, int], None]
"""A function that is called with the candidate that a search tries next, as text, and how many may follow it."""


@dataclass(slots=True)
class Agenda:
    """The steps of a search, each with the candidates that it tries at most. A step that ends early leaves none."""

    report: SearchProgress = lambda text, left: None
    _left: dict[str, int] = field(default_factory=dict)
    _step: str = ""

    def expect(self, step: str, most: int) -> None:
        """State that a step tries at most `most` candidates."""
        self._left[step] = most

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Count the candidates that are tried in the block for this step. After the block, the step has none left."""
        before, self._step = self._step, name
        try:
            yield
        finally:
            self._step = before
            self._left[name] = 0

    def trying(self, text: str) -> None:
        """Report the candidate that the current step tries next."""
        self._left[self._step] = max(0, self._left.get(self._step, 0) - 1)
        self.report(text, sum(self._left.values()))
