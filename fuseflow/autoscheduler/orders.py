"""The loop order of every region, one after the other: the cheapest by estimate, and of these the fastest in the simulator."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from fuseflow.autoscheduler.costs import estimate_regions
from fuseflow.autoscheduler.simulation_cache import SimulationCache
from fuseflow.compiler import compile_source
from fuseflow.errors import FuseFlowError
from fuseflow.estimate.program import Estimator, TensorKnowledge
from fuseflow.lower.partition import partition_program
from fuseflow.lower.program import region_requests
from fuseflow.lower.regions import CompiledRegion, lower_region
from fuseflow.lower.search import fusion_key
from fuseflow.lower.state import LoweringState, RegionRequest, initial_state
from fuseflow.run.compiled import Compiled
from fuseflow.run.history import RunHistory
from fuseflow.schedule import Schedule
from fuseflow.sim import Engine
from fuseflow.tensors import Tensor

MAX_ORDERS = 8
"""Loop orders of a region that are estimated on the machine: those that the compiler ranks best."""

LoopOrder = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OrderTrial:
    """`estimate` and `cycles` are those of the region with what it copies; `cycles` None: not simulated. `refused`: why not."""

    region: str
    order: LoopOrder
    estimate: float
    cycles: int | None = None
    chosen: bool = False
    refused: str = ""


@dataclass(slots=True)
class OrderSearch:
    """Walks through a program, and leaves each region in the order that it chose. What a region reads is what the regions before it
    write in theirs. Regions that differ in names alone get one choice. `top`: how many orders of a region are simulated."""

    compiled: Compiled
    top: int
    estimator: Estimator
    ran: SimulationCache
    engine: Engine
    _chosen: dict[Hashable, tuple[LoopOrder, LoopOrder]] = field(default_factory=dict)

    def choose(self) -> tuple[Schedule, tuple[OrderTrial, ...]]:
        """The schedule with an order for each region that has several, and what was tried."""
        compiled, schedule = self.compiled, self.compiled.schedule
        partitioned = partition_program(compiled.source.program, schedule)
        state = initial_state(partitioned, compiled.source.tensors)
        knowledge = self.estimator.knowledge(partitioned.program, compiled.source.tensors)
        memory, again = compiled.memory() if self.top else {}, RunHistory(dedup=True)
        tried: list[OrderTrial] = []
        for request in region_requests(partitioned):
            if not request.order:
                order, compared = self._chosen_order(state, request, knowledge, memory)
                tried += compared
                if order:
                    request, schedule = replace(request, order=order), schedule.order(request.name, order)
            regions, state = lower_region(state, request)
            estimate_regions(regions, self.estimator, compiled.machine, knowledge)
            if self.top:
                self._run(regions, memory, again)
        return replace(schedule, places={}), tuple(tried)

    def _chosen_order(
        self, state: LoweringState, request: RegionRequest, knowledge: TensorKnowledge, memory: Mapping[str, Tensor]
    ) -> tuple[LoopOrder, Sequence[OrderTrial]]:
        """The order that was chosen for a region, () if there is nothing to choose; and what was tried, unless it was chosen for another
        region before."""
        key = fusion_key(state, request)
        (plain,) = (region for region in lower_region(state, request)[0] if region.einsums)
        loops, order = self._chosen.get(key, ((), ()))
        if loops == plain.fused.indices:
            return order, ()
        tried = self._compared(state, request, plain, knowledge, memory)
        order = next((each.order for each in tried if each.chosen), ())
        self._chosen[key] = plain.fused.indices, order
        return order, tried

    def _compared(
        self,
        state: LoweringState,
        request: RegionRequest,
        plain: CompiledRegion,
        knowledge: TensorKnowledge,
        memory: Mapping[str, Tensor],
    ) -> list[OrderTrial]:
        """The orders of a region, the cheapest first; none if there is nothing to choose."""
        ranked = sorted(
            (c for c in plain.fused.compared if c.cost is not None), key=lambda c: (c.order != plain.fused.order, c.rank)
        )
        if len(ranked) < 2:
            return []
        made: dict[LoopOrder, tuple[CompiledRegion, ...]] = {}
        found: list[OrderTrial] = []
        for candidate in ranked[:MAX_ORDERS]:
            try:
                pieces, _ = lower_region(state, replace(request, order=candidate.order))
            except FuseFlowError:
                continue  # the names of its loops are those of another way to fuse the region
            made[candidate.order] = pieces
            cycles = estimate_regions(pieces, self.estimator, self.compiled.machine, knowledge.copy())
            found.append(OrderTrial(request.name, candidate.order, cycles))
        found.sort(key=lambda t: t.estimate)
        for at, each in enumerate(found):
            if sum(t.cycles is not None for t in found) < self.top:
                try:
                    found[at] = replace(each, cycles=self._run(made[each.order], dict(memory), RunHistory(dedup=False)))
                except FuseFlowError as error:
                    found[at] = replace(each, refused=error.message)
        best = min(found, key=trial_rank, default=None)
        return [replace(each, chosen=each is best) for each in found]

    def _run(self, pieces: tuple[CompiledRegion, ...], memory: dict[str, Tensor], again: RunHistory) -> int:
        """The cycles of regions that run after another; `memory` then has what they write."""
        total = 0
        for region in pieces:
            for step in region.views_before:
                memory[step.name] = step.of(memory[step.source])
            read = {name: memory[name] for name in region.graph.inputs}
            results = again.again(region, read)
            if results is None:
                simulation = self.ran(region.graph, read, self.compiled.machine, engine=self.engine)
                results = again.first(region, read, simulation)
                total += simulation.cycles
            memory |= results
            for step in region.views_after:
                memory[step.name] = step.of(memory[step.source])
        return total


def trial_rank(tried: OrderTrial) -> tuple[bool, bool, float]:
    """What is simulated is before what is not, and what was refused last; then the fewest cycles."""
    return bool(tried.refused), tried.cycles is None, tried.estimate if tried.cycles is None else tried.cycles


def choose_orders(
    compiled: Compiled, top: int, estimator: Estimator, ran: SimulationCache, engine: Engine
) -> tuple[Compiled, tuple[OrderTrial, ...]]:
    """The program with its regions in the orders that were chosen."""
    schedule, tried = OrderSearch(compiled, top, estimator, ran, engine).choose()
    return compile_source(compiled.source, schedule, compiled.machine), tried
