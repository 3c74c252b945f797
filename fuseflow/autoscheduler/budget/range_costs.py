"""What the ranges of a program cost under a budget: first a bound, then the cycles with the lanes that take the fewest.

A bound is `max(work / lanes, bytes / bandwidth)`: no lanes make the arithmetic of a region less, or its bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf

from fuseflow.autoscheduler.budget.costs import CandidateCosts, RegionCost
from fuseflow.autoscheduler.budget.cut_graph import OrderedRange
from fuseflow.autoscheduler.budget.deals import Deal, LaneModel
from fuseflow.autoscheduler.budget.decision import RegionDecision
from fuseflow.resources import Resources
from fuseflow.resources.budget import Budget
from fuseflow.sim import Machine

MAX_TRIED = 8
"""How many lanes of a range in an order are lowered, those that promise the fewest cycles, unless the caller says otherwise."""
BOUNDED_DEPTH = 64
"""The slots of FIFOs on a machine that does not bound them, where the budget does."""


@dataclass(frozen=True, slots=True, eq=False)
class DealtRange:
    """A range in an order with the lanes that take the fewest cycles within a budget.

    `least` is a bound: no lanes of the range in this order take fewer cycles within the budget.
    """

    decision: RegionDecision
    cost: RegionCost
    least: float


@dataclass(slots=True)
class RangeCosts:
    """The costs of ranges. Whatever was computed for one budget serves the next.

    `tried` is how many lanes of a range are lowered; None stands for all that may be the best.
    """

    machine: Machine
    costs: CandidateCosts
    tried: int | None = MAX_TRIED
    evaluated: int = 0
    """How many costs of lanes were asked for."""
    _models: dict[int, LaneModel] = field(default_factory=dict)
    _exact: dict[tuple[int, RegionDecision], RegionCost | None] = field(default_factory=dict)
    _dealt: dict[tuple[int, Budget, bool], DealtRange | None] = field(default_factory=dict)

    def relaxed(self, edge: OrderedRange, budget: Budget) -> float:
        """Return the cycles that a range in an order takes at least within a budget. They are infinite if it has no room even in one
        lane."""
        if not edge.pieces:
            return 0.0
        if budget.exceeded(self._single(edge, budget)):
            return inf
        *copies, region = edge.figures
        compute = max((region.work[name] / limit for name, limit in budget.limits.items() if name in region.work), default=0.0)
        return sum(copy.cycles for copy in copies) + max(compute, region.memory) * region.stretch

    def known(self, edge: OrderedRange, budget: Budget, dealt: bool = True) -> bool:
        """Return whether the lanes of a range were chosen for a budget."""
        return not edge.pieces or (id(edge), budget, dealt) in self._dealt

    def best(self, edge: OrderedRange, budget: Budget, dealt: bool = True) -> DealtRange | None:
        """Return a range with its best lanes, or, if it is not `dealt`, in one lane. None if it has no room."""
        key = id(edge), budget, dealt
        if key not in self._dealt:
            self._dealt[key] = self._best(edge, budget, dealt)
        return self._dealt[key]

    def depth(self, budget: Budget) -> int | None:
        """Return the slots that the schedule states for all FIFOs: none, unless the budget bounds FIFOs and the machine does not."""
        unbounded = self.machine.first_depth is None and self.machine.rules != "comal"
        return BOUNDED_DEPTH if unbounded and "fifo" in budget.limits else None

    def _best(self, edge: OrderedRange, budget: Budget, dealt: bool) -> DealtRange | None:
        if not edge.pieces:
            return DealtRange(RegionDecision(edge.order), RegionCost(0.0, Resources()), 0.0)
        bound, depth = self.relaxed(edge, budget), self.depth(budget)
        if bound == inf:
            return None
        best: tuple[RegionDecision, RegionCost] | None = None
        deals = self._deals(edge, budget, depth) if dealt else [Deal((), self._model(edge).amounts(()), bound)]
        for number, deal in enumerate(deals):
            if best is not None and (deal.least >= best[1].cycles or (self.tried is not None and number >= self.tried)):
                bound = max(bound, min(deal.least, best[1].cycles))
                break
            decision = RegionDecision(edge.order, deal.lanes, depth)
            cost = self._cost(edge, decision)
            if cost is not None and not budget.exceeded(cost.resources) and (best is None or cost.cycles < best[1].cycles):
                best = decision, cost
        else:
            bound = bound if best is None else max(bound, best[1].cycles)
        return None if best is None else DealtRange(*best, min(bound, best[1].cycles))

    def _deals(self, edge: OrderedRange, budget: Budget, depth: int | None) -> list[Deal]:
        slots = self.machine.first_depth if depth is None else depth
        return self._model(edge).deals(budget, slots)

    def _model(self, edge: OrderedRange) -> LaneModel:
        if id(edge) not in self._models:
            self._models[id(edge)] = LaneModel.of(edge, self.machine)
        return self._models[id(edge)]

    def _cost(self, edge: OrderedRange, decision: RegionDecision) -> RegionCost | None:
        key = id(edge), decision
        if key not in self._exact:
            self.evaluated += 1
            self._exact[key] = self.costs(edge, decision)
        return self._exact[key]

    def _single(self, edge: OrderedRange, budget: Budget) -> Resources:
        """Return what a range occupies in one lane."""
        cost = self._cost(edge, RegionDecision(edge.order, (), self.depth(budget)))
        assert cost is not None  # it was lowered so
        return cost.resources
