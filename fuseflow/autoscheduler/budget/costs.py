"""The costs of regions under decisions: the cycles and resources of an estimate, corrected by what runs took.

Ranges that differ in names alone have one number, their *kind*. The costs of one of them are the costs of all.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from math import inf

from fuseflow.array.capacity import loading_cycles
from fuseflow.autoscheduler.budget.cut_graph import OrderedRange
from fuseflow.autoscheduler.budget.decision import Lanes, RegionDecision
from fuseflow.autoscheduler.budget.lane_models import Deal
from fuseflow.autoscheduler.budget.settings import SETTINGS
from fuseflow.errors import ScheduleError
from fuseflow.estimate.graph_cycles import Bound
from fuseflow.estimate.lane_costs import LaneCosts
from fuseflow.estimate.program import Estimator, TensorKnowledge
from fuseflow.estimate.region_conversion import estimator_regions
from fuseflow.lower.buffers import with_buffers
from fuseflow.lower.regions import dealt_region
from fuseflow.machine.machine import Machine
from fuseflow.resources import Resources
from fuseflow.resources.budget import Budget
from fuseflow.schedule import Schedule


@dataclass(frozen=True, slots=True)
class RegionCost:
    """The cycles of a region and of the copies that it reads, with those of loading them on an array, and of each resource the most that
    one of their graphs occupies.

    `least` are the cycles if no FIFO was ever full: deeper ones do not make the region faster than that. Cycles are infinite if
    the region is expected to stand still, because its FIFOs have too few slots. `loading` and `own` are the loading and the resources of
    the region alone.
    """

    cycles: float
    resources: Resources
    least: float = 0.0
    loading: int = 0
    own: Resources = field(default_factory=Resources)


@dataclass(frozen=True, slots=True)
class RegionRun:
    """The result of a simulation of a region: its cycles, and the bytes of all its FIFOs at the end. These are None if a FIFO had
    no bound, or if they were not kept."""

    cycles: int
    fifo: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class DealtRange:
    """A range in an order with the lanes that take the fewest cycles within a budget.

    `least` is a bound: no lanes of the range in this order take fewer cycles within the budget.
    """

    decision: RegionDecision
    cost: RegionCost
    least: float


@dataclass(slots=True)
class LoweredCosts:
    """Costs of regions that were lowered in one lane: by arithmetic where that is exact, else from the graph that has the lanes."""

    machine: Machine
    estimator: Estimator
    _latest: tuple[OrderedRange, LaneCosts] | None = None
    """The range of the last call, and its costs in lanes."""

    def __call__(self, ordered: OrderedRange, decision: RegionDecision) -> RegionCost | None:
        """Return the cost of a region with the lanes and depths of a decision; None if it cannot have them."""
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
        loading = self._loading(used)
        waits += loading
        self.estimator.memo.forget(SETTINGS.kept_counts)
        most = Resources.most_of((*(figures.resources for figures in copies), used))
        return RegionCost(waits + own, most, waits + least, loading, used)

    def near(self, ordered: OrderedRange, decisions: Sequence[RegionDecision]) -> list[float | None]:
        """Return about how many cycles a region takes under each decision, None where that is not known. This is much cheaper
        than the exact costs."""
        if not decisions or ordered.is_public:
            return [None] * len(decisions)
        whole = [decision for decision in decisions if not decision.has_stages]
        cycles = self.lane_costs(ordered).near([(dict(decision.lanes), decision.depth) for decision in whole])
        before = ordered.figures[-1].loading + sum(figures.cycles for figures in ordered.figures[:-1])
        known = {decision: own + before for decision, own in zip(whole, cycles, strict=True) if own is not None}
        return [known.get(decision) for decision in decisions]

    def _loading(self, used: Resources) -> int:
        """Return the cycles of loading a graph on the array, 0 without one."""
        return 0 if self.estimator.array is None else loading_cycles(used, self.estimator.array)

    def lane_costs(self, ordered: OrderedRange) -> LaneCosts:
        """Return the costs of a range in any lanes, which are computed from its graph in one lane."""
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
        """Return the bounds and the resources of the graph with the lanes of a decision. Raises `ScheduleError` if it cannot have them."""
        lowering, serial = ordered.before.lowering, ordered.pieces[-1]
        plain = replace(Schedule(), writers=lowering.partitioned.schedule.writers)
        region = dealt_region(lowering, serial, decision.scheduled(plain, serial.name, is_ordered=False))
        (piece,) = estimator_regions((replace(region, views_before=()),))
        estimate = self.estimator.region(piece, self.machine, self._knowledge(ordered))
        return estimate.bound, estimate.resources


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


@dataclass(slots=True)
class DecisionCosts:
    """The costs of decisions, each estimated at most once, and expected by arithmetic at most once, for all ranges of a kind."""

    costs: LoweredCosts
    evaluated: int = 0
    """How many costs were estimated."""
    _numbers: dict[Hashable, int] = field(default_factory=dict)
    _number_of: dict[OrderedRange, int] = field(default_factory=dict)
    _ranges: dict[int, OrderedRange] = field(default_factory=dict)
    """The first range of each kind. Decisions are stored with the names of its stages."""
    _exact: dict[int, dict[RegionDecision, RegionCost | None]] = field(default_factory=dict)
    _near: dict[int, dict[RegionDecision, float | None]] = field(default_factory=dict)
    _growth: FifoGrowth = field(default_factory=FifoGrowth)
    _ran: dict[tuple[int, RegionDecision], float] = field(default_factory=dict)
    """The cycles of decisions in runs that took more than was expected."""
    _stuck: set[tuple[int, RegionDecision]] = field(default_factory=set)
    """The decisions with which a program did not run to its end."""

    def kind(self, edge: OrderedRange) -> int:
        """Return the number of a range in an order. Ranges that differ in names alone have the same number."""
        if edge not in self._number_of:
            number = self._numbers.setdefault(edge.key, len(self._numbers))
            self._number_of[edge] = number
            self._ranges.setdefault(number, edge)
        return self._number_of[edge]

    def first(self, edge: OrderedRange) -> OrderedRange:
        """Return the first range of the kind of `edge`. Decisions are stored with the names of its stages."""
        return self._ranges[self.kind(edge)]

    def named(self, edge: OrderedRange, decision: RegionDecision) -> RegionDecision:
        """Return a decision about the first range of a kind, with the names of the stages of `edge`."""
        return _renamed(decision, self.first(edge), edge)

    def own(self, edge: OrderedRange, decision: RegionDecision) -> RegionDecision:
        """Return a decision about `edge`, with the names of the stages of the first range of its kind."""
        return _renamed(decision, edge, self.first(edge))

    def estimated(self, edge: OrderedRange) -> tuple[RegionDecision, ...]:
        """Return the decisions about a range that were estimated, with the names of the stages of the first range of its kind."""
        return tuple(self._exact.get(self.kind(edge), {}))

    def fitting(self, edge: OrderedRange, decision: RegionDecision, budget: Budget) -> RegionCost | None:
        """Return the cost of a decision, corrected by runs; None if the region has no room for it, or stands still with it."""
        cost = None if (self.kind(edge), decision) in self._stuck else self.cost(edge, decision)
        if cost is not None:
            cycles = self._ran.get((self.kind(edge), decision), cost.cycles)
            cost = replace(cost, cycles=cycles, resources=self._growth.grown(self.kind(edge), decision, cost.resources))
        return None if cost is None or cost.cycles == inf or budget.exceeded(cost.resources) else cost

    def stands_still(self, edge: OrderedRange, lanes: Lanes, depth: int | None) -> bool:
        """Return whether a range is expected to stand still in some lanes with FIFOs of `depth` slots."""
        cost = self.cost(edge, RegionDecision(edge.order, lanes, depth))
        return cost is not None and cost.cycles == inf

    def cost(self, edge: OrderedRange, decision: RegionDecision) -> RegionCost | None:
        """Return the estimated cost of a decision, None if the region cannot have it. If the region stands still with the same
        lanes and deeper FIFOs, their cost is returned."""
        exact = self._exact.setdefault(self.kind(edge), {})
        if decision not in exact:
            deeper = (
                exact.get(replace(decision, depth=depth))
                for depth in (SETTINGS.bounded_fifos, *SETTINGS.shallow_fifos)
                if depth > (decision.depth or inf)
            )
            stuck = next((cost for cost in deeper if cost is not None and cost.cycles == inf), None)
            self.evaluated += stuck is None
            exact[decision] = self.costs(edge, decision) if stuck is None else stuck
        return exact[decision]

    def near(self, edge: OrderedRange, decisions: Iterable[RegionDecision]) -> list[float | None]:
        """Return the cycles that arithmetic expects of a range under each decision, None where it cannot tell."""
        wanted, known = tuple(decisions), self._near.setdefault(self.kind(edge), {})
        missing = [decision for decision in dict.fromkeys(wanted) if decision not in known]
        known |= zip(missing, self.costs.near(edge, missing) if missing else (), strict=True)
        return [known[decision] for decision in wanted]

    def near_in_lanes(self, edge: OrderedRange, deals: Sequence[Deal], depth: int | None) -> list[float | None]:
        """Return the cycles that arithmetic expects of a range in the lanes of each deal, with FIFOs of `depth` slots."""
        return self.near(edge, (RegionDecision(edge.order, deal.lanes, depth) for deal in deals))

    def compared(self, edge: OrderedRange, deals: Sequence[Deal], depth: int | None) -> list[tuple[float, Deal]]:
        """Return the most promising deals with their expected cycles, the fewest first: by arithmetic, or else their `least`
        cycles. `deals` are sorted by least cycles; those whose least cycles are more than others are expected to take are left
        out."""
        first, compared, fewest = deals[: SETTINGS.max_compared], list[tuple[float, Deal]](), inf
        for deal, near in zip(first, self.near_in_lanes(edge, first, depth), strict=True):
            if deal.least > fewest:
                break
            compared.append((deal.least if near is None else max(near, deal.least), deal))
            fewest = min(fewest, inf if near is None else compared[-1][0])
        return sorted(compared, key=lambda one: (one[0], one[1].rank))

    def single(self, edge: OrderedRange, depth: int | None) -> Resources:
        """Return the resources of a range in one lane, with FIFOs of `depth` slots, or of the machine's (None)."""
        decision = RegionDecision(edge.order, (), depth)
        if depth is None:
            used = Resources.most_of(figures.resources for figures in edge.figures)
        else:
            cost = self.cost(self.first(edge), decision)
            assert cost is not None  # it was lowered so
            used = cost.resources
        return self._growth.grown(self.kind(edge), decision, used)

    def with_deeper_fifos(self, edge: OrderedRange, budget: Budget, dealt: DealtRange, by_arithmetic: bool) -> DealtRange:
        """Return a range, whose lanes are chosen, with the deepest FIFOs that have room, if it takes fewer cycles with them, else
        as it is. With `by_arithmetic`, only depths from which arithmetic expects a gain are estimated, where it can tell."""
        first, used = self.costs.machine.first_depth, dealt.cost.resources.fifo
        if first is None or self.costs.machine.rules == "comal" or dealt.cost.least >= SETTINGS.gain * dealt.cost.cycles:
            return dealt
        decisions = [replace(dealt.decision, depth=depth) for depth in SETTINGS.deep_fifos]
        near = [cycles for cycles in (self.near(edge, decisions) if by_arithmetic else ()) if cycles is not None]
        if len(near) < len(decisions):
            return self._deepened(edge, budget, dealt, decisions)
        deeper, fewest = list[RegionDecision](), dealt.cost.cycles
        for decision, depth, cycles in zip(decisions, SETTINGS.deep_fifos, near, strict=True):
            has_room = used is None or used * depth / (dealt.decision.depth or first) <= budget.limits.get("fifo", inf)
            if has_room and cycles < SETTINGS.gain * fewest:
                deeper, fewest = [*deeper, decision], cycles
        for decision in reversed(deeper):
            cost = self.fitting(edge, decision, budget)
            if cost is not None and cost.cycles < SETTINGS.gain * dealt.cost.cycles:
                return DealtRange(decision, cost, min(dealt.least, cost.cycles))
        return dealt

    def _deepened(self, edge: OrderedRange, budget: Budget, dealt: DealtRange, decisions: Iterable[RegionDecision]) -> DealtRange:
        """Return the range with FIFOs that are made deeper and deeper while they have room."""
        for decision in decisions:
            cost = self.fitting(edge, decision, budget)
            if cost is None:
                break
            if cost.cycles < SETTINGS.gain * dealt.cost.cycles:
                dealt = DealtRange(decision, cost, min(dealt.least, cost.cycles))
        return dealt

    def keep_run(self, edge: OrderedRange, decision: RegionDecision, run: RegionRun) -> bool:
        """Keep the cycles that a range took in a run, and the bytes of its FIFOs at the end. Return whether either is more than
        was known."""
        kind, own, fifo = self.kind(edge), self.own(edge, decision), run.fifo
        cost = self.cost(self.first(edge), own)
        if cost is None:
            return False
        slower = len(edge.pieces) == 1 and run.cycles > self._ran.get((kind, own), cost.cycles)
        if slower:
            self._ran[kind, own] = float(run.cycles)
        known = cost.resources.fifo
        grown = fifo is not None and known is not None and self._growth.keep(kind, own, fifo - known)
        return slower or grown

    def keep_stuck(self, edge: OrderedRange, decision: RegionDecision) -> bool:
        """Keep that a program did not run to its end with this decision, if the decision states the depth of FIFOs. Then neither
        this nor a shallower depth is chosen again with the same lanes. Return whether it states a depth."""
        kind, own = self.kind(edge), self.own(edge, decision)
        if own.depth is None:
            return False
        self._stuck |= {(kind, replace(own, depth=depth)) for depth in (own.depth, *SETTINGS.shallow_fifos) if depth <= own.depth}
        return True

    def forget_cycles(self) -> set[int]:
        """Forget the cycles of ranges in runs, so that the estimates hold again. Return the kinds that had such cycles."""
        kinds = {kind for kind, _ in self._ran}
        self._ran.clear()
        return kinds


def _renamed(decision: RegionDecision, old: OrderedRange, new: OrderedRange) -> RegionDecision:
    """Return a decision about a range with the names of the stages of another one of its kind."""
    if old is new or not decision.has_stages:
        return decision
    return decision.renamed(dict(zip(old.pieces[-1].stages, new.pieces[-1].stages, strict=True)))
