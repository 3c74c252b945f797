"""Changes of single regions that are tried in the simulator, for a program whose other decisions are made.

Regions run one after the other. So one simulation tells, for one change of each region, whether the region is faster with it. For
example, two simulations tell which of two changes is better in each of three regions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol, TypeVar

from fuseflow.autoscheduler.budget.settings import SETTINGS
from fuseflow.schedule import Schedule


class RegionChange(Protocol):
    """A change of those entries of a schedule that are about one region."""

    @property
    def region(self) -> str:
        """The name of the region."""

    def added(self, schedule: Schedule) -> Schedule:
        """Return the schedule with this change."""


Change = TypeVar("Change", bound=RegionChange)


def rounds(options: Sequence[tuple[Change, ...]]) -> Iterator[tuple[Change, ...]]:
    """Yield the changes that are simulated together, given the changes to try of each region: one of each region that still has
    one."""
    for number in range(min(SETTINGS.change_rounds, max(map(len, options), default=0))):
        yield tuple(of_region[number] for of_region in options if number < len(of_region))
