"""Deeper FIFOs of the regions of a program whose other decisions are made, as deep as the budget has room for.

The estimate knows which FIFOs hold a graph up all the time. What it does not know is how long others keep a region going while the memory
refreshes itself, or answers late. So deeper FIFOs are simulated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from fuseflow.autoscheduler.budget.deeper_fifos import DEEP
from fuseflow.autoscheduler.budget.region_changes import ROUNDS
from fuseflow.estimate.program import Estimator
from fuseflow.resources.budget import Budget
from fuseflow.run.compiled import Compiled
from fuseflow.schedule import Schedule


@dataclass(frozen=True, slots=True)
class RegionDepth:
    """So many slots of all FIFOs of a region of which the schedule states no others."""

    region: str
    slots: int

    def added(self, schedule: Schedule) -> Schedule:
        """Return a schedule with these slots."""
        return schedule.depth(self.region, self.slots)


def region_depths(
    program: Compiled, budget: Budget, estimator: Estimator, compiled: Callable[[Schedule], Compiled]
) -> Iterator[tuple[RegionDepth, ...]]:
    """Yield, for each region, the two deepest FIFOs that have room in a budget, and are deeper than those that it has. `compiled` compiles
    the same program under another schedule."""
    first, stated = program.machine.first_depth, dict(program.schedule.depths)
    if first is None or program.machine.rules == "comal":
        return
    options: dict[str, list[RegionDepth]] = {
        region.name: [] for region in program.regions if region.einsums
    }  # a copy has no depth
    for slots in reversed(DEEP):
        deeper = [RegionDepth(name, slots) for name in options if slots > stated.get(name, first)]
        schedule = program.schedule
        for depth in deeper:
            schedule = depth.added(schedule)
        regions = compiled(schedule).estimate(estimator).regions if deeper else ()
        rooms = {name for each in regions if not budget.exceeded(each.resources) for name in each.names}
        for depth in deeper:
            options[depth.region] += [depth] * (depth.region in rooms)
    yield from (tuple(reversed(depths[:ROUNDS])) for depths in options.values() if depths)
