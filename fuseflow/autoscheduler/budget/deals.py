"""The lanes that a region may have, and the resources and cycles that they take, without building their graphs.

The shape of its graph in lanes says which nodes are copied for an index, and what one more lane adds. From two lanes on, the
resources of a graph are linear in the lanes of each index; the first fork and merge come with the second lane.

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
from fuseflow.estimate.dealt_graph import DealtResources
from fuseflow.estimate.graph_counts import held_entries
from fuseflow.estimate.lane_costs import LaneCosts
from fuseflow.lower.lanes import without_lanes
from fuseflow.resources import COMPONENTS, HeldEntries, Resources, graph_resources
from fuseflow.resources.budget import Budget
from fuseflow.samml.nodes import Edge

Amounts = npt.NDArray[np.float64]
"""The amount of each of `resources.COMPONENTS`. FIFOs count with one slot each, but in the area with the slots of the machine."""


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
    has, by set of indices, the cycles of the busiest node that is copied for just these. `copies` (of tensors) and `memory` are
    cycles that lanes do not shorten, and all cycles are multiplied by `stretch` because the memory refreshes itself.
    """

    sizes: Mapping[str, int]
    corners: Mapping[Lanes, Amounts]
    copied: Mapping[frozenset[str], float]
    copies: float
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
        sizes = {index: size for index, size in ordered.loops.items() if _twos((index,)) in corners}
        waits = sum(copy.cycles for copy in copies)
        return cls(sizes, corners, _busiest(figures, enclosing), waits, figures.memory, figures.stretch)

    def with_pairs(self, costs: LaneCosts, every: bool) -> LaneModel:
        """Return the model with two and three lanes of pairs of indices added: of `every` pair, or of the most promising ones."""
        measure = LaneMeasure.of(costs)
        pairs = list(combinations((index for index, size in self.sizes.items() if size > 1), SETTINGS.max_dealt))
        corners = dict(self.corners)
        for pair in pairs if every else _promising(pairs, self.copied):
            corners |= measure.corners(pair)
        return replace(self, corners=corners)

    @property
    def dealing_most(self) -> frozenset[str]:
        """The indices for which the busiest node is copied."""
        return max(self.copied, key=lambda indices: self.copied[indices])

    def deals(self, budget: Budget, depth: int | None) -> list[Deal]:
        """Return the lanes that fit into a budget with FIFOs of `depth` slots, the fastest first. A depth of None is FIFOs
        without a bound."""
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
        return self.copies + max(compute, self.memory) * self.stretch


def fits(amounts: Amounts, budget: Budget, depth: int | None) -> bool:
    """Return whether amounts are within a budget, with FIFOs of `depth` slots, or without a bound if it is None."""
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
    """Return the pairs of indices that promise most, and more than one index alone.

    Two indices promise more than one if both deal the busiest node, or if each deals nodes that the other leaves alone. Pairs
    that leave the least work alone come first.
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
    """Measures the resources of a region in lanes, given its costs. `held` has the entries that each node holds back in one
    lane."""

    costs: LaneCosts
    held: Mapping[str, HeldEntries]

    @classmethod
    def of(cls, costs: LaneCosts) -> LaneMeasure:
        return cls(costs, held_entries(costs.serial.counts))

    def corners(self, indices: tuple[str, ...]) -> dict[Lanes, Amounts]:
        """Return the amounts for two and three lanes of each index, or of an index in a stage. Empty if these indices cannot be
        dealt together."""
        several = [tuple(zip(indices, counts, strict=True)) for counts in product((2, 3), repeat=len(indices))]
        try:
            template = self.costs.template(indices)
            if len(indices) > 1 and any(node.folded for node in template.nodes):  # a tree of lanes may be dealt again
                return {lanes: self._amounts(self._made(lanes)) for lanes in several}
        except ScheduleError:
            return {}
        resources, machine = DealtResources(template), self.costs.machine
        return {lanes: self._amounts(resources.at_most(self.held, dict(lanes), self._depth, machine)) for lanes in several}

    def copied(self, indices: tuple[str, ...]) -> set[str]:
        """Return the names, on one lane, of the nodes that are copied if these indices are dealt. They must be indices that can
        be."""
        return {each.serial for each in self.costs.template(indices).nodes if each.indices and each.serial}

    def _made(self, lanes: Lanes) -> Resources:
        """Return the resources of the graph with these lanes, which is built for that. A copy of a node holds as many entries as
        the node."""
        made = self.costs.lowered(dict(lanes))
        origins = {node.name: without_lanes(node.name, made.places.get(node.name, ())) for node in made.graph.nodes}
        held = {name: self.held[origin] for name, origin in origins.items() if origin in self.held}
        slots = {Edge(node.name, k): self._depth for node in made.graph.nodes for k in range(len(node.inputs))}
        return graph_resources(made.graph, self.costs.machine, held, slots)

    @property
    def _depth(self) -> int:
        return self.costs.machine.first_depth or 1

    def _amounts(self, used: Resources) -> Amounts:
        """Return the resources as amounts. FIFOs count with one slot each."""
        return np.array([(getattr(used, name) or 0) / (self._depth if name == "fifo" else 1) for name in COMPONENTS])


def _busiest(figures: RegionFigures, enclosing: Mapping[str, set[str]]) -> dict[frozenset[str], float]:
    """Return the cycles of the busiest node for each set of indices for which some node is copied."""
    busiest: dict[frozenset[str], float] = {frozenset(): 0.0}
    for node, occupied in figures.occupied.items():
        indices = frozenset(enclosing.get(node, ()))
        busiest[indices] = max(busiest.get(indices, 0.0), occupied)
    return busiest
