"""The costs of the ranges of a program under a budget: first a bound, then the cycles with the best lanes.

A bound is `max(work / lanes, bytes / bandwidth)`: no lanes make the arithmetic of a region less, or its bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from math import inf

from fuseflow.array.settings import ArraySettings
from fuseflow.autoscheduler.budget.costs import DealtRange, DecisionCosts, LoweredCosts, RegionCost, RegionRun
from fuseflow.autoscheduler.budget.cut_graph import OrderedRange
from fuseflow.autoscheduler.budget.decision import Freedom, RegionDecision
from fuseflow.autoscheduler.budget.lane_models import Deal, LaneModel, StageModel
from fuseflow.autoscheduler.budget.lane_trials import LaneTrials
from fuseflow.autoscheduler.budget.paths import NOTHING, RangeOption, most_loading, undominated_options
from fuseflow.autoscheduler.budget.settings import SETTINGS
from fuseflow.resources import Resources
from fuseflow.resources.budget import Budget


@dataclass(slots=True)
class RangeCosts:
    """The costs of ranges. Results for one budget serve the next, and results for one range serve all that differ in names alone.

    `tried` is for how many lanes of a range graphs are made; None means all lanes that may be the best.
    """

    costs: LoweredCosts
    tried: int | None = SETTINGS.max_tried
    _models: dict[tuple[int, bool], LaneModel] = field(default_factory=dict)
    _stage_models: dict[int, StageModel] = field(default_factory=dict)
    _dealt_at: dict[tuple[int, Budget, Freedom, int | None], DealtRange | None] = field(default_factory=dict)
    _dealt: dict[tuple[int, Budget, Freedom], DealtRange | None] = field(default_factory=dict)
    _nearest: dict[tuple[Budget, Freedom], float] = field(default_factory=dict)
    _stage_gains: dict[tuple[Budget, Freedom], float] = field(default_factory=dict)
    """The least ratio of the cycles of a range with lanes of stages to its cycles with lanes of the whole region."""
    _arithmetic_gains: dict[Budget, float] = field(default_factory=dict)
    """The least ratio of the cycles of a range to the cycles that arithmetic expects."""
    _reaches: dict[tuple[int, Budget], float] = field(default_factory=dict)
    _options: dict[tuple[int, Budget, Freedom], tuple[RangeOption, ...]] = field(default_factory=dict)
    decisions: DecisionCosts = field(init=False)
    """The costs of single decisions."""

    def __post_init__(self) -> None:
        self.decisions = DecisionCosts(self.costs)

    @property
    def coupling_array(self) -> ArraySettings | None:
        """The array on which neighbours decide together what loading costs, None if there is none."""
        array = self.costs.estimator.array
        return None if array is None or array.resident == 1 else array

    def options(self, edge: OrderedRange, budget: Budget, freedom: Freedom) -> tuple[RangeOption, ...]:
        """Return the ways to run a range that may be the best beside some neighbours, of those that were estimated, with the names of the
        stages of the first range of its kind. There are none before its lanes were chosen."""
        if not edge.pieces:
            return (NOTHING,)
        known = [own for own in (freedom, replace(freedom, dealing="regions")) if self.known(edge, budget, own)]
        array = self.coupling_array
        if array is None or not known or (known[0] != freedom and freedom.dealing != "stages"):
            return ()
        key, depth = (self.decisions.kind(edge), budget, known[0]), self.depth(budget)
        if key not in self._options:
            allowed = [own for own in self.decisions.estimated(edge) if known[0].allows(own, depth)]
            costs = [(own, self.decisions.fitting(edge, own, budget)) for own in allowed]
            options = (RangeOption.of(edge, own, cost, array) for own, cost in costs if cost is not None)
            self._options[key] = undominated_options(options)
        return self._options[key]

    def relaxed(self, edge: OrderedRange, budget: Budget) -> float:
        """Return the least cycles of a range within a budget by its work and bytes; infinite if even one lane has no room."""
        if not edge.pieces:
            return 0.0
        if not self._depths(edge, budget):
            return inf
        *copies, region = edge.figures
        compute = max((region.work[name] / limit for name, limit in budget.limits.items() if name in region.work), default=0.0)
        return sum(copy.cycles for copy in copies) + region.loading + max(compute, region.memory) * region.stretch

    def expected(self, edge: OrderedRange, budget: Budget, freedom: Freedom) -> float:
        """Return the cycles that a range is expected to take before all of its lanes are chosen.

        At first it is the bound, times the least ratio of cycles to bound that any range had so far. Then it is the cycles that
        arithmetic expects of the most promising lanes. Once lanes of the whole region are chosen, lanes of its stages are
        expected to gain as much as they gained in the range that gained most.
        """
        bound, key, whole = self.relaxed(edge, budget), (budget, freedom), replace(freedom, dealing="regions")
        if freedom.dealing == "stages" and self.known(edge, budget, whole):
            dealt = self.best(edge, budget, whole)
            return inf if dealt is None else max(bound, dealt.cost.cycles * self._stage_gains.get(key, 1.0))
        reach = 0.0 if freedom.dealing == "nothing" else self._reaches.get((self.decisions.kind(edge), budget), 0.0)
        gain = self._arithmetic_gains.get(budget, 1.0) * self._stage_gains.get(key, 1.0)
        return max(bound * self._nearest.get(key, 1.0), reach * gain)

    def known(self, edge: OrderedRange, budget: Budget, freedom: Freedom) -> bool:
        """Return whether the lanes of a range were chosen for a budget and a freedom."""
        return not edge.pieces or (self.decisions.kind(edge), budget, freedom) in self._dealt

    def refine(self, edge: OrderedRange, budget: Budget, freedom: Freedom) -> bool:
        """Compute more of the costs of a range each time: by arithmetic, then with lanes of the whole region, then with lanes of
        its stages. If all lanes that may be the best are wanted, they are chosen at once. Return whether these are its first
        lanes."""
        whole = replace(freedom, dealing="regions")
        if self.tried is None or freedom.dealing == "nothing":
            self.best(edge, budget, freedom)
            return True
        if (self.decisions.kind(edge), budget) not in self._reaches and self.relaxed(edge, budget) < inf:
            self._reach(self.decisions.first(edge), budget)
            return False
        is_new = not self.known(edge, budget, whole)
        self.best(edge, budget, whole if is_new else freedom)
        return is_new

    def chosen(self, edge: OrderedRange, budget: Budget, freedom: Freedom) -> DealtRange | None:
        """Return a range with the lanes that were chosen for it so far. None if none were, or if it has no room."""
        known = (own for own in (freedom, replace(freedom, dealing="regions")) if self.known(edge, budget, own))
        own = next(known, None)
        return None if own is None or (own != freedom and freedom.dealing != "stages") else self.best(edge, budget, own)

    def best(self, edge: OrderedRange, budget: Budget, freedom: Freedom) -> DealtRange | None:
        """Return a range with its best lanes and depths. None if it has no room."""
        if not edge.pieces:
            return DealtRange(RegionDecision(edge.order), RegionCost(0.0, Resources()), 0.0)
        key = self.decisions.kind(edge), budget, freedom
        if key not in self._dealt:
            first = self.decisions.first(edge)
            depths = self._depths(first, budget) if freedom.depths else [self.depth(budget)]
            if depths and freedom.dealing != "nothing" and self._is_hopeless(first, budget):
                depths = []
            choices = [self._dealt_over(first, budget, freedom, depth) for depth in depths]
            dealt = min((c for c in choices if c is not None), key=lambda c: c.cost.cycles, default=None)
            if dealt is None and freedom.depths and depths and self.depth(budget) is not None:
                # It stands still: the fewest slots of FIFOs are taken with which it does not.
                deeper = (self._dealt_over(first, budget, freedom, depth) for depth in SETTINGS.deep_fifos)
                dealt = next((each for each in deeper if each is not None), None)
            if dealt is not None and freedom.depths and not freedom.quick:
                dealt = self.decisions.with_deeper_fifos(first, budget, dealt, by_arithmetic=self.tried is not None)
            self._dealt[key] = dealt
            self._compare(first, budget, freedom, dealt)
        dealt = self._dealt[key]
        return None if dealt is None else replace(dealt, decision=self.decisions.named(edge, dealt.decision))

    def _is_hopeless(self, edge: OrderedRange, budget: Budget) -> bool:
        """Return whether arithmetic expects many times the cycles of the order that the compiler ranks best."""
        if self.tried is None or edge.best_ranked is None:
            return False
        return (
            self._reach(edge, budget) > SETTINGS.hopeless_order * self._reach(self.decisions.first(edge.best_ranked), budget) > 0
        )

    def _reach(self, edge: OrderedRange, budget: Budget) -> float:
        """Return the fewest cycles that arithmetic expects of a range with FIFOs that are never full; 0 if it cannot tell."""
        key = self.decisions.kind(edge), budget
        if key not in self._reaches:
            depth = None if self.costs.machine.first_depth is None else SETTINGS.deep_fifos[-1]
            deals = self._promising(edge, budget, None)[: SETTINGS.max_compared]
            near = self.decisions.near_in_lanes(edge, deals, depth)
            self._reaches[key] = min((0.0 if cycles is None else cycles for cycles in near), default=0.0)
        return self._reaches[key]

    def fitting(self, edge: OrderedRange, budget: Budget, freedom: Freedom) -> list[tuple[RegionDecision, RegionCost]]:
        """Return the decisions about a range that were estimated, have room, and are within the freedom, with their costs. If the
        lanes of the range were chosen, the lanes that arithmetic ranks next are estimated, too."""
        first = self.decisions.first(edge) if edge.pieces else edge
        is_chosen = edge.pieces and self.known(edge, budget, freedom) and freedom.dealing != "nothing"
        if self.tried is not None and is_chosen:
            for depth in self._depths(first, budget) if freedom.depths else [self.depth(budget)]:
                for _, deal in self._compared(first, self._deals(first, budget, depth), depth)[: self.tried]:
                    self.decisions.fitting(first, RegionDecision(first.order, deal.lanes, depth), budget)
        return [
            (self.decisions.named(edge, decision), cost)
            for decision in (self.decisions.estimated(edge) if edge.pieces else ())
            if (cost := self.decisions.fitting(edge, decision, budget)) is not None
            and freedom.allows(decision, self.depth(budget))
        ]

    def keep_run(self, edge: OrderedRange, decision: RegionDecision, run: RegionRun) -> None:
        """Keep the cycles and FIFOs of a range in a run. Where they are more than was known, lanes are chosen again."""
        if self.decisions.keep_run(edge, decision, run):
            self._forget(self.decisions.kind(edge))

    def keep_stuck(self, edge: OrderedRange, decision: RegionDecision) -> None:
        """Keep that a program did not run to its end with this decision. The lanes of ranges of this kind are chosen again."""
        if self.decisions.keep_stuck(edge, decision):
            self._forget(self.decisions.kind(edge))

    def forget_cycles(self) -> None:
        """Forget the cycles of ranges in runs, so that all costs are those of the estimate again."""
        for kind in self.decisions.forget_cycles():
            self._forget(kind)

    def _forget(self, kind: int) -> None:
        """Let the lanes of ranges of a kind be chosen again."""
        self._dealt_at = {key: dealt for key, dealt in self._dealt_at.items() if key[0] != kind}
        self._dealt = {key: dealt for key, dealt in self._dealt.items() if key[0] != kind}
        self._options = {key: options for key, options in self._options.items() if key[0] != kind}

    def depth(self, budget: Budget) -> int | None:
        """Return the slots that the schedule states for all FIFOs: None, unless the budget bounds FIFOs and the machine does not."""
        unbounded = self.costs.machine.first_depth is None and self.costs.machine.rules != "comal"
        return SETTINGS.bounded_fifos if unbounded and "fifo" in budget.limits else None

    def _compare(self, edge: OrderedRange, budget: Budget, freedom: Freedom, dealt: DealtRange | None) -> None:
        """Keep the ratios of the cycles of a range to what was expected, unless all lanes that may be the best are wanted."""
        bound, key = self.relaxed(edge, budget), (budget, freedom)
        if self.tried is None or dealt is None or not bound:
            return
        self._nearest[key] = min(self._nearest.get(key, inf), dealt.cost.cycles / bound)
        if freedom.dealing == "stages":
            whole = self.best(edge, budget, replace(freedom, dealing="regions"))
            if whole is not None and whole.cost.cycles:
                self._stage_gains[key] = min(self._stage_gains.get(key, 1.0), dealt.cost.cycles / whole.cost.cycles)
        elif freedom.dealing == "regions":
            reach = self._reaches.get((self.decisions.kind(edge), budget), 0.0)
            if reach:
                self._arithmetic_gains[budget] = min(self._arithmetic_gains.get(budget, 1.0), dealt.cost.cycles / reach)
            staged = budget, replace(freedom, dealing="stages")
            self._nearest[staged] = min(self._nearest.get(staged, inf), self._nearest[key])

    def _depths(self, edge: OrderedRange, budget: Budget) -> list[int | None]:
        """Return the slots of FIFOs with which a range has room in one lane, None for the slots of the machine. Fewer slots are
        among them where the FIFOs of the machine take much of the budget."""
        first = self.depth(budget)
        used, limit = self.decisions.single(edge, first), budget.limits.get("fifo")
        depths = [] if budget.exceeded(used) else [first]
        if limit is not None and (used.fifo or inf) > SETTINGS.crowded_fifos * limit and self.costs.machine.rules != "comal":
            depths += [depth for depth in SETTINGS.shallow_fifos if not budget.exceeded(self.decisions.single(edge, depth))]
        return depths

    def _dealt_over(self, edge: OrderedRange, budget: Budget, freedom: Freedom, depth: int | None) -> DealtRange | None:
        """Return a range with its best lanes and FIFOs of `depth` slots; None if it has no room."""
        key = self.decisions.kind(edge), budget, replace(freedom, depths=False), depth
        if key not in self._dealt_at:
            if freedom.dealing == "stages":
                regions = self._dealt_over(edge, budget, replace(freedom, dealing="regions"), depth)
                self._dealt_at[key] = self._with_stages(edge, budget, regions, freedom, depth)
            else:
                self._dealt_at[key] = self._best(edge, budget, freedom, depth)
        return self._dealt_at[key]

    # Lanes of a region ---------------------------------------------------------------------------------------------------------

    def _best(self, edge: OrderedRange, budget: Budget, freedom: Freedom, depth: int | None) -> DealtRange | None:
        """Return a range in one lane, or with the best lanes of the whole region; None if it has no room."""
        bound, dealt = self.relaxed(edge, budget), freedom.dealing == "regions"
        tried = SETTINGS.quick_tried if freedom.quick else self.tried
        if bound == inf:
            return None
        deals = self._deals(edge, budget, depth) if dealt else [Deal((), self._model(edge).amounts(()), bound)]
        compared = self._compared(edge, deals, depth)
        candidates = [*compared, *((deal.least, deal) for deal in deals[len(compared) :])]
        slack = (
            0 if (array := self.coupling_array) is None else 2 * most_loading(array)
        )  # its own loading, and that of the next region
        trials = LaneTrials(candidates, len(compared), tried, slack)
        for deal in trials:
            cost = self.decisions.fitting(edge, RegionDecision(edge.order, deal.lanes, depth), budget)
            trials.keep(deal, cost, self.decisions.stands_still(edge, deal.lanes, depth))
        if trials.best is None:
            return None
        deal, cost = trials.best
        best, bound = (RegionDecision(edge.order, deal.lanes, depth), cost), max(bound, trials.least_left)
        if self.tried is not None and dealt and not freedom.quick:
            best = self._narrowed(edge, budget, best)
        return DealtRange(*best, min(bound, best[1].cycles))

    def _compared(self, edge: OrderedRange, deals: list[Deal], depth: int | None) -> list[tuple[float, Deal]]:
        """Return some of the deals with their expected cycles, the fewest first: by arithmetic, or else their least cycles. If
        all lanes that may be the best are wanted, all are returned with their least cycles."""
        if self.tried is None or len(deals) == 1:
            return [(deal.least, deal) for deal in deals]
        return self.decisions.compared(edge, deals, depth)

    def _narrowed(
        self, edge: OrderedRange, budget: Budget, best: tuple[RegionDecision, RegionCost], most: float = inf
    ) -> tuple[RegionDecision, RegionCost]:
        """Return the best of some lanes and of fewer and fewer: of many ports, each gets less of the memory than of a few. Lanes
        that promise more than `most` cycles are left out."""
        while True:
            cycles = min(most, best[1].cycles)
            promising = [one for one in _halves(best[0]) if self._least(edge, one) < SETTINGS.hopeful_lanes * cycles]
            near = self.decisions.near(edge, promising)
            narrower = [one for one, own in zip(promising, near, strict=True) if own is None or own < cycles]
            costs = [(decision, self.decisions.fitting(edge, decision, budget)) for decision in narrower]
            faster = [(decision, cost) for decision, cost in costs if cost is not None and cost.cycles < best[1].cycles]
            if not faster:
                return best
            best = min(faster, key=lambda one: one[1].cycles)

    def _least(self, edge: OrderedRange, decision: RegionDecision) -> float:
        """Return the least cycles of lanes of a whole region, or of its stages."""
        model = self._stages(edge) if decision.has_stages else self._model(edge)
        return model.least(decision.lanes)

    # Lanes of stages -----------------------------------------------------------------------------------------------------------

    def _with_stages(
        self, edge: OrderedRange, budget: Budget, best: DealtRange | None, freedom: Freedom, depth: int | None
    ) -> DealtRange | None:
        """Return a range with the best lanes of its stages, or as it is (`best`) if lanes of the whole region are as fast."""
        if best is None or len(edge.pieces[-1].stages) < 2:
            return best
        bound = self.relaxed(edge, budget)
        slots = self._slots(depth)
        if best.cost.cycles > bound:
            for lanes in self._stages(edge).lanes(budget, inf if slots is None else slots):
                decision = RegionDecision(edge.order, lanes, depth)
                hopeful = self.tried is None or self._least(edge, decision) < SETTINGS.hopeful_lanes * best.cost.cycles
                cost = self.decisions.fitting(edge, decision, budget) if hopeful else None
                if cost is None:
                    continue
                if not freedom.quick and SETTINGS.hopeful_lanes * cost.cycles < best.cost.cycles:
                    decision, cost = self._narrowed(edge, budget, (decision, cost), best.cost.cycles)
                if cost.cycles < best.cost.cycles:
                    best = DealtRange(decision, cost, bound)
        return replace(best, least=bound)

    # What is kept --------------------------------------------------------------------------------------------------------------

    def _stages(self, edge: OrderedRange) -> StageModel:
        number = self.decisions.kind(edge)
        if number not in self._stage_models:
            indices = edge.loops if self.tried is None else self._model(edge).dealing_most
            self._stage_models[number] = StageModel.of(edge, self.costs.lane_costs(edge), indices)
        return self._stage_models[number]

    def _deals(self, edge: OrderedRange, budget: Budget, depth: int | None) -> list[Deal]:
        """Return the lanes that fit: of one index, and of two if those of one leave something to gain or the best of them stand still."""
        deals = self._promising(edge, budget, depth)
        if self.tried is None or not deals or max(len(deal.lanes) for deal in deals) > 1:
            return deals
        if not self.decisions.stands_still(edge, self._compared(edge, deals, depth)[0][1].lanes, depth):
            return deals
        return self._model(edge, pairs=True).deals(budget, self._slots(depth))

    def _promising(self, edge: OrderedRange, budget: Budget, depth: int | None) -> list[Deal]:
        """Return the lanes of one index that fit, and of two where lanes of one leave something to gain or all are wanted."""
        if self.tried is not None:
            deals = self._model(edge).deals(budget, self._slots(depth))
            if deals and deals[0].least <= SETTINGS.near_bound * self.relaxed(edge, budget):
                return deals
        return self._model(edge, pairs=True).deals(budget, self._slots(depth))

    def _slots(self, depth: int | None) -> int | None:
        """Return `depth`, or the slots of the FIFOs of the machine if it is None."""
        return self.costs.machine.first_depth if depth is None else depth

    def _model(self, edge: OrderedRange, *, pairs: bool = False) -> LaneModel:
        """Return the model of a range in lanes of single indices, and with `pairs` also of pairs of them."""
        key = self.decisions.kind(edge), pairs
        if key not in self._models:
            single, costs = self._model(edge) if pairs else None, self.costs.lane_costs(edge)
            self._models[key] = LaneModel.of(edge, costs) if single is None else single.with_pairs(costs, self.tried is None)
        return self._models[key]


def _halves(decision: RegionDecision) -> Iterator[RegionDecision]:
    """Yield the decision with half of all lanes, and with half of the lanes of each loop alone."""
    lanes = decision.lanes
    some = [range(len(lanes)), *([n] for n in range(len(lanes)) if len(lanes) > 1)]
    for halved in some:
        counts = ((loop, count // 2 if n in halved else count) for n, (loop, count) in enumerate(lanes))
        fewer = tuple((loop, count) for loop, count in counts if count > 1)
        if fewer != lanes:
            yield replace(decision, lanes=fewer)
