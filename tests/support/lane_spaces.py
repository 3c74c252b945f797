"""The best of all programs of a model in lanes within a budget, simulated: what a search by estimate must come near to.

Programs are paths over cuts, and a range of a path is a region in an order with lanes of up to two indices. The cycles of a program are
the sum of those of its regions. So the cheapest path is looked for while every region costs what it takes at least. What this path needs
is made exact: first which lanes fit, then the firings of the busiest node in these lanes, which no run undercuts, and last the simulation.
If all regions of the cheapest path were simulated, no other program of the space takes fewer cycles. Nothing of the search is used but the
graph of the ranges and the measure of what lanes take.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from math import inf

from fuseflow.autoscheduler.budget.costs import LoweredCosts, RegionRun
from fuseflow.autoscheduler.budget.cut_graph import OrderedRange
from fuseflow.autoscheduler.budget.decision import Lanes, RegionDecision
from fuseflow.autoscheduler.budget.lane_models import LaneModel
from fuseflow.autoscheduler.budget.path_search import DealtPath, Variant
from fuseflow.autoscheduler.budget.paths import Path, RangeOption, cheapest_paths
from fuseflow.autoscheduler.budget.trials import RunSchedules, TrialRun
from fuseflow.errors import ScheduleError
from fuseflow.estimate.program import Estimator
from fuseflow.estimate.region_conversion import estimator_regions
from fuseflow.lower.regions import dealt_region
from fuseflow.resources import Resources
from fuseflow.resources.budget import Budget
from fuseflow.schedule import Schedule
from fuseflow.sim import Machine

DEPTHS = (64, 16, 4)
"""The slots of all FIFOs of a region on a machine that does not bound them. Fewer make nothing faster, so the most that fit are taken."""
MARGIN = 0.9
"""What lanes promise before they are made is taken so many times: forks and merges change how often a node fires."""

STUCK = RegionRun(-1)
"""The run of a region whose FIFOs are too shallow for it to go on."""


class Knowledge(IntEnum):
    """How much is known of the cycles of a region in lanes."""

    PROMISED = 0
    COUNTED = 1
    SIMULATED = 2


@dataclass(frozen=True, slots=True)
class Candidate:
    """Lanes of a region with what they take at least, or exactly if they were simulated."""

    decision: RegionDecision
    cycles: float
    known: Knowledge

    @property
    def rank(self) -> tuple[float, int, int, Lanes]:
        """The place among candidates: the fastest first, of equal ones the best known, and of these the smallest."""
        return self.cycles, -self.known, self.decision.width, self.decision.lanes


@dataclass(frozen=True, slots=True)
class BestProgram:
    """The best program that was simulated, and what no program of the space takes less than. `is_proved` says that these are the same."""

    cycles: float
    least: float
    schedule: Schedule | None
    simulated: int
    counted: int

    @property
    def is_proved(self) -> bool:
        return self.least >= self.cycles


@dataclass(slots=True)
class LaneSpace:
    """All partitions and lanes of a program within a budget, and all orders that its graph has.

    `known` has runs of earlier processes, by `run_key`, and `keep` is told those of this one.
    """

    variant: Variant
    machine: Machine
    budget: Budget
    estimator: Estimator
    run: RunSchedules
    known: Mapping[str, RegionRun] = field(default_factory=dict)
    keep: Callable[[str, RegionRun], None] = lambda key, run: None
    simulated: int = 0
    counted: int = 0
    broken_promise: float = 1.0
    """The least share of what lanes promised that they took, as counted."""
    _candidates: dict[Hashable, list[Candidate]] = field(default_factory=dict)
    _keys: dict[int, Hashable] = field(default_factory=dict)

    def best(self, seconds: float) -> BestProgram:
        """Return the best program that is found within so many seconds of processor time."""
        end = time.process_time() + seconds
        while time.process_time() < end:
            path = self._cheapest(self._least)
            if path is None or not self._refine(path):
                break
        least, found = self._cheapest(self._least), self._cheapest(self._simulated)
        program = None if found is None else self._program(found)
        return BestProgram(
            inf if found is None else found.cycles,
            inf if least is None else least.cycles,
            None if program is None else program.schedule,
            self.simulated,
            self.counted,
        )

    def _cheapest(self, cost: Callable[[OrderedRange], float]) -> Path | None:
        def options(edge: OrderedRange) -> list[RangeOption]:
            return [RangeOption(cycles)] if (cycles := cost(edge)) < inf else []

        return next(iter(cheapest_paths(self.variant.graph, options, 1)), None)

    def _refine(self, path: Path) -> bool:
        """Learn more of the regions of a path: simulate it if all of them were counted. Return whether there was anything to learn."""
        edges = [edge for edge in path.edges if edge.pieces]
        if unmeasured := [edge for edge in edges if self._key(edge) not in self._candidates]:
            for edge in unmeasured:
                self._candidates.setdefault(self._key(edge), sorted(self._promised(edge), key=lambda c: c.rank))
            return True
        if promised := [edge for edge in edges if self._first(edge).known is Knowledge.PROMISED]:
            for edge in promised:
                if self._first(edge).known is Knowledge.PROMISED:
                    self._replace_first(edge, self._count(edge, self._first(edge)))
            return True
        if all(self._first(edge).known is Knowledge.SIMULATED for edge in edges):
            return False
        self._simulate(path)
        return True

    def _least(self, edge: OrderedRange) -> float:
        """Return what a range takes at least, as far as it is known."""
        if not edge.pieces:
            return 0.0
        candidates = self._candidates.get(self._key(edge))
        if candidates is None:
            return self._work(edge)
        return candidates[0].cycles if candidates else inf

    def _simulated(self, edge: OrderedRange) -> float:
        if not edge.pieces:
            return 0.0
        runs = (c.cycles for c in self._candidates.get(self._key(edge), ()) if c.known is Knowledge.SIMULATED)
        return min(runs, default=inf)

    def _work(self, edge: OrderedRange) -> float:
        """Return the cycles that a region takes if all lanes of arithmetic that the budget has are always busy."""
        work = edge.figures[-1].work
        return max((work[name] / limit for name, limit in self.budget.limits.items() if name in work), default=0.0)

    def _promised(self, edge: OrderedRange) -> Iterator[Candidate]:
        model = LaneModel.of(edge, LoweredCosts(self.machine, self.estimator).lane_costs(edge))
        seen: set[Lanes] = set()
        for depth in DEPTHS:
            for deal in model.deals(self.budget, depth):
                if deal.lanes not in seen:
                    seen.add(deal.lanes)
                    yield Candidate(RegionDecision(edge.order, deal.lanes, depth), MARGIN * deal.least, Knowledge.PROMISED)

    def _count(self, edge: OrderedRange, candidate: Candidate) -> Candidate | None:
        """Return a candidate with the firings of its busiest node, None if it does not fit."""
        self.counted += 1
        region, decision = edge.pieces[-1], candidate.decision
        try:
            dealt = dealt_region(edge.before.lowering, region, decision.scheduled(Schedule(), region.name, is_ordered=False))
        except ScheduleError:
            return None
        knowledge, estimates = edge.before.knowledge.copy(), []
        for piece in estimator_regions((*edge.pieces[:-1], dealt)):
            estimates.append(self.estimator.region(piece, self.machine, knowledge))
        self.estimator.memo.forget(1_000)
        if self.budget.exceeded(Resources.most_of(estimate.resources for estimate in estimates)):
            return None
        least = sum(float(estimate.bound.compute) for estimate in estimates)
        self.broken_promise = min(self.broken_promise, least / (candidate.cycles / MARGIN))
        return replace(candidate, cycles=least, known=Knowledge.COUNTED)

    def _simulate(self, path: Path) -> None:
        """Simulate the program of a path, unless all of its regions ran in an earlier process."""
        program = self._program(path)
        keys = {edge.name: run_key(edge, decision) for edge, decision in program.decisions}
        runs = {name: self.known[key] for name, key in keys.items() if key in self.known}
        if len(runs) < len(keys):
            runs = self._run(program)
            for name, run in runs.items():
                self.keep(keys[name], run)
        for edge, decision in program.decisions:
            first = self._first(edge)
            if first.known is not Knowledge.SIMULATED and first.decision == decision:
                self.simulated += 1
                self._replace_first(edge, self._after(first, runs[edge.name]))

    def _run(self, program: DealtPath) -> dict[str, RegionRun]:
        """Return the run of each range, that of its copies included. If the program as a whole cannot run, each range runs in its lanes
        while the others have one."""
        (ran,) = self.run([program.schedule])
        if ran.cycles is None:
            return {edge.name: self._run_alone(program, edge) for edge, _ in program.decisions}
        runs = self._by_range(program, ran)
        if ran.cycles != (total := sum(run.cycles for run in runs.values())):
            raise RuntimeError(f"the regions take {total} cycles, and the program {ran.cycles}\n{program.schedule.to_yaml()}")
        return runs

    def _run_alone(self, program: DealtPath, edge: OrderedRange) -> RegionRun:
        """Return the run of a range in its lanes while the others have one, `STUCK` if it cannot run."""
        decisions = (
            (other, decision if other is edge else RegionDecision(decision.order)) for other, decision in program.decisions
        )
        alone = replace(program, decisions=tuple(decisions))
        (ran,) = self.run([alone.schedule])
        return STUCK if ran.cycles is None else self._by_range(alone, ran)[edge.name]

    def _by_range(self, program: DealtPath, ran: TrialRun) -> dict[str, RegionRun]:
        """Return the run of each range with its copies. A range that repeats another one has the run of that."""
        first: dict[Hashable, RegionRun] = {}
        for edge, _ in program.decisions:
            if edge.name in ran.regions:
                own = ran.regions[edge.name]
                copies = sum(ran.regions[piece.name].cycles for piece in edge.pieces[:-1] if piece.name in ran.regions)
                first[self._key(edge)] = replace(own, cycles=own.cycles + copies)
        return {edge.name: first[self._key(edge)] for edge, _ in program.decisions}

    def _after(self, candidate: Candidate, run: RegionRun) -> Candidate | None:
        """Return a candidate with the cycles of its run, None if it cannot run, or only with deeper FIFOs than the budget has."""
        if run == STUCK:
            return None
        if run.cycles < candidate.cycles:
            raise RuntimeError(f"a region took {run.cycles} cycles in {candidate.decision}, and {candidate.cycles} at least")
        limit = self.budget.limits.get("fifo", inf)
        if run.fifo is not None and run.fifo > limit:
            shallower = [depth for depth in DEPTHS if depth < (candidate.decision.depth or inf)]
            decision = replace(candidate.decision, depth=shallower[0]) if shallower else None
            return None if decision is None else replace(candidate, decision=decision, known=Knowledge.PROMISED)
        return replace(candidate, cycles=float(run.cycles), known=Knowledge.SIMULATED)

    def _program(self, path: Path) -> DealtPath:
        chosen = ((edge, self._first(edge).decision) for edge in path.edges if edge.pieces)
        return DealtPath(self.variant, path, tuple(chosen))

    def _first(self, edge: OrderedRange) -> Candidate:
        return self._candidates[self._key(edge)][0]

    def _replace_first(self, edge: OrderedRange, candidate: Candidate | None) -> None:
        rest = self._candidates[self._key(edge)][1:]
        self._candidates[self._key(edge)] = sorted((*rest, *((candidate,) if candidate else ())), key=lambda c: c.rank)

    def _key(self, edge: OrderedRange) -> Hashable:
        return self._keys.setdefault(id(edge), edge.key)


def run_key(edge: OrderedRange, decision: RegionDecision) -> str:
    """Return the text that says which region ran in which lanes, on what the regions before it stored."""
    stored = ",".join(f"{name}:{type.format}" for name, type in sorted(edge.before.lowering.stored.items()))
    lanes = ",".join(f"{loop}={count}" for loop, count in decision.lanes)
    return f"{edge.name} [{stored}] {','.join(edge.order)} {lanes} depth={decision.depth}"
