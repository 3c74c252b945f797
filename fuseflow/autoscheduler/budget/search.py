"""The search for the cheapest programs within a budget: paths that bounds let hope for are costed until the best ones are known.

A range costs a bound until its lanes are chosen. If no range of the cheapest path is a mere bound, nothing is cheaper. Otherwise the
lanes of those that are get chosen, and the cheapest path is looked for again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import inf
from typing import TypeAlias

from fuseflow.autoscheduler.budget.cheapest_paths import Path, cheapest_paths
from fuseflow.autoscheduler.budget.cut_graph import CutGraph, OrderedRange
from fuseflow.autoscheduler.budget.deadline import Deadline
from fuseflow.autoscheduler.budget.decision import RegionDecision
from fuseflow.autoscheduler.budget.range_costs import RangeCosts
from fuseflow.resources.budget import Budget
from fuseflow.schedule import Schedule

SearchProgress: TypeAlias = Callable[[str], None]
"""A function that is told now and then how far a search is."""


@dataclass(frozen=True, slots=True)
class Levers:
    """What a search may decide. A lever that is not there is as without it: single operators, the orders that the compiler ranks best, one
    lane, and the formats of the schedule."""

    fusion: bool = True
    orders: bool = True
    lanes: bool = True
    formats: bool = True

    def without(self, lever: str) -> Levers:
        """Return the levers without one of them."""
        return replace(self, **{lever: False})

    def allow(self, edge: OrderedRange) -> bool:
        """Return whether a range in an order needs no lever that is not there."""
        return (self.fusion or edge.part[1] - edge.part[0] == 1) and (self.orders or edge.rank == 0)


ALL_LEVERS = Levers()
UNFUSED = Levers(fusion=False, formats=False)
"""What unfused programs in the formats of the schedule may decide: lanes and orders, within the same budget."""
NO_LEVERS = Levers(fusion=False, orders=False, lanes=False, formats=False)
"""Unfused programs in one lane: what is there at once."""


@dataclass(frozen=True, slots=True, eq=False)
class Variant:
    """A program with the formats of its inputs settled: the schedule that says so, and the graph of its ranges."""

    base: Schedule
    graph: CutGraph
    is_published: bool

    def scheduled(self, program: DealtPath) -> Schedule:
        """Return the schedule of a program: what is fused, and every decision about a region."""
        units = self.graph.ranges.units
        schedule = units.scheduled(self.base, program.path.partition)
        for edge, decision in program.decisions:
            schedule = decision.scheduled(schedule, edge.name, is_ordered=len(edge.order) > 1)
        return schedule


@dataclass(frozen=True, slots=True, eq=False)
class DealtPath:
    """A program whose lanes were chosen, with the cycles that are expected of it."""

    variant: Variant
    path: Path
    decisions: tuple[tuple[OrderedRange, RegionDecision], ...]

    @property
    def cycles(self) -> float:
        return self.path.cycles

    @property
    def schedule(self) -> Schedule:
        """The schedule of the program, in full."""
        return self.variant.scheduled(self)


@dataclass(frozen=True, slots=True, eq=False)
class SearchOutcome:
    """The cheapest programs, the best first, and a bound: no program of those that were searched takes fewer cycles.

    `is_complete` says that no lanes were left that might be better. `relaxed` is the bound where all lanes of arithmetic and the memory are
    always busy.
    """

    programs: tuple[DealtPath, ...]
    bound: float
    relaxed: float
    is_complete: bool


@dataclass(slots=True)
class BudgetSearch:
    """A search among variants of a program. What was computed for one budget and some levers serves the next."""

    variants: tuple[Variant, ...]
    costs: RangeCosts
    deadline: Deadline = field(default_factory=Deadline)
    progress: SearchProgress = lambda text: None

    def cheapest(self, budget: Budget, keep: int, levers: Levers = ALL_LEVERS) -> SearchOutcome:
        """Return the `keep` cheapest programs within a budget that differ in what is fused or in the formats."""
        variants = [v for v in self.variants if levers.formats or v.is_published]
        while True:
            paths = self._cheapest(variants, budget, keep, levers, self._optimistic)
            pending = [edge for _, path in paths for edge in path.edges if not self._is_known(edge, budget, levers)]
            if not pending or self.deadline.passed:
                break
            first = next(path for _, path in paths if any(edge in pending for edge in path.edges))
            for edge in first.edges:
                if edge in pending and not self.deadline.passed:
                    self.progress(f"{edge.name}: {', '.join(edge.order)}")
                    self.costs.best(edge, budget, levers.lanes)
        bounds = self._cheapest(variants, budget, 1, levers, self._bound)
        complete = self._cheapest(variants, budget, keep, levers, self._pessimistic)
        programs = tuple(self._dealt(variant, path, budget, levers) for variant, path in complete)
        return SearchOutcome(programs, _first(bounds), self.relaxed(budget, levers), not pending)

    def relaxed(self, budget: Budget, levers: Levers = ALL_LEVERS) -> float:
        """Return what no program takes less than, because its lanes of arithmetic or its memory are always busy then."""
        variants = [v for v in self.variants if levers.formats or v.is_published]
        return _first(self._cheapest(variants, budget, 1, levers, lambda edge, *_: self.costs.relaxed(edge, budget)))

    def _cheapest(
        self, variants: list[Variant], budget: Budget, keep: int, levers: Levers, cost: LeverCost
    ) -> list[tuple[Variant, Path]]:
        def allowed(edge: OrderedRange) -> float:
            return cost(edge, budget, levers) if levers.allow(edge) else inf

        paths = [(v, path) for v in variants for path in cheapest_paths(v.graph, allowed, keep)]
        return sorted(paths, key=lambda one: one[1].cycles)[:keep]

    def _is_known(self, edge: OrderedRange, budget: Budget, levers: Levers) -> bool:
        return self.costs.known(edge, budget, levers.lanes)

    def _optimistic(self, edge: OrderedRange, budget: Budget, levers: Levers) -> float:
        """Return the cycles of a range whose lanes were chosen, else the bound."""
        known = self._is_known(edge, budget, levers)
        return self._pessimistic(edge, budget, levers) if known else self.costs.relaxed(edge, budget)

    def _pessimistic(self, edge: OrderedRange, budget: Budget, levers: Levers) -> float:
        """Return the cycles of a range whose lanes were chosen. They are infinite if they were not."""
        dealt = self.costs.best(edge, budget, levers.lanes) if self._is_known(edge, budget, levers) else None
        return inf if dealt is None else dealt.cost.cycles

    def _bound(self, edge: OrderedRange, budget: Budget, levers: Levers) -> float:
        """Return what no lanes of a range take less than."""
        if not self._is_known(edge, budget, levers):
            return self.costs.relaxed(edge, budget)
        dealt = self.costs.best(edge, budget, levers.lanes)
        return inf if dealt is None else dealt.least

    def _dealt(self, variant: Variant, path: Path, budget: Budget, levers: Levers) -> DealtPath:
        chosen = ((edge, self.costs.best(edge, budget, levers.lanes)) for edge in path.edges)
        return DealtPath(
            variant, path, tuple((edge, dealt.decision) for edge, dealt in chosen if dealt is not None and edge.pieces)
        )


LeverCost: TypeAlias = Callable[[OrderedRange, Budget, Levers], float]
"""The cycles of a range within a budget, with some levers."""


def _first(paths: list[tuple[Variant, Path]]) -> float:
    return paths[0][1].cycles if paths else inf
