"""How much deeper FIFOs became in runs than graphs state, and how deep they are expected to become with other lanes.

A run deepens FIFOs where a graph would deadlock, and those in front of a merge of lanes as far as a lane gets ahead. An estimate
does not know how far. But one run of a region says it: if two lanes wait for their turn with 1 MB, four do with 2 MB.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from fuseflow.autoscheduler.budget.decision import RegionDecision
from fuseflow.resources import Resources


@dataclass(slots=True)
class FifoGrowth:
    """The bytes by which runs deepened FIFOs, by the kind of a range (its number) and the decision about it."""

    _bytes: dict[int, dict[RegionDecision, int]] = field(default_factory=dict)

    def keep(self, kind: int, decision: RegionDecision, growth: int) -> bool:
        """Keep the bytes by which a run deepened FIFOs. Return whether they differ from the expected ones."""
        is_new = growth != self.expected(kind, decision)
        self._bytes.setdefault(kind, {})[decision] = growth
        return is_new

    def expected(self, kind: int, decision: RegionDecision) -> int:
        """Return the bytes by which a run would deepen FIFOs, in proportion to its lanes. They follow from the run that dealt the
        same loops to the nearest number of lanes, and are 0 without such a run."""
        runs = self._bytes.get(kind, {})
        if decision in runs:
            return runs[decision]
        alike = [other for other in runs if _loops(other) == _loops(decision) and other.depth == decision.depth]
        if not alike:
            return 0
        nearest = min(alike, key=lambda other: (abs(other.width - decision.width), other.lanes))
        return runs[nearest] * decision.width // nearest.width

    def grown(self, kind: int, decision: RegionDecision, resources: Resources) -> Resources:
        """Return the resources of a range with FIFOs as deep as a run is expected to make them."""
        growth = self.expected(kind, decision)
        if not growth or resources.fifo is None:
            return resources
        return replace(resources, fifo=resources.fifo + growth)


def _loops(decision: RegionDecision) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return decision.order, tuple(loop for loop, _ in decision.lanes)
