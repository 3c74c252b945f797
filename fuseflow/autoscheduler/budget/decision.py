"""What a schedule decides about one region: its loop order, its lanes, and the depth of its FIFOs."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from fuseflow.schedule import Schedule

LoopOrder = tuple[str, ...]
"""The indices of the loops of a region, outermost first."""


@dataclass(frozen=True, slots=True)
class RegionDecision:
    """The loop order of a region, the lanes of its indices (those with one lane are left out), and the slots of all its FIFOs.

    Without a depth the FIFOs are those of the machine.
    """

    order: LoopOrder
    lanes: tuple[tuple[str, int], ...] = ()
    depth: int | None = None

    @property
    def width(self) -> int:
        """The lanes that the innermost nodes run in."""
        return prod(count for _, count in self.lanes)

    def scheduled(self, schedule: Schedule, region: str, is_ordered: bool = True) -> Schedule:
        """Return the schedule with this decision about a region. If not `is_ordered`, the compiler orders its loops."""
        schedule = schedule.order(region, self.order) if is_ordered else schedule
        schedule = schedule.par(**{f"{region}.{index}": count for index, count in self.lanes})
        return schedule if self.depth is None else schedule.depth(region, self.depth)
