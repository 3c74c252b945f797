"""The search for the cheapest programs within a budget: paths with promising bounds are costed until the best are known.

A program is a path through a graph of cuts. The costs of regions add up, and each region has the whole budget, since one runs after the
other. So every part of a cheapest path is a cheapest one between its ends, and dynamic programming over the states finds it.

A range costs a bound until its lanes are chosen. If all ranges of the cheapest path have lanes, no path is cheaper. Otherwise
lanes are chosen for its other ranges, and the cheapest path is looked for again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import TypeAlias

from fuseflow.autoscheduler.budget.cut_graph import CutGraph, OrderedRange
from fuseflow.autoscheduler.budget.decision import Dealing, Freedom, RegionDecision
from fuseflow.autoscheduler.budget.paths import Path, RangeOption, cheapest_paths
from fuseflow.autoscheduler.budget.range_costs import RangeCosts
from fuseflow.autoscheduler.budget.request import Deadline
from fuseflow.autoscheduler.budget.settings import SETTINGS
from fuseflow.garbage_collection import collection_rare
from fuseflow.lower.buffers import read_tensors
from fuseflow.resources.budget import Budget
from fuseflow.schedule import Schedule


@dataclass(frozen=True, slots=True)
class Levers:
    """The kinds of decisions that a search may make.

    If a lever is False, the search has, in the order of the fields: single operators, the orders that the compiler ranks best,
    lanes of whole regions only, one lane, FIFOs of the machine, and the formats, products, reuse buffers and preloads of the
    schedule.
    """

    fusion: bool = True
    orders: bool = True
    stages: bool = True
    lanes: bool = True
    depths: bool = True
    formats: bool = True
    association: bool = True
    buffers: bool = True
    preloads: bool = True
    quick: bool = False
    """Whether a few lanes of each range are enough, for a first estimate."""

    @property
    def freedom(self) -> Freedom:
        """What may be decided about each region beside its order."""
        dealing: Dealing = "nothing" if not self.lanes else "stages" if self.stages else "regions"
        return Freedom(dealing, self.depths, self.quick)

    def without(self, lever: str) -> Levers:
        """Return the levers with one of them taken away."""
        return replace(self, **{lever: False})

    def allow(self, edge: OrderedRange) -> bool:
        """Return whether a range in an order is possible with these levers."""
        return (self.fusion or edge.is_single) and (self.orders or edge.rank == 0)

    def allow_variant(self, variant: Variant) -> bool:
        """Return whether a variant is possible with these levers."""
        return all(getattr(self, lever) for lever in variant.changed)


@dataclass(frozen=True, slots=True)
class Effort:
    """The effort of a search: how many `ranges` get lanes at most, and a `limit` of expected cycles beyond which programs do not
    matter. A `quick` search tries few lanes, and one order of each range."""

    ranges: int = SETTINGS.max_ranges
    limit: float = inf
    quick: bool = False


FULL_EFFORT = Effort()
ALL_LEVERS = Levers()
UNFUSED = Levers(fusion=False, formats=False, association=False, buffers=False, preloads=False)
"""The levers of unfused programs in the formats of the schedule: only lanes and orders are chosen."""
NO_LEVERS = replace(UNFUSED, orders=False, lanes=False)
"""No levers: unfused programs in one lane, which need no search."""


VARIANT_ENTRIES = {
    "formats": ("formats", "blocks"),
    "association": ("associations",),
    "buffers": ("buffers",),
    "preloads": ("preloads",),
}
"""The entries of a schedule that a variant fixes, by the lever that changes them."""


@dataclass(frozen=True, slots=True, eq=False)
class Variant:
    """A program with the formats of its inputs, the order of its products, the reuse buffers and the preloads fixed: the schedule
    `base` that states them, and the graph of its ranges. `published` is the schedule of the user."""

    base: Schedule
    graph: CutGraph
    published: Schedule

    @property
    def changed(self) -> frozenset[str]:
        """The levers by which the program differs from the schedule of the user."""
        return frozenset(
            lever
            for lever, entries in VARIANT_ENTRIES.items()
            if any(getattr(self.base, name) != getattr(self.published, name) for name in entries)
        )

    def scheduled(self, program: DealtPath) -> Schedule:
        """Return the schedule of a program: its regions, and every decision about a region."""
        units = self.graph.ranges.units
        schedule = units.scheduled(self._without_idle_entries(program), program.path.partition)
        for edge, decision in program.decisions:
            schedule = decision.scheduled(schedule, edge.name, is_ordered=len(edge.order) > 1)
        return schedule

    def _without_idle_entries(self, program: DealtPath) -> Schedule:
        """Return the schedule without the chosen buffers and preloads of tensors that no region of `program` reads from memory."""
        if not self.changed & {"buffers", "preloads"}:
            return self.base
        graphs = [piece.graph for edge in program.path.edges for piece in edge.pieces]
        read, published = read_tensors(self.graph.ranges.partitioned, graphs), self.published
        buffers = tuple(entry for entry in self.base.buffers if entry[0] in read or entry in published.buffers)
        preloads = tuple(entry for entry in self.base.preloads if entry[0] in read or entry in published.preloads)
        return replace(self.base, buffers=buffers, preloads=preloads)


@dataclass(frozen=True, slots=True, eq=False)
class DealtPath:
    """A program whose lanes were chosen. `decisions` has every range of the path, with the decision about it."""

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
    """The cheapest programs, the best first, and a `bound`: no program that was searched takes fewer cycles.

    `is_complete` says that no lanes were left that might be better. `relaxed` is the bound if all units of arithmetic, or the
    memory, were always busy.
    """

    programs: tuple[DealtPath, ...]
    bound: float
    relaxed: float
    is_complete: bool


@dataclass(slots=True)
class BudgetSearch:
    """Searches among variants of a program. Costs that were computed for one budget and some levers serve the next search."""

    variants: tuple[Variant, ...]
    costs: RangeCosts
    deadline: Deadline = field(default_factory=Deadline)
    trying: Callable[[str], None] = lambda text: None
    """A function that is called with the range that gets lanes next, as text."""

    def most_ranges(self, effort: Effort = FULL_EFFORT) -> int:
        """Return how many ranges get lanes at most in one search: those of the effort, and those of one more program."""
        return effort.ranges + max(len(variant.graph.ranges.units) for variant in self.variants)

    @collection_rare()
    def cheapest(self, budget: Budget, keep: int, levers: Levers = ALL_LEVERS, effort: Effort = FULL_EFFORT) -> SearchOutcome:
        """Return the `keep` cheapest programs within a budget that differ in their regions, formats or products."""
        levers = replace(levers, quick=effort.quick)
        variants = [v for v in self.variants if levers.allow_variant(v)]
        chosen = 0
        while True:
            paths = self._cheapest(variants, budget, keep, levers, self._optimistic)
            pending = [edge for _, path in paths for edge in path.edges if not self._is_known(edge, budget, levers)]
            if paths and paths[0][1].cycles >= effort.limit:
                break
            is_last = self.costs.tried is not None and chosen >= effort.ranges
            if self.deadline.passed or (is_last and not pending):
                break
            if not pending:
                # The other orders of the ranges of the cheapest program are added, if there are any.
                widened = [
                    v.graph.widen(edge) for v, path in paths[:1] for edge in path.edges if levers.orders and not effort.quick
                ]
                if any(widened):
                    continue
                break
            first = next(path for _, path in paths if any(edge in pending for edge in path.edges))
            edges = [edge for edge in first.edges if edge in pending]
            for edge in edges if is_last or self.costs.tried is None else self._largest(edges, budget, levers):
                if self.deadline.passed or self._is_known(edge, budget, levers):
                    continue
                if is_last:
                    self.costs.best(edge, budget, levers.freedom)
                elif self.costs.refine(edge, budget, levers.freedom):
                    chosen += 1
                    self.trying(f"{edge.name}: {', '.join(edge.order)}")
            if is_last:
                break
        bounds = self._cheapest(variants, budget, 1, levers, self._bound, exact=False)
        complete = self._cheapest(variants, budget, keep, levers, self._pessimistic)
        programs = tuple(self._dealt(variant, path, budget, levers) for variant, path in complete)
        return SearchOutcome(programs, _first(bounds), self.relaxed(budget, levers), not pending)

    def _largest(self, edges: list[OrderedRange], budget: Budget, levers: Levers) -> list[OrderedRange]:
        """Return the ranges that decide the cycles: lanes of others are in vain if these turn out to take longer than expected."""
        expected = {edge: self._optimistic(edge, budget, levers) for edge in edges}
        return [edge for edge in edges if expected[edge] >= SETTINGS.large_range * max(expected.values())]

    def relaxed(self, budget: Budget, levers: Levers = ALL_LEVERS) -> float:
        """Return a bound on the cycles of all programs, as if the arithmetic or the memory were always busy."""
        variants = [v for v in self.variants if levers.allow_variant(v)]
        return _first(self._cheapest(variants, budget, 1, levers, lambda edge, *_: self.costs.relaxed(edge, budget), exact=False))

    def _cheapest(
        self, variants: list[Variant], budget: Budget, keep: int, levers: Levers, cost: LeverCost, exact: bool = True
    ) -> list[tuple[Variant, Path]]:
        """Return the cheapest paths by the cost of each range. If not `exact`, that is a bound of all ways to run the range."""

        array = self.costs.coupling_array

        def options(edge: OrderedRange) -> Sequence[RangeOption]:
            cycles = cost(edge, budget, levers) if levers.allow(edge) else inf
            if cycles == inf:
                return ()
            if array is None:
                return (RangeOption(cycles),)
            is_known = exact and (cost == self._pessimistic or self._is_known(edge, budget, levers))
            known = self.costs.options(edge, budget, levers.freedom) if is_known else ()
            return known or (RangeOption(cycles - sum(own.loading for own in edge.figures)),)

        paths = [(v, path) for v in variants for path in cheapest_paths(v.graph, options, keep, levers.fusion, array)]
        return sorted(paths, key=lambda one: one[1].cycles)[:keep]

    def _is_known(self, edge: OrderedRange, budget: Budget, levers: Levers) -> bool:
        return self.costs.known(edge, budget, levers.freedom)

    def _optimistic(self, edge: OrderedRange, budget: Budget, levers: Levers) -> float:
        """Return the cycles of a range whose lanes were chosen, and of others the cycles that are expected by their bounds."""
        known = self._is_known(edge, budget, levers)
        return self._pessimistic(edge, budget, levers) if known else self.costs.expected(edge, budget, levers.freedom)

    def _pessimistic(self, edge: OrderedRange, budget: Budget, levers: Levers) -> float:
        """Return the cycles of a range whose lanes were chosen. They are infinite if they were not."""
        dealt = self.costs.chosen(edge, budget, levers.freedom)
        return inf if dealt is None else dealt.cost.cycles

    def _bound(self, edge: OrderedRange, budget: Budget, levers: Levers) -> float:
        """Return a bound on the cycles of a range in any lanes."""
        if not self._is_known(edge, budget, levers):
            return self.costs.relaxed(edge, budget)
        dealt = self.costs.best(edge, budget, levers.freedom)
        return inf if dealt is None else dealt.least

    def _dealt(self, variant: Variant, path: Path, budget: Budget, levers: Levers) -> DealtPath:
        if path.options:
            chosen_together = zip(path.edges, (option.decision for option in path.options), strict=True)
            named = (
                (edge, self.costs.decisions.named(edge, own)) for edge, own in chosen_together if own is not None and edge.pieces
            )
            return DealtPath(variant, path, tuple(named))
        chosen = ((edge, self.costs.chosen(edge, budget, levers.freedom)) for edge in path.edges)
        return DealtPath(
            variant, path, tuple((edge, dealt.decision) for edge, dealt in chosen if dealt is not None and edge.pieces)
        )


LeverCost: TypeAlias = Callable[[OrderedRange, Budget, Levers], float]
"""The cycles of a range within a budget, with some levers."""


def _first(paths: list[tuple[Variant, Path]]) -> float:
    return paths[0][1].cycles if paths else inf
