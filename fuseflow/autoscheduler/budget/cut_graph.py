"""The ranges of a program as edges of a graph whose nodes are cuts, each with what lies in memory there.

A cut between two units is one node for every set of formats and orders in which the tensors that cross it may be stored. An edge is a
range of units as one region in one loop order. A path from the first node to the last is a program.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from fuseflow.autoscheduler.budget.deadline import Deadline
from fuseflow.autoscheduler.budget.decision import LoopOrder
from fuseflow.autoscheduler.budget.figures import RegionFigures
from fuseflow.autoscheduler.ranges import ProgramRanges
from fuseflow.autoscheduler.units import UnitRange
from fuseflow.errors import FuseFlowError
from fuseflow.estimate.program import Estimator, TensorKnowledge
from fuseflow.fusion.refusal import Refusal, attempt
from fuseflow.lower.regions import CompiledRegion, lower_region
from fuseflow.lower.state import LoweringState, RegionRequest, initial_state
from fuseflow.lower.views import source_of
from fuseflow.run.estimator_regions import estimator_regions
from fuseflow.sim import Machine
from fuseflow.tensors import Tensor

MAX_ORDERS = 8
"""How many loop orders of a range, those that the compiler ranks best, are considered."""
WORST_ORDER = 4
"""An order of which the compiler expects more than so many times the cycles of the best one is not considered: to estimate it may take
longer than all others.
"""

KEPT_COUNTS = 1_000
"""How many results of counting are kept for the next range, so that those of many ranges do not pile up."""


@dataclass(frozen=True, slots=True, eq=False)
class CutState:
    """A cut with what lies in memory there. `signature` is equal for states from which everything goes on alike."""

    cut: int
    signature: Hashable
    lowering: LoweringState
    knowledge: TensorKnowledge


@dataclass(frozen=True, slots=True, eq=False)
class OrderedRange:
    """A range of units as one region in one order and one lane, which leads from a state to another.

    `pieces` are the copies that the region reads, and the region. They are empty if nothing of the range is read. `figures` are those of
    the pieces. `rank` numbers the orders of a range, the one that the compiler ranks best first, and `loops` are the sizes of its indices.
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


@dataclass(slots=True)
class CutGraph:
    """The graph of all ranges. Edges of a state are lowered and estimated when they are asked for, and kept."""

    ranges: ProgramRanges
    machine: Machine
    estimator: Estimator
    lowering: LoweringState
    """The state before the first region."""
    knowledge: TensorKnowledge
    """What the estimate knows before the first region."""
    orders: int = MAX_ORDERS
    deadline: Deadline = field(default_factory=Deadline)
    """When it has passed, states have single units in one order behind them, and nothing else."""
    _edges: dict[int, tuple[OrderedRange, ...]] = field(default_factory=dict)
    _states: dict[tuple[int, Hashable], CutState] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        ranges: ProgramRanges,
        tensors: Mapping[str, Tensor],
        machine: Machine,
        estimator: Estimator,
        orders: int = MAX_ORDERS,
        deadline: Deadline | None = None,
    ) -> CutGraph:
        """Prepare the graph of a program that is partitioned into single operators."""
        lowering = initial_state(ranges.partitioned, tensors)
        knowledge = estimator.knowledge(ranges.partitioned.program, tensors)
        return cls(ranges, machine, estimator, lowering, knowledge, orders, deadline or Deadline())

    @property
    def last(self) -> int:
        """The number of the last cut, which is the number of units."""
        return len(self.ranges.units)

    @property
    def start(self) -> CutState:
        """The state before the first unit."""
        return self._state(0, self.lowering, self.knowledge)

    def edges(self, state: CutState) -> tuple[OrderedRange, ...]:
        """Return the ranges that begin at a state, in every order, short ones first."""
        if id(state) not in self._edges:
            self._edges[id(state)] = tuple(self._from(state))
        return self._edges[id(state)]

    def _from(self, state: CutState) -> Iterator[OrderedRange]:
        for end in range(state.cut + 1, self.last + 1):
            if self.deadline.passed and end > state.cut + 1:
                return
            if self.ranges.is_region((state.cut, end)):
                yield from self._ordered(state, (state.cut, end))

    def states(self) -> Iterator[CutState]:
        """Yield every state that can be reached, cut by cut. The edges of a state are those of the states yielded so far."""
        waiting: dict[int, dict[Hashable, CutState]] = {0: {self.start.signature: self.start}}
        for cut in range(self.last + 1):
            for state in waiting.get(cut, {}).values():
                yield state
                for edge in self.edges(state) if cut < self.last else ():
                    waiting.setdefault(edge.after.cut, {}).setdefault(edge.after.signature, edge.after)

    def _ordered(self, state: CutState, part: UnitRange) -> Iterator[OrderedRange]:
        request = self.ranges.request(part)
        if not request.results:
            after = self._state(part[1], state.lowering, state.knowledge)
            yield OrderedRange(part, request.name, state, after, (), (), (), 0, {})
            return
        lowered = attempt(lower_region, state.lowering, request)
        if isinstance(lowered, Refusal):
            return
        for rank, order in enumerate(self._best_orders(lowered[0][-1])):
            edge = self._edge(state, part, request, order, rank)
            if edge is not None:
                yield edge

    def _best_orders(self, plain: CompiledRegion) -> Sequence[LoopOrder]:
        ranked = sorted(
            (c for c in plain.fused.compared if c.cost is not None), key=lambda c: (c.order != plain.fused.order, c.rank)
        )
        limit = WORST_ORDER * min((c.rank for c in ranked), default=0.0)
        likely = (c.order for c in ranked if c.rank <= limit)
        return tuple(dict.fromkeys((plain.fused.order, *likely)))[: 1 if self.deadline.passed else self.orders]

    def _edge(self, state: CutState, part: UnitRange, request: RegionRequest, order: LoopOrder, rank: int) -> OrderedRange | None:
        """Return a range in an order, or None where the names of its loops are those of another way to fuse it."""
        try:
            pieces, lowering = lower_region(state.lowering, replace(request, order=order))
        except FuseFlowError:
            return None
        knowledge = state.knowledge.copy()
        estimates = (self.estimator.region(piece, self.machine, knowledge) for piece in estimator_regions(pieces))
        figures = tuple(RegionFigures.of(estimate, self.machine) for estimate in estimates)
        self.estimator.memo.forget(KEPT_COUNTS)
        after = self._state(part[1], lowering, knowledge)
        region = pieces[-1]
        sizes = {index: region.fused.sizes[index] for index in region.fused.order}
        return OrderedRange(part, request.name, state, after, pieces, figures, region.fused.order, rank, sizes)

    def _state(self, cut: int, lowering: LoweringState, knowledge: TensorKnowledge) -> CutState:
        """Return the state at a cut in which only what is read behind it is kept."""
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
        program, views = self.ranges.partitioned.program, self.ranges.partitioned.views
        behind = self.ranges.members((cut, self.last)) if cut < self.last else []
        needed = {operand for e in behind for operand in program.defined[e].operands}
        waiting = [name for name in needed if name in views]
        while waiting:
            source = source_of(views[waiting.pop()]).tensor
            needed.add(source)
            waiting += [source] if source in views else []
        return sorted(name for name in lowering.stored if name not in program.defined or name in needed)
