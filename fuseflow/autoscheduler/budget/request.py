"""The request for a search within a budget, and the check that a schedule leaves something to search."""

from __future__ import annotations

from dataclasses import dataclass

from fuseflow.autoscheduler.budget.settings import SETTINGS
from fuseflow.autoscheduler.defaults import ALLOWED, DEFAULT_TOP
from fuseflow.errors import ScheduleError, UsageError, did_you_mean
from fuseflow.resources.budget import Budget, component_name
from fuseflow.schedule import Schedule


@dataclass(frozen=True, slots=True)
class BudgetRequest:
    """A request for a search: a budget, the components for which a curve is wanted (`pareto`), what else may be decided
    (`allow`), how many programs are simulated (`top`), the seconds after which the search stops with its results so far
    (`limit`), and for how many lanes of a range graphs are made (`tried`; None is all that may be the best)."""

    budget: Budget
    pareto: tuple[str, ...] = ()
    allow: frozenset[str] = frozenset()
    top: int = DEFAULT_TOP
    limit: float | None = None
    tried: int | None = SETTINGS.max_tried

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


def refuse_decided(schedule: Schedule) -> None:
    """Raise `ScheduleError` for a schedule that decides something that a search under a budget is to choose."""
    sections = {
        "par": [name for name, _ in schedule.parallel],
        "order": [name for name, _ in schedule.orders],
        "split": [name for name, _ in schedule.splits],
        "depth": [name for name, _ in schedule.depths],
        "regions": [name for name, _ in schedule.regions],
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
