"""The costs of decisions about ranges, by the estimate, corrected by what runs took.

Ranges that differ in names alone have one number, their *kind*. The costs of one of them are the costs of all.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from math import inf

from fuseflow.autoscheduler.budget.costs import CandidateCosts, RegionCost
from fuseflow.autoscheduler.budget.cut_graph import OrderedRange
from fuseflow.autoscheduler.budget.deals import Deal
from fuseflow.autoscheduler.budget.decision import Lanes, RegionDecision
from fuseflow.autoscheduler.budget.fifo_growth import FifoGrowth
from fuseflow.autoscheduler.budget.settings import SETTINGS
from fuseflow.autoscheduler.budget.trials import RegionRun
from fuseflow.resources import Resources
from fuseflow.resources.budget import Budget


@dataclass(slots=True)
class DecisionCosts:
    """The costs of decisions. Each is estimated at most once, and expected by arithmetic at most once, for all ranges of a
    kind."""

    costs: CandidateCosts
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
        """Return the cost of a decision, corrected by runs. None if the region cannot have it within the budget, or stands still
        with it."""
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
