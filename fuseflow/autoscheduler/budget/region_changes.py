"""Changes of single regions that are tried in the simulator, for a program whose other decisions are made.

Regions run one after the other. So one simulation of a program says of a change of each region whether the region is faster with it. For
example, two simulations say which of two changes is the better one in each of three regions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol, TypeVar

from fuseflow.autoscheduler.budget.trials import RegionRun
from fuseflow.schedule import Schedule

ROUNDS = 2
"""How many changes of one kind are tried for each region at most."""


class RegionChange(Protocol):
    """A change of what a schedule says about a region."""

    @property
    def region(self) -> str:
        """The name of the region."""

    def added(self, schedule: Schedule) -> Schedule:
        """Return a schedule with this change beside what it says."""


Change = TypeVar("Change", bound=RegionChange)


def rounds(options: Sequence[tuple[Change, ...]]) -> Iterator[tuple[Change, ...]]:
    """Yield the changes that are simulated together: one for each region that has as many."""
    for number in range(min(ROUNDS, max(map(len, options), default=0))):
        yield tuple(of_region[number] for of_region in options if number < len(of_region))


def fastest(
    unchanged: Mapping[str, RegionRun], tried: Sequence[tuple[Sequence[Change], Mapping[str, RegionRun]]], fifo: float
) -> tuple[Change, ...]:
    """Return the changes with which a region took fewer cycles than `unchanged`, the fastest of each region. Those with which FIFOs became
    deeper than `fifo` bytes in a run are left out."""
    best: dict[str, tuple[int, Change]] = {}
    for together, regions in tried:
        for change in (change for change in together if change.region in regions and change.region in unchanged):
            ran = regions[change.region]
            least = best[change.region][0] if change.region in best else unchanged[change.region].cycles
            if ran.cycles < least and ran.fifo is not None and ran.fifo <= fifo:
                best[change.region] = ran.cycles, change
    return tuple(change for _, change in best.values())
