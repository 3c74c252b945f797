"""A decision about one region in a schedule: its loop order, its lanes, and the depth of its FIFOs; and which of these are
free."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import Literal, TypeAlias

from fuseflow.fusion.linear_extensions import LoopOrder
from fuseflow.schedule import Schedule

Lanes = tuple[tuple[str, int], ...]
"""The number of lanes of each index, outermost first, without indices in one lane."""


@dataclass(frozen=True, slots=True)
class RegionDecision:
    """The loop order of a region, its lanes, and the slots of all its FIFOs.

    An index in lanes is named `i`, or `/T1.i` in one stage of the region. Indices in one lane are left out. Without a depth,
    FIFOs have the slots of the machine.
    """

    order: LoopOrder
    lanes: Lanes = ()
    depth: int | None = None

    @property
    def width(self) -> int:
        """The number of lanes in which the innermost nodes run: the product over all indices."""
        return prod(count for _, count in self.lanes)

    @property
    def has_stages(self) -> bool:
        """Whether single stages of the region have lanes."""
        return any(loop.startswith("/") for loop, _ in self.lanes)

    def renamed(self, stages: Mapping[str, str]) -> RegionDecision:
        """Return the decision for a region whose stages have other names. `stages` maps old names to new ones."""

        def name(loop: str) -> str:
            stage, _, index = loop[1:].rpartition(".")
            return f"/{stages[stage]}.{index}" if loop.startswith("/") else loop

        return replace(self, lanes=tuple((name(loop), count) for loop, count in self.lanes))

    def scheduled(self, schedule: Schedule, region: str, is_ordered: bool = True) -> Schedule:
        """Return the schedule with this decision about a region added. If not `is_ordered`, the compiler orders its loops."""
        schedule = schedule.order(region, self.order) if is_ordered else schedule
        schedule = schedule.par(**{lanes_name(region, loop): count for loop, count in self.lanes})
        return schedule if self.depth is None else schedule.depth(region, self.depth)


def lanes_name(region: str, loop: str) -> str:
    """Return the name that the lanes of a loop of a region have in a schedule.

    >>> lanes_name("layer1", "i"), lanes_name("layer1", "/T1.i")
    ('layer1.i', 'layer1/T1.i')
    """
    return f"{region}{loop}" if loop.startswith("/") else f"{region}.{loop}"


Dealing: TypeAlias = Literal["nothing", "regions", "stages"]
"""What may be dealt over lanes: nothing, whole regions, or also single stages of a region."""


@dataclass(frozen=True, slots=True)
class Freedom:
    """What may be decided about a region beside its order: what is dealt over lanes, and whether its FIFOs may be deeper.

    A `quick` choice is made among few lanes.
    """

    dealing: Dealing = "stages"
    depths: bool = True
    quick: bool = False

    def allows(self, decision: RegionDecision, depth: int | None) -> bool:
        """Return whether a decision stays within this freedom. `depth` is the depth of FIFOs if nothing is decided about them."""
        lanes = {"nothing": not decision.lanes, "regions": not decision.has_stages, "stages": True}
        return lanes[self.dealing] and (self.depths or decision.depth == depth)
