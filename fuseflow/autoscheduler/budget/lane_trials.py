"""Chooses for which lanes of a range a graph is made: the fewest expected cycles first, until no others promise less.

lanes   expected   its graph
i=16    1,000      1,030      the first
i=8     1,100      -          3 % more than arithmetic expects is more than 1,030, too: it is not made
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import inf

from fuseflow.autoscheduler.budget.costs import RegionCost
from fuseflow.autoscheduler.budget.lane_models import Deal
from fuseflow.autoscheduler.budget.settings import SETTINGS


@dataclass(slots=True)
class LaneTrials:
    """The lanes of a range with their expected cycles. The first `compared` of them were compared by arithmetic.

    At most `tried` graphs that have room are made; None means all that may be the best, or at most `slack` cycles behind it. `best` is the
    fastest so far.
    """

    candidates: list[tuple[float, Deal]]
    compared: int
    tried: int | None
    slack: float = 0.0
    best: tuple[Deal, RegionCost] | None = None
    _looked: int = 0
    _number: int = 0
    _error: float = 0.0
    """The largest error of arithmetic about a graph that was made, as a share of the expected cycles."""
    _still: Counter[frozenset[str]] = field(default_factory=Counter)
    """How many lanes of the same indices stood still."""

    def __iter__(self) -> Iterator[Deal]:
        """Yield lanes whose graphs are to be made. The cost of each has to be kept (`keep`) before the next one."""
        while self._looked < len(self.candidates):
            cycles, deal = self.candidates[self._looked]
            if self.best is not None and (self._is_enough or self._likely(cycles) >= self.best[1].cycles + self.slack):
                return
            if self.tried is None or self._still[deal.indices] < SETTINGS.alike:
                yield deal
            self._looked += 1

    def keep(self, deal: Deal, cost: RegionCost | None, stands_still: bool) -> None:
        """Keep the cost of the graph with these lanes. It is None if the graph has no room, or `stands_still`."""
        self._still[deal.indices] += stands_still
        if cost is None:
            return
        self._number += 1
        expected = self.candidates[self._looked][0]
        self._error = max(self._error, abs(cost.cycles / expected - 1) if expected else inf)
        if self.best is None or cost.cycles < self.best[1].cycles:
            self.best = deal, cost

    @property
    def least_left(self) -> float:
        """The least cycles of the lanes whose graphs were not made, although they may be the best. Infinite if there are none."""
        assert self.best is not None
        left = self.candidates[self._looked :]
        return min((deal.least for cycles, deal in left if cycles < self.best[1].cycles), default=inf)

    @property
    def _is_enough(self) -> bool:
        return self.tried is not None and (self._number >= self.tried or self._looked >= SETTINGS.looks_per_try * self.tried)

    def _likely(self, cycles: float) -> float:
        """Return the cycles that lanes are likely to take. Where arithmetic was right so far, they must promise a gain."""
        is_right = self.tried is not None and self._number > 0 and self._error < SETTINGS.right and self._looked < self.compared
        return cycles / SETTINGS.gain if is_right else cycles
