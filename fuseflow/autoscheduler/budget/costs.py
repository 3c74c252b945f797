"""The cost of a region under a decision: its cycles by estimate, and the resources of its graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Protocol

from fuseflow.autoscheduler.budget.cut_graph import OrderedRange
from fuseflow.autoscheduler.budget.decision import RegionDecision
from fuseflow.autoscheduler.budget.settings import SETTINGS
from fuseflow.errors import ScheduleError
from fuseflow.estimate.estimator_regions import estimator_regions
from fuseflow.estimate.graph_cycles import Bound
from fuseflow.estimate.lane_costs import LaneCosts
from fuseflow.estimate.program import Estimator, TensorKnowledge
from fuseflow.lower.buffers import with_buffers
from fuseflow.lower.regions import dealt_region
from fuseflow.machine.machine import Machine
from fuseflow.resources import Resources


@dataclass(frozen=True, slots=True)
class RegionCost:
    """The cycles of a region and of the copies that it reads, and of each resource the most that one of their graphs occupies.

    `least` are the cycles if no FIFO was ever full: deeper ones do not make the region faster than that. Cycles are infinite if
    the region is expected to stand still, because its FIFOs have too few slots.
    """

    cycles: float
    resources: Resources
    least: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class DealtRange:
    """A range in an order with the lanes that take the fewest cycles within a budget.

    `least` is a bound: no lanes of the range in this order take fewer cycles within the budget.
    """

    decision: RegionDecision
    cost: RegionCost
    least: float


class CandidateCosts(Protocol):
    """The costs of regions under decisions. Implementations compute them in different ways, but must return the same numbers."""

    def __call__(self, ordered: OrderedRange, decision: RegionDecision) -> RegionCost | None:
        """Return the cost of a region with the lanes and depths of a decision; None if it cannot have them. `ordered` was lowered
        in one lane."""
        ...

    def near(self, ordered: OrderedRange, decisions: Sequence[RegionDecision]) -> list[float | None]:
        """Return about how many cycles a region takes under each decision, None where that is not known. This is much cheaper
        than the exact costs."""
        ...

    def lane_costs(self, ordered: OrderedRange) -> LaneCosts:
        """Return the costs of a range in any lanes, which are computed from its graph in one lane."""
        ...


@dataclass(slots=True)
class LoweredCosts:
    """Costs of regions that were lowered in one lane: by arithmetic where that is exact, else from the graph that has the
    lanes."""

    machine: Machine
    estimator: Estimator
    _latest: tuple[OrderedRange, LaneCosts] | None = None
    """The range of the last call, and its costs in lanes."""

    def __call__(self, ordered: OrderedRange, decision: RegionDecision) -> RegionCost | None:
        try:
            if decision.has_stages or ordered.is_public:
                bound, used = self._lowered(ordered, decision)
            else:
                bound, _, used, _ = self.lane_costs(ordered).cost(dict(decision.lanes), decision.depth)
        except ScheduleError:
            return None
        copies = ordered.figures[:-1]
        waits, own = sum(figures.cycles for figures in copies), inf if bound.stands_still else float(bound.cycles)
        least = float(replace(bound, fifos=0, imbalance=0).cycles)
        self.estimator.memo.forget(SETTINGS.kept_counts)
        used = Resources.most_of((*(figures.resources for figures in copies), used))
        return RegionCost(waits + own, used, waits + least)

    def near(self, ordered: OrderedRange, decisions: Sequence[RegionDecision]) -> list[float | None]:
        if not decisions or ordered.is_public:
            return [None] * len(decisions)
        whole = [decision for decision in decisions if not decision.has_stages]
        cycles = self.lane_costs(ordered).near([(dict(decision.lanes), decision.depth) for decision in whole])
        copies = sum(figures.cycles for figures in ordered.figures[:-1])
        known = {decision: own + copies for decision, own in zip(whole, cycles, strict=True) if own is not None}
        return [known.get(decision) for decision in decisions]

    def lane_costs(self, ordered: OrderedRange) -> LaneCosts:
        if self._latest is None or self._latest[0] is not ordered:
            region, partitioned = ordered.pieces[-1], ordered.before.lowering.partitioned
            graph = with_buffers(region.serial, partitioned, region.fused)
            table, writers, knowledge = region.table, partitioned.schedule.writers, self._knowledge(ordered)
            costs = LaneCosts(self.estimator, graph, table.loops, ordered.order, self.machine, knowledge, writers, table.stages)
            self._latest = ordered, costs
        return self._latest[1]

    def _knowledge(self, ordered: OrderedRange) -> TensorKnowledge:
        """Return the facts about tensors after the copies that a range reads were made, and before its region runs."""
        knowledge = ordered.before.knowledge.copy()
        *copies, region = estimator_regions(ordered.pieces)
        for piece in copies:
            self.estimator.region(piece, self.machine, knowledge)
        self.estimator.add_views(region.views_before, knowledge)
        return knowledge

    def _lowered(self, ordered: OrderedRange, decision: RegionDecision) -> tuple[Bound, Resources]:
        """Return the bounds and the resources of the graph with the lanes of a decision, as it is compiled. Raises
        `ScheduleError` for lanes that it cannot have."""
        schedule = decision.scheduled(ordered.lane_schedule(()), ordered.pieces[-1].name, is_ordered=False)
        region = dealt_region(ordered.before.lowering, ordered.pieces[-1], schedule)
        (piece,) = estimator_regions((replace(region, views_before=()),))
        estimate = self.estimator.region(piece, self.machine, self._knowledge(ordered))
        return estimate.bound, estimate.resources
