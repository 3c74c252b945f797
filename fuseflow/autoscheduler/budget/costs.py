"""The cost of a region under a decision: its cycles by estimate, and what its graph occupies."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from fuseflow.autoscheduler.budget.cut_graph import KEPT_COUNTS, OrderedRange
from fuseflow.autoscheduler.budget.decision import RegionDecision
from fuseflow.errors import ScheduleError
from fuseflow.estimate.program import Estimator
from fuseflow.lower.regions import dealt_region
from fuseflow.resources import Resources
from fuseflow.run.estimator_regions import estimator_regions
from fuseflow.schedule import Schedule
from fuseflow.sim import Machine


@dataclass(frozen=True, slots=True)
class RegionCost:
    """The cycles of a region together with its copies, and the most that one of these graphs occupies of each resource."""

    cycles: float
    resources: Resources


class CandidateCosts(Protocol):
    """What a region costs under a decision. Implementations differ in how they come to it, and agree in the numbers."""

    def __call__(self, ordered: OrderedRange, decision: RegionDecision) -> RegionCost | None:
        """Return the cost of a region that stands in one lane, as it is with other lanes and depths. None if it cannot have these."""
        ...


@dataclass(slots=True)
class LoweredCosts:
    """Costs by lowering the region with its lanes and estimating its graph, as the compiled program has it."""

    machine: Machine
    estimator: Estimator

    def __call__(self, ordered: OrderedRange, decision: RegionDecision) -> RegionCost | None:
        *copies, region = ordered.pieces
        if decision.lanes or decision.depth is not None:
            schedule = decision.scheduled(Schedule(), region.name, is_ordered=False)
            try:
                region = dealt_region(ordered.before.lowering, region, schedule)
            except ScheduleError:
                return None
        knowledge, cycles, used = ordered.before.knowledge.copy(), 0.0, list[Resources]()
        for piece in estimator_regions((*copies, region)):
            estimate = self.estimator.region(piece, self.machine, knowledge)
            cycles += estimate.bound.cycles
            used.append(estimate.resources)
        self.estimator.memo.forget(KEPT_COUNTS)
        return RegionCost(float(cycles), most(used))


def most(used: Iterable[Resources]) -> Resources:
    """Return the most of each component that one of some regions occupies."""
    return Resources.most_of(used)
