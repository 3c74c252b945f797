"""Other decisions about the regions of a program that ran, and the fastest of each region put together.

Regions run one after the other. So the cycles of a program are the sum of those of its regions, and one simulation says what one decision
about every region takes. For example, two simulations of a program of three regions say which of two decisions is the faster in each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from fuseflow.autoscheduler.budget.cut_graph import OrderedRange
from fuseflow.autoscheduler.budget.decision import RegionDecision
from fuseflow.autoscheduler.budget.range_costs import RangeCosts
from fuseflow.autoscheduler.budget.search import DealtPath, Levers
from fuseflow.autoscheduler.budget.trials import RegionRun
from fuseflow.resources.budget import Budget

SLOWER = 2.0
"""A decision is not simulated if it is expected to take more than so many times the cycles of the best one."""

RangeDecision = tuple[OrderedRange, RegionDecision]
"""A range in an order, with its lanes and depths."""


@dataclass(slots=True)
class Refinement:
    """A program with other decisions about its regions, of which those that are expected to be fastest are simulated.

    `program` was simulated first. Regions that differ in names alone get the same decisions.
    """

    program: DealtPath
    costs: RangeCosts
    budget: Budget
    levers: Levers
    _cycles: dict[int, dict[int, int]] = field(default_factory=dict)
    """The cycles of each kind of region, by the place of the decision among those of the region."""
    _choices: dict[int, list[RangeDecision]] = field(default_factory=dict)

    @property
    def first(self) -> tuple[int, ...]:
        """The places of the decisions of the program itself."""
        return (0,) * len(self.program.decisions)

    def others(self, number: int) -> Iterator[tuple[tuple[int, ...], DealtPath]]:
        """Yield at most so many programs, each with a decision about every region that none before had, as far as there are any. Each comes
        with the places of its decisions."""
        choices = [self._decisions(edge, decision) for edge, decision in self.program.decisions]
        for place in range(1, min(number + 1, max(map(len, choices), default=0))):
            places = tuple(place if place < len(of_region) else 0 for of_region in choices)
            yield places, self._with(places)

    def keep(self, places: Sequence[int], runs: Mapping[str, RegionRun]) -> None:
        """Keep what the regions of a program with these decisions took, by the name of the region."""
        for (edge, _), place in zip(self.program.decisions, places, strict=True):
            if edge.name in runs:
                self._cycles.setdefault(self.costs.kind(edge), {})[place] = runs[edge.name].cycles

    def combined(self) -> DealtPath:
        """Return the program with the decision about each region that took the fewest cycles."""
        places = []
        for edge, _ in self.program.decisions:
            taken = self._cycles.get(self.costs.kind(edge), {})
            places.append(min(taken, key=lambda place: (taken[place], place)) if taken else 0)
        return self._with(places)

    def _with(self, places: Sequence[int]) -> DealtPath:
        chosen = zip(self.program.decisions, places, strict=True)
        decisions = tuple(self._decisions(edge, decision)[place] for (edge, decision), place in chosen)
        return replace(self.program, decisions=decisions)

    def _decisions(self, edge: OrderedRange, decision: RegionDecision) -> list[RangeDecision]:
        """Return the decision about a range that was chosen, and others with other lanes or in other orders, the fastest first."""
        if id(edge) not in self._choices:
            best: dict[RegionDecision, tuple[float, RangeDecision]] = {}
            for other in self._alike(edge):
                for known, cost in self.costs.fitting(other, self.budget, self.levers.freedom):
                    lanes = replace(known, depth=None)
                    if lanes not in best or cost.cycles < best[lanes][0]:
                        best[lanes] = cost.cycles, (other, known)
            ranked = sorted(best.values(), key=lambda one: (one[0], one[1][0].rank, one[1][1].width, one[1][1].lanes))
            likely = [choice for cycles, choice in ranked if cycles <= SLOWER * ranked[0][0]]
            chosen = edge, decision
            self._choices[id(edge)] = [chosen, *(choice for choice in likely if choice != chosen)]
        return self._choices[id(edge)]

    def _alike(self, edge: OrderedRange) -> list[OrderedRange]:
        """Return the orders of a range behind which everything goes on as behind this one."""
        edges = self.program.variant.graph.edges(edge.before, fused=not edge.is_single)
        return [other for other in edges if other.part == edge.part and other.after is edge.after and self.levers.allow(other)]
