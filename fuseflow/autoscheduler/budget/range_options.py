"""The ways to run a range on an array on which two regions may lie at once, with what they hide of each other's loading.

A region that fits beside the one before it is loaded while that runs, and only what loading takes longer counts.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from fuseflow.array.capacity import fit_together
from fuseflow.array.settings import ArraySettings
from fuseflow.autoscheduler.budget.costs import RegionCost
from fuseflow.autoscheduler.budget.cut_graph import OrderedRange
from fuseflow.autoscheduler.budget.decision import RegionDecision
from fuseflow.resources import Resources


@dataclass(frozen=True, slots=True, eq=False)
class LoadedRegion:
    """A region on an array: the cycles that it runs, those of loading it, and what it takes."""

    cycles: float
    loading: float
    used: Resources

    def hides(self, other: LoadedRegion, array: ArraySettings) -> float:
        """Return the cycles of loading another region that pass while this one runs."""
        return min(self.cycles, other.loading) if fit_together((self.used, other.used), array) else 0.0

    @property
    def amounts(self) -> tuple[float, ...]:
        """What there is less of in a better region."""
        return self.cycles, self.loading, *(count for _, count in self.used.tiles)


@dataclass(frozen=True, slots=True, eq=False)
class RangeOption:
    """A way to run a range: the `cycles` of its regions (copies, and then its own) with loading, and the first and last of them. Those of
    an option without a decision are a bound, in which no loading counts, neither its own nor that of the next region."""

    cycles: float
    regions: tuple[LoadedRegion, ...] = ()
    decision: RegionDecision | None = None

    @classmethod
    def of(cls, edge: OrderedRange, decision: RegionDecision, cost: RegionCost, array: ArraySettings) -> RangeOption:
        """Return the option of a decision about a range, given its cost."""
        copies = [LoadedRegion(own.cycles - own.loading, own.loading, own.resources) for own in edge.figures[:-1]]
        own = cost.cycles - cost.loading - sum(copy.cycles + copy.loading for copy in copies)
        regions = (*copies, LoadedRegion(max(0.0, own), cost.loading, cost.own))
        hidden = sum(before.hides(after, array) for before, after in pairwise(regions))
        return cls(cost.cycles - hidden, regions, decision)

    def hides(self, other: RangeOption, array: ArraySettings) -> float:
        """Return the cycles of loading the next range that pass while this one runs."""
        if not other.regions:
            return 0.0
        return self.regions[-1].hides(other.regions[0], array) if self.regions else other.regions[0].loading


NOTHING = RangeOption(0.0, decision=RegionDecision(()))
"""The option of a range that computes nothing."""


def undominated_options(options: Iterable[RangeOption]) -> tuple[RangeOption, ...]:
    """Return the options of a range that may be the best beside some neighbours."""
    kept = list[RangeOption]()
    for option in sorted(options, key=lambda option: option.regions[-1].amounts):
        amounts = option.regions[-1].amounts
        if not any(all(a <= b for a, b in zip(other.regions[-1].amounts, amounts, strict=True)) for other in kept):
            kept.append(option)
    return tuple(kept)


def most_loading(array: ArraySettings) -> int:
    """Return the cycles that loading any region takes at most, without hops."""
    return array.load.cycles(sum(array.available.values()))
