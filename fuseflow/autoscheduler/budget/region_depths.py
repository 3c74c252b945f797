"""Tries other depths of FIFOs for the regions of a program whose other decisions are made.

The estimate knows which FIFOs hold a graph up all the time. It does not know how long other FIFOs keep a region going while the
memory refreshes itself, or answers late. It also does not know that ports which run further ahead of each other may open more
rows of HBM2. So deeper FIFOs are simulated, and FIFOs of the machine where the estimate chose deeper ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from fuseflow.autoscheduler.budget.settings import SETTINGS
from fuseflow.estimate.program import Estimator
from fuseflow.resources.budget import Budget
from fuseflow.run.compiled import Compiled
from fuseflow.schedule import Schedule


@dataclass(frozen=True, slots=True)
class RegionDepth:
    """A change of the slots of all FIFOs of a region that the schedule does not name one by one; None is the slots of the
    machine."""

    region: str
    slots: int | None

    def added(self, schedule: Schedule) -> Schedule:
        """Return the schedule with these slots."""
        if self.slots is None:
            return replace(schedule, depths=tuple(entry for entry in schedule.depths if entry[0] != self.region))
        return schedule.depth(self.region, self.slots)


def region_depths(
    program: Compiled, budget: Budget, estimator: Estimator, compiled: Callable[[Schedule], Compiled]
) -> Iterator[tuple[RegionDepth, ...]]:
    """Yield, for each region, the two deepest FIFOs that fit a budget and are deeper than those that it has. If it has deeper
    ones than the machine, the depth of the machine comes first. `compiled` compiles the same program under another schedule."""
    first, stated = program.machine.first_depth, dict(program.schedule.depths)
    if first is None or program.machine.rules == "comal":
        return
    options: dict[str, list[RegionDepth]] = {
        region.name: [] for region in program.regions if region.einsums
    }  # a copy has no depth
    for slots in reversed(SETTINGS.deep_fifos):
        deeper = [(name, RegionDepth(name, slots)) for name in options if slots > stated.get(name, first)]
        schedule = program.schedule
        for _, depth in deeper:
            schedule = depth.added(schedule)
        regions = compiled(schedule).estimate(estimator).regions if deeper else ()
        rooms = {name for each in regions if not budget.exceeded(each.resources) for name in each.names}
        for name, depth in deeper:
            options[name] += [depth] * (name in rooms)
    for name, depths in options.items():
        of_machine = [RegionDepth(name, None)] if stated.get(name, first) > first else []
        tried = of_machine + depths[: SETTINGS.change_rounds - len(of_machine)][::-1]
        if tried:
            yield tuple(tried)
