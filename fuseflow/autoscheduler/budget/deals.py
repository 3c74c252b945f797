"""The lanes that a region may have, and what they give, without building them.

Graphs with two and with three lanes, built once, say which nodes are copied for an index, and what one more lane adds. From two lanes on,
what a graph occupies is linear in the lanes of each index; the first fork and merge come with the second lane.

    amounts(i=8)      = amounts(i=2) + 6 (amounts(i=3) - amounts(i=2))
    amounts(i=8, k=4) = the same in i, of amounts(i=2, k=4) and amounts(i=3, k=4), and each of these in k
    cycles           >= the most of (cycles of a node / product of the lanes that copy it)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations, product
from math import inf, prod

import numpy as np
import numpy.typing as npt

from fuseflow.autoscheduler.budget.cut_graph import OrderedRange
from fuseflow.autoscheduler.budget.decision import Lanes
from fuseflow.autoscheduler.budget.figures import RegionFigures
from fuseflow.autoscheduler.budget.settings import SETTINGS
from fuseflow.errors import ScheduleError
from fuseflow.lower.buffers import with_buffers, without_buffers
from fuseflow.lower.graphs import scheduled_form
from fuseflow.lower.lanes import with_lanes, without_lanes
from fuseflow.resources import COMPONENTS, HeldEntries, graph_resources
from fuseflow.resources.budget import Budget
from fuseflow.samml.nodes import Edge
from fuseflow.sim import Machine
from fuseflow.transform import LaneGraph

Amounts = npt.NDArray[np.float64]
"""The amount of each of `resources.COMPONENTS`. FIFOs count with one slot each, but in the area, where they have those of the machine."""


@dataclass(frozen=True, slots=True)
class Deal:
    """Lanes of a region, with what its graph occupies, and the cycles that the region takes at least in so many lanes."""

    lanes: Lanes
    amounts: Amounts
    least: float

    @property
    def indices(self) -> frozenset[str]:
        """The indices that are dealt."""
        return frozenset(index for index, _ in self.lanes)

    @property
    def rank(self) -> tuple[float, float, Lanes]:
        """The place of the deal in the order in which deals are tried: the fastest first, of equal ones the smallest."""
        return self.least, prod(count for _, count in self.lanes), self.lanes


@dataclass(frozen=True, slots=True, eq=False)
class LaneModel:
    """What lanes give one region.

    `sizes` are those of the indices that can be dealt. `corners` are the amounts of few lanes. `copied` has the cycles of the
    busiest node that is copied for a set of indices, and no others. `copies` and
    `memory` are cycles that lanes do not shorten, and `stretch` what all cycles
    are multiplied by because the memory refreshes itself.
    """

    sizes: Mapping[str, int]
    corners: Mapping[Lanes, Amounts]
    copied: Mapping[frozenset[str], float]
    copies: float
    memory: float
    stretch: float

    @classmethod
    def of(cls, ordered: OrderedRange, machine: Machine) -> LaneModel:
        """Build two and three lanes of each index, and measure what they occupy."""
        region, (*copies, figures) = ordered.pieces[-1], ordered.figures
        measure = LaneMeasure(ordered, machine, figures.held)
        corners: dict[Lanes, Amounts] = {(): measure.amounts(LaneGraph(region.graph, {}, {}))}
        enclosing: dict[str, set[str]] = {node.name: set() for node in region.graph.nodes}
        for index in ordered.loops:
            corners |= measure.corners((index,), enclosing)
        sizes = {index: size for index, size in ordered.loops.items() if _twos((index,)) in corners}
        waits = sum(copy.cycles for copy in copies)
        return cls(sizes, corners, _busiest(figures, enclosing), waits, figures.memory, figures.stretch)

    def with_pairs(self, ordered: OrderedRange, machine: Machine, every: bool) -> LaneModel:
        """Return the model with two and three lanes of pairs of indices, too: of all pairs, or of those that let expect most."""
        measure = LaneMeasure(ordered, machine, ordered.figures[-1].held)
        pairs = list(combinations((index for index, size in self.sizes.items() if size > 1), SETTINGS.max_dealt))
        corners = dict(self.corners)
        for pair in pairs if every else _promising(pairs, self.copied):
            corners |= measure.corners(pair, {})
        return replace(self, corners=corners)

    @property
    def dealing_most(self) -> frozenset[str]:
        """The indices that deal the busiest node."""
        return max(self.copied, key=lambda indices: self.copied[indices])

    def deals(self, budget: Budget, depth: int | None) -> list[Deal]:
        """Return the lanes that fit into a budget with FIFOs of so many slots, the fastest first. Without a depth, FIFOs are unbounded."""
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
        """Return what the graph occupies with these lanes, FIFOs with one slot each."""
        at = self.corners.get(lanes)
        if at is not None:
            return at
        place = next(n for n, (_, count) in enumerate(lanes) if count > 3)
        index, count = lanes[place]
        two, three = (self.amounts((*lanes[:place], (index, few), *lanes[place + 1 :])) for few in (2, 3))
        return two + (count - 2) * (three - two)

    def least(self, lanes: Lanes) -> float:
        """Return the cycles that the region takes at least with these lanes, its copies included."""
        count = dict(lanes)
        compute = max(cycles / prod(count.get(index, 1) for index in indices) for indices, cycles in self.copied.items())
        return self.copies + max(compute, self.memory) * self.stretch


def fits(amounts: Amounts, budget: Budget, depth: int | None) -> bool:
    """Return whether amounts are within a budget, with FIFOs of so many slots, or unbounded ones."""
    slots = inf if depth is None else depth
    used = dict(zip(COMPONENTS, amounts, strict=True))
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


def _promising(pairs: list[tuple[str, ...]], copied: Mapping[frozenset[str], float]) -> list[tuple[str, ...]]:
    """Return the pairs of indices that let expect most, and more than one of them does.

    Two indices let expect more than one if both deal the busiest node, or if each deals nodes that the other leaves alone: those that leave
    least alone come first.
    """

    def left(*indices: str) -> float:
        return max((cycles for nodes, cycles in copied.items() if not nodes & {*indices}), default=0.0)

    busiest = max(copied, key=lambda nodes: copied[nodes])
    of_use = [pair for pair in pairs if busiest.issuperset(pair) or left(*pair) < min(left(index) for index in pair)]
    return sorted(of_use, key=lambda pair: (left(*pair), not busiest.issuperset(pair)))[: SETTINGS.max_pairs]


def _twos(indices: tuple[str, ...]) -> Lanes:
    return tuple((index, 2) for index in indices)


@dataclass(frozen=True, slots=True)
class LaneMeasure:
    """What the graph of a region occupies with some lanes. `held` is what its nodes hold back in one lane."""

    ordered: OrderedRange
    machine: Machine
    held: Mapping[str, HeldEntries]

    def corners(self, indices: tuple[str, ...], enclosing: dict[str, set[str]]) -> dict[Lanes, Amounts]:
        """Return what two and three lanes of each index occupy, and add the index to the nodes that it alone copies. Nothing is returned
        for indices that cannot be dealt together."""
        amounts = dict[Lanes, Amounts]()
        for counts in product((2, 3), repeat=len(indices)):
            lanes = tuple(zip(indices, counts, strict=True))
            dealt = self.dealt(lanes)
            if dealt is None:
                return {}
            amounts[lanes] = self.amounts(dealt)
            for node, place in dealt.places.items() if len(indices) == 1 else ():
                enclosing.setdefault(without_lanes(node, place), set()).update(indices)
        return amounts

    def dealt(self, lanes: Lanes) -> LaneGraph | None:
        """Return the graph with some lanes, or None if it cannot have them."""
        region = self.ordered.pieces[-1]
        try:
            return with_lanes(region.serial, region.table, region.fused, self.ordered.lane_schedule(lanes))
        except ScheduleError:
            return None

    def copied(self, dealt: LaneGraph) -> set[str]:
        """Return the nodes of the graph in one lane that are copied."""
        return {without_lanes(node, place) for node, place in dealt.places.items()} & self.ordered.figures[-1].occupied.keys()

    def amounts(self, dealt: LaneGraph) -> Amounts:
        """Return what a graph occupies, FIFOs with one slot each. What a node holds back is that of the node without lanes."""
        lowering, region = self.ordered.before.lowering, self.ordered.pieces[-1]
        form = scheduled_form(lowering, without_buffers(dealt.graph))
        origins = {node: without_lanes(origin, dealt.places.get(origin, ())) for node, origin in form.origins().items()}
        held = {name: self.held[origin] for name, origin in origins.items() if origin in self.held}
        depth = self.machine.first_depth or 1
        slots = {Edge(node.name, k): depth for node in form.graph.nodes for k in range(len(node.inputs))}
        graph = with_buffers(form.graph, lowering.partitioned, region.fused)
        resources = graph_resources(graph, self.machine, held, slots)
        return np.array([(getattr(resources, name) or 0) / (depth if name == "fifo" else 1) for name in COMPONENTS])


def _busiest(figures: RegionFigures, enclosing: Mapping[str, set[str]]) -> dict[frozenset[str], float]:
    """Return the cycles of the busiest node by the indices for which a node is copied."""
    busiest: dict[frozenset[str], float] = {frozenset(): 0.0}
    for node, occupied in figures.occupied.items():
        indices = frozenset(enclosing.get(node, ()))
        busiest[indices] = max(busiest.get(indices, 0.0), occupied)
    return busiest
