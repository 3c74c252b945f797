"""The lanes that a region may have, and the resources and cycles that they take, without building their graphs.

The shape of its graph in lanes says which nodes are copied for an index, and what one more lane adds. From two lanes on, the
resources of a graph are linear in the lanes of each index; the first fork and merge come with the second lane.

    amounts(i=8)      = amounts(i=2) + 6 (amounts(i=3) - amounts(i=2))
    amounts(i=8, k=4) = the same in i, of amounts(i=2, k=4) and amounts(i=3, k=4), and each of these in k
    cycles           >= the most of (cycles of a node / product of the lanes that copy it)

Or each stage of a region gets lanes by its work, so that all take about equally long. The stages run at the same time, and the slowest
decides. What each adds to the graph is measured in the same way, and adds up over the stages; stages with equally many lanes share forks
and merges, so it may be less.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations, product
from math import ceil, inf, prod

import numpy as np
import numpy.typing as npt

from fuseflow.array.capacity import placed_tiles
from fuseflow.autoscheduler.budget.cut_graph import OrderedRange
from fuseflow.autoscheduler.budget.decision import Lanes
from fuseflow.autoscheduler.budget.settings import SETTINGS
from fuseflow.cp_sat import Option, SelectionProblem, select
from fuseflow.errors import ScheduleError
from fuseflow.estimate.dealt_graph import DealtResources
from fuseflow.estimate.graph_counts import held_entries
from fuseflow.estimate.lane_costs import LaneCosts
from fuseflow.lower.lanes import without_lanes
from fuseflow.resources import COMPONENTS, HeldEntries, Resources, graph_resources
from fuseflow.resources.budget import Budget
from fuseflow.samml.nodes import Edge

Amounts = npt.NDArray[np.float64]
"""The amount of each of `resources.COMPONENTS`, and of each kind of tiles on an array. FIFOs count with one slot each, but in the area
with the slots of the machine."""


def amounts_by_name(amounts: Amounts, limits: Iterable[str]) -> dict[str, float]:
    """Return amounts by name, given the names of limits, which have all kinds of tiles."""
    tiles = (name for name in limits if name not in COMPONENTS)
    return dict(zip((*COMPONENTS, *tiles), amounts, strict=True))


@dataclass(frozen=True, slots=True)
class Deal:
    """Lanes of a region, the amounts of resources of its graph with them, and the `least` cycles that it takes with them."""

    lanes: Lanes
    amounts: Amounts
    least: float

    @property
    def indices(self) -> frozenset[str]:
        """The indices that are dealt."""
        return frozenset(index for index, _ in self.lanes)

    @property
    def rank(self) -> tuple[float, float, Lanes]:
        """The key by which deals are sorted: the fastest first, of equal ones the one with the fewest lanes."""
        return self.least, prod(count for _, count in self.lanes), self.lanes


@dataclass(frozen=True, slots=True, eq=False)
class LaneModel:
    """The resources and cycles of one region in any lanes.

    `sizes` has the size of each index that can be dealt. `corners` has the measured amounts, for two and three lanes. `copied`
    has, by set of indices, the cycles of the busiest node that is copied for just these. `before` (copies of tensors and loading) and
    `memory` are cycles that lanes do not shorten, and the others are multiplied by `stretch` because the memory refreshes itself.
    """

    sizes: Mapping[str, int]
    corners: Mapping[Lanes, Amounts]
    copied: Mapping[frozenset[str], float]
    before: float
    memory: float
    stretch: float

    @classmethod
    def of(cls, ordered: OrderedRange, costs: LaneCosts) -> LaneModel:
        """Measure the resources of two and three lanes of each index, given the costs of the range, and return the model."""
        (*copies, figures), measure = ordered.figures, LaneMeasure.of(costs)
        corners, enclosing = measure.corners(()), dict[str, set[str]]()
        for index in ordered.loops:
            if own := measure.corners((index,)):
                corners |= own
                for node in measure.copied((index,)):
                    enclosing.setdefault(node, set()).add(index)
        sizes = {index: size for index, size in ordered.loops.items() if ((index, 2),) in corners}
        copied: dict[frozenset[str], float] = {frozenset(): 0.0}
        for node, occupied in figures.occupied.items():
            indices = frozenset(enclosing.get(node, ()))
            copied[indices] = max(copied.get(indices, 0.0), occupied)
        before = figures.loading + sum(copy.cycles for copy in copies)
        return cls(sizes, corners, copied, before, figures.memory, figures.stretch)

    def with_pairs(self, costs: LaneCosts, every: bool) -> LaneModel:
        """Return the model with two and three lanes of pairs of indices added: of `every` pair, or of the most promising ones."""
        measure = LaneMeasure.of(costs)
        pairs = list(combinations((index for index, size in self.sizes.items() if size > 1), SETTINGS.max_dealt))
        corners = dict(self.corners)
        for pair in pairs if every else self._promising(pairs):
            corners |= measure.corners(pair)
        return replace(self, corners=corners)

    @property
    def dealing_most(self) -> frozenset[str]:
        """The indices for which the busiest node is copied."""
        return max(self.copied, key=lambda indices: self.copied[indices])

    def _promising(self, pairs: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
        """Return the pairs of indices that promise most, and more than one index alone: if both deal the busiest node, or if each
        deals nodes that the other leaves alone. Pairs that leave the least work alone come first."""

        def left(*indices: str) -> float:
            return max((cycles for nodes, cycles in self.copied.items() if not nodes & {*indices}), default=0.0)

        busiest = self.dealing_most
        of_use = [pair for pair in pairs if busiest.issuperset(pair) or left(*pair) < min(left(index) for index in pair)]
        return sorted(of_use, key=lambda pair: (left(*pair), not busiest.issuperset(pair)))[: SETTINGS.max_pairs]

    def deals(self, budget: Budget, depth: int | None) -> list[Deal]:
        """Return the lanes that fit a budget with FIFOs of `depth` slots, None for FIFOs without a bound. The fastest come first."""
        dealt = dict.fromkeys(tuple(index for index, _ in lanes) for lanes in self.corners)
        choices = (self._deals_of(indices, budget, depth) for indices in dealt)
        return sorted((deal for deals in choices for deal in deals), key=lambda deal: deal.rank)

    def _deals_of(self, indices: tuple[str, ...], budget: Budget, depth: int | None) -> Iterator[Deal]:
        """Yield the lanes of exactly these indices, more than one of each."""
        counts = [[count for count in lane_counts(self.sizes[index]) if count > 1] for index in indices]
        for numbers in product(*counts):
            lanes = tuple(zip(indices, numbers, strict=True))
            if prod(numbers) <= SETTINGS.max_width and fits(amounts := self.amounts(lanes), budget, depth):
                yield Deal(lanes, amounts, self.least(lanes))

    def amounts(self, lanes: Lanes) -> Amounts:
        """Return the amounts of the graph with these lanes. FIFOs count with one slot each."""
        at = self.corners.get(lanes)
        if at is not None:
            return at
        place = next(n for n, (_, count) in enumerate(lanes) if count > 3)
        index, count = lanes[place]
        two, three = (self.amounts((*lanes[:place], (index, few), *lanes[place + 1 :])) for few in (2, 3))
        return two + (count - 2) * (three - two)

    def least(self, lanes: Lanes) -> float:
        """Return the least cycles of the region with these lanes, with the copies that it reads."""
        count = dict(lanes)
        compute = max(cycles / prod(count.get(index, 1) for index in indices) for indices, cycles in self.copied.items())
        return self.before + max(compute, self.memory) * self.stretch


def fits(amounts: Amounts, budget: Budget, depth: int | None) -> bool:
    """Return whether amounts are within a budget, with FIFOs of `depth` slots, or without a bound if it is None."""
    slots = inf if depth is None else depth
    used = amounts_by_name(amounts, budget.limits)
    used["fifo"] *= slots
    used["area"] *= inf if depth is None else 1
    return all(used[name] <= limit for name, limit in budget.limits.items())


def lane_counts(size: int) -> tuple[int, ...]:
    """Return the numbers of lanes of an index of this size that are considered: powers of two, three times these, and divisors, up to the
    size.

    >>> lane_counts(14)
    (1, 2, 3, 4, 6, 7, 8, 12, 14)
    """
    most = min(size, SETTINGS.max_width)
    powers = {factor << n for n in range(most.bit_length()) for factor in (1, 3) if factor << n <= most}
    return tuple(sorted(powers | {n for n in range(1, most + 1) if size % n == 0}))


@dataclass(frozen=True, slots=True)
class LaneMeasure:
    """Measures the resources of a region in lanes. `held` has the entries that each node holds back in one lane."""

    costs: LaneCosts
    held: Mapping[str, HeldEntries]

    @classmethod
    def of(cls, costs: LaneCosts) -> LaneMeasure:
        return cls(costs, held_entries(costs.serial.counts))

    def corners(self, indices: tuple[str, ...]) -> dict[Lanes, Amounts]:
        """Return the amounts for two and three lanes of each index, or of an index in a stage; none if these cannot be dealt together."""
        several = [tuple(zip(indices, counts, strict=True)) for counts in product((2, 3), repeat=len(indices))]
        try:
            template = self.costs.template(indices)
            if len(indices) > 1 and any(node.folded for node in template.nodes):  # a tree of lanes may be dealt again
                return {lanes: self._amounts(self._made(lanes)) for lanes in several}
        except ScheduleError:
            return {}
        resources, machine = DealtResources(template, self.costs.estimator.array), self.costs.machine
        used = {lanes: resources.at_most(self.held, dict(lanes), self._depth, machine) for lanes in several}
        # The slots of the machine are in tiles already, those that a schedule states are not.
        stated_none = {lanes: resources.tiles(dict(lanes), None, machine) for lanes in several}
        return {lanes: self._amounts(replace(own, tiles=stated_none[lanes])) for lanes, own in used.items()}

    def copied(self, indices: tuple[str, ...]) -> set[str]:
        """Return the names, on one lane, of the nodes that are copied if these indices are dealt, which must be possible."""
        return {each.serial for each in self.costs.template(indices).nodes if each.indices and each.serial}

    def _made(self, lanes: Lanes) -> Resources:
        """Return the resources of the graph that is built with these lanes. A copy of a node holds as many entries as the node."""
        made = self.costs.lowered(dict(lanes))
        origins = {node.name: without_lanes(node.name, made.places.get(node.name, ())) for node in made.graph.nodes}
        held = {name: self.held[origin] for name, origin in origins.items() if origin in self.held}
        slots = {Edge(node.name, k): self._depth for node in made.graph.nodes for k in range(len(node.inputs))}
        used, array = graph_resources(made.graph, self.costs.machine, held, slots), self.costs.estimator.array
        return used if array is None else replace(used, tiles=placed_tiles(made.graph, array, self.costs.machine))

    @property
    def _depth(self) -> int:
        return self.costs.machine.first_depth or 1

    def _amounts(self, used: Resources) -> Amounts:
        """Return the resources as amounts. FIFOs count with one slot each."""
        names = *COMPONENTS, *(name for name, _ in used.tiles)
        return np.array([(used.amount(name) or 0) / (self._depth if name == "fifo" else 1) for name in names])


@dataclass(frozen=True, slots=True, eq=False)
class StageLanes:
    """A stage that can be dealt over an index (`loop` names both, `size` is that of the index). `cycles` is how long its busiest
    copied node works, and `two` and `three` are the amounts of resources that two and three lanes add to the graph."""

    loop: str
    size: int
    cycles: float
    two: Amounts
    three: Amounts

    def options(self, floor: float, slots: Mapping[str, float]) -> tuple[Option, ...]:
        """Return the cycles and amounts of 1, 2, 3 ... lanes (`lane_counts`), up to the first with which the stage takes at most
        `floor` cycles. `slots` has the components that count, and the slots of each FIFO."""
        options: list[Option] = []
        for count in lane_counts(self.size):
            more = self.two + (count - 2) * (self.three - self.two) if count > 1 else np.zeros_like(self.two)
            added = {name: ceil(amount) for name, amount in amounts_by_name(more, slots).items()}
            amounts = tuple(ceil(added[name] * factor) for name, factor in slots.items())
            options.append(Option(max(floor, self.cycles / count), amounts))
            if self.cycles / count <= floor:
                break
        return tuple(options)


@dataclass(frozen=True, slots=True, eq=False)
class StageModel:
    """The stages of a region that can be dealt over each index, and the amounts of its graph in one lane (`base`).

    `floor` has, by index, the cycles that its lanes do not shorten: of the nodes outside all stages, and of the memory. `before`
    are the cycles of the copies that the region reads, and of loading. `stretch` multiplies its cycles for refreshes of the memory.
    """

    base: Amounts
    stages: dict[str, tuple[StageLanes, ...]]
    floor: dict[str, float]
    before: float
    stretch: float

    @classmethod
    def of(cls, ordered: OrderedRange, costs: LaneCosts, indices: Container[str]) -> StageModel:
        """Measure two and three lanes of these indices in every stage, given the costs of the range, and return the model."""
        region, (*copies, figures), measure = ordered.pieces[-1], ordered.figures, LaneMeasure.of(costs)
        base = measure.corners(())[()]
        stages: dict[str, tuple[StageLanes, ...]] = {}
        floor: dict[str, float] = {}
        for index, size in ordered.loops.items():
            if index not in indices:
                continue
            copied: set[str] = set()
            dealt: list[StageLanes] = []
            for stage, loops in region.stages.items():
                own = (f"{stage}.{index}",)
                amounts = measure.corners(own) if index in loops and size > 1 else {}
                if not amounts:
                    continue
                nodes = measure.copied(own) & figures.occupied.keys()
                copied |= nodes
                cycles = max((figures.occupied[n] for n in nodes), default=0.0)
                dealt.append(StageLanes(f"/{stage}.{index}", size, cycles, *(more - base for more in amounts.values())))
            stages[index] = tuple(dealt)
            floor[index] = max(figures.memory, *(c for node, c in figures.occupied.items() if node not in copied), 0.0)
        before = figures.loading + sum(copy.cycles for copy in copies)
        return cls(base, stages, floor, before, figures.stretch)

    def lanes(self, budget: Budget, slots: float) -> list[Lanes]:
        """Return, for each index that several stages have, the lanes of the stages with which the slowest is as fast as the
        budget allows. FIFOs have `slots` slots."""
        factors = {name: slots if name == "fifo" else 1.0 for name in budget.limits}
        base = amounts_by_name(self.base, budget.limits)
        room = tuple(int(limit - base[name] * factors[name]) for name, limit in budget.limits.items())
        choices = (self._selected(index, factors, room) for index, stages in self.stages.items() if len(stages) > 1)
        return [lanes for lanes in choices if lanes]

    def least(self, lanes: Lanes) -> float:
        """Return the least cycles of the region with these lanes of its stages, with the copies that it reads."""
        count = dict(lanes)
        slowest = [
            max(self.floor[index], *(stage.cycles / count.get(stage.loop, 1) for stage in stages))
            for index, stages in self.stages.items()
            if any(stage.loop in count for stage in stages)
        ]
        return self.before + max(slowest, default=0.0) * self.stretch

    def _selected(self, index: str, slots: Mapping[str, float], room: tuple[int, ...]) -> Lanes:
        stages = self.stages[index]
        options = tuple(stage.options(self.floor[index], slots) for stage in stages)
        selected = select(SelectionProblem(options, room))
        if selected is None:
            return ()
        counts = (lane_counts(stage.size)[at] for stage, at in zip(stages, selected, strict=True))
        return tuple((stage.loop, count) for stage, count in zip(stages, counts, strict=True) if count > 1)
