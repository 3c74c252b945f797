"""Tries other decisions about the regions of a program that ran in the simulator.

Regions run one after the other. So the cycles of a program are the sum of the cycles of its regions, and one run tests one
decision about each. For example, two simulations of a program of three regions tell which of two decisions is faster in each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from fuseflow.autoscheduler.budget.costs import RegionCost
from fuseflow.autoscheduler.budget.cut_graph import OrderedRange
from fuseflow.autoscheduler.budget.decision import RegionDecision
from fuseflow.autoscheduler.budget.range_costs import RangeCosts
from fuseflow.autoscheduler.budget.search import DealtPath, Levers
from fuseflow.autoscheduler.budget.settings import SETTINGS
from fuseflow.resources.budget import Budget


@dataclass(frozen=True, slots=True)
class RangeDecision:
    """A range in an order (`edge`), with a decision about it and its expected cost."""

    edge: OrderedRange
    decision: RegionDecision
    cost: RegionCost


@dataclass(slots=True)
class Refinement:
    """A program that was simulated, and other decisions about its regions, those that are expected to be fastest first.

    The expected costs of the decisions stay as they were before they were simulated.
    """

    program: DealtPath
    costs: RangeCosts
    budget: Budget
    levers: Levers
    _choices: dict[int, list[RangeDecision]] = field(default_factory=dict)

    def widen(self, taken: Mapping[str, int], trying: Callable[[OrderedRange], bool]) -> None:
        """Choose lanes of the regions in their other orders, where these are expected to take fewer cycles than the region has
        `taken` in the run. `trying` is called with each, and returns whether there is time for it.

        A search has all orders only for the program that it expects to be the fastest. In the simulator another one may be.
        """
        for edge, _ in self.program.decisions if self.levers.orders else ():
            self.program.variant.graph.widen(edge)
            for other in self._alike(edge):
                if self.costs.known(other, self.budget, self.levers.freedom):
                    continue
                if self.costs.expected(other, self.budget, self.levers.freedom) < taken.get(edge.name, 0) and trying(other):
                    self.costs.best(other, self.budget, self.levers.freedom)

    def others(self, number: int) -> Iterator[DealtPath]:
        """Yield at most `number` programs. Each has a new decision about every region for which there is one."""
        choices = [self._others(edge, decision) for edge, decision in self.program.decisions]
        for place in range(min(number, max(map(len, choices), default=0))):
            yield self._with([of_region[place] if place < len(of_region) else None for of_region in choices])

    def dealt_otherwise(self, taken: Mapping[str, int]) -> DealtPath:
        """Return the program with each region dealt over another index than before, if there is one with which fewer cycles were
        expected than the region has `taken` in the run."""
        chosen = []
        for edge, decision in self.program.decisions:
            others = (
                o for o in self._others(edge, decision) if o.decision.has_index_lanes and not o.decision.deals_alike(decision)
            )
            chosen.append(next((o for o in others if o.cost.cycles < taken.get(edge.name, 0)), None))
        return self._with(chosen)

    def _with(self, chosen: Sequence[RangeDecision | None]) -> DealtPath:
        """Return the program with these decisions about its regions, in order. None leaves the decision about a region as it
        was."""
        decisions = zip(self.program.decisions, chosen, strict=True)
        return replace(self.program, decisions=tuple(own if one is None else (one.edge, one.decision) for own, one in decisions))

    def _others(self, edge: OrderedRange, decision: RegionDecision) -> list[RangeDecision]:
        """Return the decisions about a range except `decision`, with other lanes or in other orders, the fastest first."""
        if id(edge) not in self._choices:
            best: dict[RegionDecision, RangeDecision] = {}
            for other in self._alike(edge):
                for known, cost in self.costs.fitting(other, self.budget, self.levers.freedom):
                    lanes = replace(known, depth=None)
                    if lanes not in best or cost.cycles < best[lanes].cost.cycles:
                        best[lanes] = RangeDecision(other, known, cost)
            ranked = sorted(
                best.values(), key=lambda one: (one.cost.cycles, one.edge.rank, one.decision.width, one.decision.lanes)
            )
            # Loops over the values of one vector may stand anywhere, and the graph is the same.
            unlike = {(one.decision.lanes, one.cost): one for one in reversed(ranked)}
            self._choices[id(edge)] = [
                one
                for one in reversed(unlike.values())
                if one.cost.cycles <= SETTINGS.slower * ranked[0].cost.cycles and (one.edge, one.decision) != (edge, decision)
            ]
        return self._choices[id(edge)]

    def _alike(self, edge: OrderedRange) -> list[OrderedRange]:
        """Return the edges, in all allowed orders, of the same range that lead to the same state as this one."""
        edges = self.program.variant.graph.edges(edge.before, fused=not edge.is_single)
        return [other for other in edges if other.part == edge.part and other.after is edge.after and self.levers.allow(other)]
