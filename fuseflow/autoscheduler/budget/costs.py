"""The cost of a region under a decision: its cycles by estimate, and what its graph occupies."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Protocol

from fuseflow.autoscheduler.budget.cut_graph import OrderedRange
from fuseflow.autoscheduler.budget.decision import Lanes, RegionDecision
from fuseflow.autoscheduler.budget.settings import SETTINGS
from fuseflow.errors import ScheduleError
from fuseflow.estimate.lane_costs import LaneCosts
from fuseflow.estimate.program import Estimator
from fuseflow.lower.depths import with_depths
from fuseflow.lower.regions import CompiledRegion, dealt_region
from fuseflow.resources import Resources
from fuseflow.run.estimator_regions import estimator_regions
from fuseflow.schedule import Schedule
from fuseflow.sim import Machine


@dataclass(frozen=True, slots=True)
class RegionCost:
    """The cycles of a region together with its copies, and the most that one of these graphs occupies of each resource.

    `least` are the cycles if no FIFO was ever full: deeper ones do not make the region faster than that. Cycles are infinite if the
    region is expected to stand still, because its FIFOs have too few slots.
    """

    cycles: float
    resources: Resources
    least: float = 0.0


class CandidateCosts(Protocol):
    """What a region costs under a decision. Implementations differ in how they come to it, and agree in the numbers."""

    def __call__(self, ordered: OrderedRange, decision: RegionDecision) -> RegionCost | None:
        """Return the cost of a region that stands in one lane, as it is with other lanes and depths. None if it cannot have these."""
        ...

    def near(self, ordered: OrderedRange, decisions: Sequence[RegionDecision]) -> list[float | None]:
        """Return about how many cycles a region takes under each of some decisions, for much less than their costs take. None where
        nothing is known."""
        ...


@dataclass(slots=True)
class LoweredCosts:
    """Costs by lowering the region with its lanes and estimating its graph, as the compiled program has it."""

    machine: Machine
    estimator: Estimator
    _latest: tuple[OrderedRange, dict[Lanes, CompiledRegion | None]] | None = None
    """The last range with the regions in lanes that were lowered for it, with the FIFOs of the machine."""
    _arithmetic: tuple[OrderedRange, LaneCosts] | None = None
    """The last range whose lanes were looked at by arithmetic."""

    def __call__(self, ordered: OrderedRange, decision: RegionDecision) -> RegionCost | None:
        region = self._dealt(ordered, decision.lanes)
        if region is None:
            return None
        if decision.depth is not None:
            schedule = Schedule().depth(region.name, decision.depth)
            region = replace(region, graph=with_depths(region.graph, region.name, region.places, schedule))
        copies = ordered.pieces[:-1]
        knowledge, cycles, least, used = ordered.before.knowledge.copy(), 0.0, 0.0, list[Resources]()
        for piece in estimator_regions((*copies, region)):
            estimate = self.estimator.region(piece, self.machine, knowledge)
            cycles += inf if estimate.bound.stands_still else estimate.bound.cycles
            least += replace(estimate.bound, fifos=0, imbalance=0).cycles
            used.append(estimate.resources)
        self.estimator.memo.forget(SETTINGS.kept_counts)
        return RegionCost(float(cycles), most(used), float(least))

    def near(self, ordered: OrderedRange, decisions: Sequence[RegionDecision]) -> list[float | None]:
        if not decisions or ordered.pieces[-1].own is not None:
            return [None] * len(decisions)
        whole = [decision for decision in decisions if not decision.has_stages]
        cycles = self.lane_costs(ordered).near([(dict(decision.lanes), decision.depth) for decision in whole])
        copies = sum(figures.cycles for figures in ordered.figures[:-1])
        known = {decision: own + copies for decision, own in zip(whole, cycles, strict=True) if own is not None}
        return [known.get(decision) for decision in decisions]

    def lane_costs(self, ordered: OrderedRange) -> LaneCosts:
        """Return what a range costs in lanes, counted in one lane."""
        if self._arithmetic is None or self._arithmetic[0] is not ordered:
            region, knowledge = ordered.pieces[-1], ordered.before.knowledge.copy()
            for piece in estimator_regions(ordered.pieces[:-1]):
                self.estimator.region(piece, self.machine, knowledge)
            (known,) = estimator_regions((region,))
            self.estimator.add_views(known.views_before, knowledge)
            loops, writers = region.table.loops, ordered.before.lowering.partitioned.schedule.writers
            costs = LaneCosts.of(self.estimator, region.serial, loops, ordered.order, self.machine, knowledge, writers)
            self._arithmetic = ordered, costs
        return self._arithmetic[1]

    def _dealt(self, ordered: OrderedRange, lanes: Lanes) -> CompiledRegion | None:
        """Return the region of a range in lanes, None if it cannot have them."""
        if self._latest is None or self._latest[0] is not ordered:
            self._latest = ordered, {(): ordered.pieces[-1]}
        regions = self._latest[1]
        if lanes not in regions:
            region = ordered.pieces[-1]
            schedule = ordered.lane_schedule(lanes)
            try:
                regions[lanes] = dealt_region(ordered.before.lowering, region, schedule)
            except ScheduleError:
                regions[lanes] = None
        return regions[lanes]


def most(used: Iterable[Resources]) -> Resources:
    """Return the most of each component that one of some regions occupies."""
    return Resources.most_of(used)
