"""The ranges of a program as edges of a graph whose nodes are cuts, each with the tensors that are stored in memory there.

A cut between two units is one node for every set of formats and orders in which the tensors that cross it may be stored. An edge
is a range of units as one region in one loop order. A path from the first node to the last is a program.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace

from fuseflow.autoscheduler.budget.request import Deadline
from fuseflow.autoscheduler.budget.settings import SETTINGS
from fuseflow.cut.costs import ProgramRanges
from fuseflow.cut.units import UnitRange
from fuseflow.errors import FuseFlowError
from fuseflow.estimate.graph_counts import held_entries
from fuseflow.estimate.program import Estimator, SharedEstimates, TensorKnowledge
from fuseflow.estimate.program_estimate import RegionEstimate
from fuseflow.estimate.region_conversion import estimator_regions
from fuseflow.fusion.linear_extensions import LoopOrder
from fuseflow.fusion.refusal import Refusal, attempt
from fuseflow.lower.region_fusion import fusion_key
from fuseflow.lower.regions import CompiledRegion, lower_region
from fuseflow.lower.reshape_views import source_of
from fuseflow.lower.state import LoweringMemo, LoweringState, RegionRequest, initial_state
from fuseflow.machine.machine import Machine
from fuseflow.resources import HeldEntries, Resources, arithmetic_lanes
from fuseflow.tensors import Tensor


@dataclass(frozen=True, slots=True, eq=False)
class RegionFigures:
    """The figures of a region in one lane. `memory` is how many cycles the memory moves its bytes, and `loading` how many it takes to
    load the region on an array. All other cycles are multiplied by `stretch`, because the memory refreshes itself. `occupied` has the
    cycles of every node, `held` the entries that nodes hold back, and `work`, for each component (such as `mul`), the cycles of all its
    units of arithmetic added up."""

    cycles: float
    memory: float
    stretch: float
    occupied: Mapping[str, float]
    held: Mapping[str, HeldEntries]
    work: Mapping[str, float]
    resources: Resources
    loading: int

    @classmethod
    def of(cls, estimate: RegionEstimate, machine: Machine) -> RegionFigures:
        return cls(
            float(estimate.bound.cycles) + estimate.loading,
            float(estimate.bound.memory),
            1 / (1 - estimate.bound.refresh),
            {node.name: float(node.occupied) for node in estimate.work.nodes},
            held_entries(estimate.counts),
            lane_cycles(estimate, machine),
            estimate.resources,
            estimate.loading,
        )

    def renamed(self, nodes: tuple[str, ...]) -> RegionFigures:
        """Return the figures of a region whose graph differs from this one only in the names of its nodes, which are `nodes`."""
        if nodes == tuple(self.occupied):
            return self
        names = dict(zip(self.occupied, nodes, strict=True))
        occupied = {names[node]: cycles for node, cycles in self.occupied.items()}
        return replace(self, occupied=occupied, held={names[node]: held for node, held in self.held.items()})


def lane_cycles(estimate: RegionEstimate, machine: Machine) -> dict[str, float]:
    """Return, for each component (such as `mul`), the busy cycles of all units of arithmetic of a region added up."""
    lanes, work = arithmetic_lanes(estimate.counts.graph, machine), defaultdict[str, float](float)
    for node in estimate.work.nodes:
        for component, count in lanes.get(node.name, {}).items():
            work[component] += count * float(node.occupied)
    return dict(work)


def total_lane_cycles(estimates: Iterable[RegionEstimate], machine: Machine) -> dict[str, float]:
    """Return the busy cycles of units of arithmetic, as `lane_cycles` does, of all regions of a program together."""
    total = defaultdict[str, float](float)
    for estimate in estimates:
        for component, cycles in lane_cycles(estimate, machine).items():
            total[component] += estimate.times * cycles
    return dict(total)


@dataclass(frozen=True, slots=True, eq=False)
class CutState:
    """A cut with the tensors that are stored in memory there. Behind states of equal `signature`, everything costs the same."""

    cut: int
    signature: Hashable
    lowering: LoweringState
    knowledge: TensorKnowledge


@dataclass(frozen=True, slots=True, eq=False)
class OrderedRange:
    """A range of units as one region in one order and one lane, which leads from a state to another.

    `pieces` are the copies that the region reads, and then the region. They are empty if no result of the range is read.
    `figures` has the figures of each piece. `rank` numbers the orders of a range, the one that the compiler ranks best first, and
    `loops` are the sizes of its indices. `key` is equal for ranges that cost the same in any lanes: their graphs differ in names
    alone, and their tensors have the same patterns. `best_ranked` is the range in the order that ranks best, None if it is this
    one.
    """

    part: UnitRange
    name: str
    before: CutState
    after: CutState
    pieces: tuple[CompiledRegion, ...]
    figures: tuple[RegionFigures, ...]
    order: LoopOrder
    rank: int
    loops: Mapping[str, int]
    key: Hashable
    best_ranked: OrderedRange | None = None

    @property
    def is_single(self) -> bool:
        """Whether the range has one unit."""
        return self.part[1] - self.part[0] == 1

    @property
    def is_public(self) -> bool:
        """Whether the range is made of public primitives. Then its graphs in lanes have others than its graph in one lane."""
        return self.before.lowering.partitioned.schedule.primitives == "public"


@dataclass(slots=True)
class CutGraph:
    """The graph of all ranges. The edges that begin at a state are lowered and estimated when they are first needed, and kept.

    A range has one edge in the order that the compiler ranks best, and edges in up to `orders` orders once it is *widened*. If there
    are few units, all ranges are widened at once.
    """

    ranges: ProgramRanges
    figures: SharedEstimates[RegionFigures]
    lowering: LoweringState
    """The state before the first region."""
    knowledge: TensorKnowledge
    """The facts about tensors before the first region."""
    orders: int = SETTINGS.max_orders
    deadline: Deadline = field(default_factory=Deadline)
    """When it has passed, only single units in one order begin at a state."""
    _single: dict[int, tuple[OrderedRange, ...]] = field(default_factory=dict)
    _longer: dict[int, tuple[OrderedRange, ...]] = field(default_factory=dict)
    _plain: dict[OrderedRange, CompiledRegion] = field(default_factory=dict)
    """The ranges that were not widened yet, in the order that ranks best, each with its region as the compiler fused it."""
    _best: dict[Hashable, tuple[LoopOrder, ...]] = field(default_factory=dict)
    """The orders that are considered for each kind of range. Ranges that differ in names alone are of one kind."""
    _needed: dict[int, frozenset[str]] = field(default_factory=dict)
    """The tensors that are read behind each cut, with the tensors of which they are views."""
    _states: dict[tuple[int, Hashable], CutState] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        ranges: ProgramRanges,
        tensors: Mapping[str, Tensor],
        machine: Machine,
        estimator: Estimator,
        orders: int = SETTINGS.max_orders,
        deadline: Deadline | None = None,
        memo: LoweringMemo | None = None,
    ) -> CutGraph:
        """Prepare the graph of a program that is partitioned into single operators. `memo` has what other formats of the program
        share."""
        lowering = initial_state(ranges.partitioned, tensors, memo)
        knowledge = estimator.knowledge(ranges.partitioned.program, tensors)
        shared = SharedEstimates(estimator, machine, lambda estimate: RegionFigures.of(estimate, machine))
        return cls(ranges, shared, lowering, knowledge, orders, deadline or Deadline())

    @property
    def last(self) -> int:
        """The number of the last cut, which is the number of units."""
        return len(self.ranges.units)

    @property
    def most_states(self) -> int:
        """At how many states of a cut ranges of several units begin."""
        return max(1, SETTINGS.many_states // self.last)

    @property
    def edge_count(self) -> int:
        """How many edges were lowered so far: ranges, each in an order."""
        return sum(len(edges) for kept in (self._single, self._longer) for edges in kept.values())

    @property
    def start(self) -> CutState:
        """The state before the first unit."""
        return self._state(0, self.lowering, self.knowledge)

    def edges(self, state: CutState, fused: bool = True) -> tuple[OrderedRange, ...]:
        """Return the ranges of operators that may be the next region after a state. Ranges of fewer operators come first; without
        `fused`, only those of one unit (`ProgramUnit`) are returned."""
        if id(state) not in self._single:
            self._single[id(state)] = tuple(self._from(state, state.cut + 1, state.cut + 1))
        if fused and id(state) not in self._longer:
            self._longer[id(state)] = tuple(self._from(state, state.cut + 2, self.last))
        return self._single[id(state)] + (self._longer[id(state)] if fused else ())

    def widen(self, edge: OrderedRange) -> bool:
        """Add the edges of a range in its other orders. Return whether there are any, False if it was widened before."""
        plain = self._plain.pop(edge, None)
        if plain is None:
            return False
        more = tuple(self._other_orders(edge, plain))
        kept = self._single if edge.is_single else self._longer
        kept[id(edge.before)] += more
        return bool(more)

    def is_widened(self, edge: OrderedRange) -> bool:
        """Return whether a range has an edge in all its orders."""
        return edge not in self._plain

    def _from(self, state: CutState, first: int, last: int) -> Iterator[OrderedRange]:
        for end in range(first, last + 1):
            if self.deadline.passed and end > state.cut + 1:
                return
            if self.ranges.is_region((state.cut, end)):
                yield from self._ordered(state, (state.cut, end))

    def states(self, fused: bool = True) -> Iterator[CutState]:
        """Yield every state that can be reached, cut by cut."""
        waiting: dict[int, dict[Hashable, CutState]] = {0: {self.start.signature: self.start}}
        for cut in range(self.last + 1):
            for state in waiting.get(cut, {}).values():
                yield state
                for edge in self.edges(state, fused) if cut < self.last else ():
                    waiting.setdefault(edge.after.cut, {}).setdefault(edge.after.signature, edge.after)

    def _ordered(self, state: CutState, part: UnitRange) -> Iterator[OrderedRange]:
        """Yield the edges of a range, the order that ranks best first; the other orders only if they are wanted at once."""
        request = self.ranges.request(part)
        if not request.results:
            after = self._state(part[1], state.lowering, state.knowledge)
            yield OrderedRange(part, request.name, state, after, (), (), (), 0, {}, ())
            return
        lowered = attempt(lower_region, state.lowering, request)
        if isinstance(lowered, Refusal):
            return
        first = self._edge(state, part, request, *lowered, rank=0)
        yield first
        if self.deadline.passed or self.orders == 1:
            return
        if self.last <= SETTINGS.few_units:
            yield from self._other_orders(first, lowered[0][-1])
        else:
            self._plain[first] = lowered[0][-1]

    def _other_orders(self, edge: OrderedRange, plain: CompiledRegion) -> Iterator[OrderedRange]:
        """Yield the edges of a range in its other orders. Orders that the region cannot be lowered in are left out."""
        request = self.ranges.request(edge.part)
        key = edge.key, fusion_key(edge.before.lowering, request)
        if key not in self._best:
            self._best[key] = self._best_orders(plain)
        for rank, order in enumerate(self._best[key]):
            if rank > 0:
                with suppress(FuseFlowError):
                    lowered = lower_region(edge.before.lowering, replace(request, order=order))
                    yield replace(self._edge(edge.before, edge.part, request, *lowered, rank=rank), best_ranked=edge)

    def _best_orders(self, plain: CompiledRegion) -> tuple[LoopOrder, ...]:
        """Return the orders of a region that are considered, the one that ranks best first. Of orders that differ only in the
        position of loops of one coordinate, the one that ranks best is considered."""
        ranked = plain.fused.ranked
        limit = SETTINGS.worst_order * min((c.rank for c in ranked), default=0.0)
        likely = (plain.fused.order, *(c.order for c in ranked if c.rank <= limit))
        sizes, unlike = plain.fused.sizes, dict[LoopOrder, LoopOrder]()
        for order in likely:
            unlike.setdefault(tuple(index for index in order if sizes[index] != 1), order)
        return tuple(unlike.values())[: self.orders]

    def _edge(
        self,
        state: CutState,
        part: UnitRange,
        request: RegionRequest,
        pieces: tuple[CompiledRegion, ...],
        lowering: LoweringState,
        rank: int,
    ) -> OrderedRange:
        """Return the edge of a range that was lowered in an order, with its estimate in one lane."""
        knowledge = state.knowledge.copy()
        shared = [self.figures.add(piece, knowledge) for piece in estimator_regions(pieces)]
        keys = tuple(key for key, _, _ in shared)
        figures = tuple(own.renamed(tuple(piece.graph.by_name)) for piece, (_, _, own) in zip(pieces, shared, strict=True))
        self.figures.estimator.memo.forget(SETTINGS.kept_counts)
        after = self._state(part[1], lowering, knowledge)
        region = pieces[-1]
        sizes = {index: region.fused.sizes[index] for index in region.fused.order}
        key = keys, tuple(sizes.items())
        return OrderedRange(part, request.name, state, after, pieces, figures, region.fused.order, rank, sizes, key)

    def _state(self, cut: int, lowering: LoweringState, knowledge: TensorKnowledge) -> CutState:
        """Return the state at a cut with only the tensors that are read behind it; one object for equal states."""
        alive = self._alive(cut, lowering)
        formats = {name: knowledge.formats[name] for name in alive if name in knowledge.formats}
        facts = (
            tuple((name, lowering.stored[name], lowering.statistics.get(name)) for name in alive),
            tuple((name, str(format)) for name, format in formats.items()),
            knowledge.of([name for name in formats if name in knowledge.statistics]),
        )
        key = cut, facts
        if key not in self._states:
            patterns = {name: pattern for name, pattern in knowledge.patterns.items() if name in formats}
            statistics = {name: known for name, known in knowledge.statistics.items() if name in formats}
            kept = TensorKnowledge(patterns, statistics, formats, knowledge.overlap, knowledge.kept)
            self._states[key] = CutState(cut, facts, lowering.restricted_to(alive), kept)
        return self._states[key]

    def _alive(self, cut: int, lowering: LoweringState) -> list[str]:
        """Return the stored tensors that are read behind a cut, sorted: inputs and copies, and results that later units read."""
        defined = self.ranges.partitioned.program.defined
        if cut not in self._needed:
            self._needed[cut] = self._read_behind(cut)
        return sorted(name for name in lowering.stored if name not in defined or name in self._needed[cut])

    def _read_behind(self, cut: int) -> frozenset[str]:
        program, views = self.ranges.partitioned.program, self.ranges.partitioned.views
        behind = self.ranges.members((cut, self.last)) if cut < self.last else []
        needed = {operand for e in behind for operand in program.defined[e].operands}
        waiting = [name for name in needed if name in views]
        while waiting:
            source = source_of(views[waiting.pop()]).tensor
            needed.add(source)
            waiting += [source] if source in views else []
        return frozenset(needed)
