"""About how many cycles ranges take under decisions, by arithmetic: many decisions at once, each once.

Ranges that are the same but for names have one number, their `kind`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import inf

from fuseflow.autoscheduler.budget.costs import CandidateCosts
from fuseflow.autoscheduler.budget.cut_graph import OrderedRange
from fuseflow.autoscheduler.budget.deals import Deal
from fuseflow.autoscheduler.budget.decision import RegionDecision
from fuseflow.autoscheduler.budget.settings import SETTINGS


@dataclass(slots=True)
class NearCycles:
    """The cycles that arithmetic expects of ranges. What was asked for is kept."""

    costs: CandidateCosts
    _expected: dict[tuple[int, RegionDecision], float | None] = field(default_factory=dict)

    def of(self, kind: int, edge: OrderedRange, decisions: Iterable[RegionDecision]) -> list[float | None]:
        """Return the cycles of a range under each of some decisions, None where nothing is known."""
        wanted = tuple(decisions)
        missing = [decision for decision in dict.fromkeys(wanted) if (kind, decision) not in self._expected]
        cycles = self.costs.near(edge, missing) if missing else []
        self._expected |= {(kind, decision): own for decision, own in zip(missing, cycles, strict=True)}
        return [self._expected[kind, decision] for decision in wanted]

    def of_lanes(self, kind: int, edge: OrderedRange, deals: Sequence[Deal], depth: int | None) -> list[float | None]:
        """Return the cycles of a range in each of some lanes, with FIFOs of so many slots."""
        return self.of(kind, edge, (RegionDecision(edge.order, deal.lanes, depth) for deal in deals))

    def compared(self, kind: int, edge: OrderedRange, deals: Sequence[Deal], depth: int | None) -> list[tuple[float, Deal]]:
        """Return the lanes that promise most, with the cycles that are expected of them, the fewest first: by arithmetic, or else as the
        lanes promise. Those that promise more than is expected of others are not among them."""
        first, compared, fewest = deals[: SETTINGS.max_compared], list[tuple[float, Deal]](), inf
        for deal, near in zip(first, self.of_lanes(kind, edge, first, depth), strict=True):
            if deal.least > fewest:
                break
            compared.append((deal.least if near is None else max(near, deal.least), deal))
            fewest = min(fewest, inf if near is None else compared[-1][0])
        return sorted(compared, key=lambda one: (one[0], one[1].rank))
