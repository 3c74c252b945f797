"""The loop order of every region, one after the other: the cheapest by estimate, and of these the fastest in the simulator."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace

from fuseflow.compiler import compile_source
from fuseflow.compiler.lower import begin, chains, form
from fuseflow.compiler.regions import CompiledRegion, Lowering
from fuseflow.errors import FuseFlowError
from fuseflow.estimate.program import Estimator, TensorKnowledge
from fuseflow.explore.costs import expected
from fuseflow.explore.remembered import Remembered
from fuseflow.run.compiled import Compiled
from fuseflow.run.history import RunHistory
from fuseflow.schedule import Region, Schedule, region_results
from fuseflow.sim import Engine
from fuseflow.tensors import Tensor

ORDERS = 8
"""Loop orders of a region that are estimated on the machine: those that the compiler ranks best."""

Order = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TriedOrder:
    """`estimate` and `cycles` are those of the region with what it copies; `cycles` None: not simulated. `refused`: why not."""

    region: str
    order: Order
    estimate: float
    cycles: int | None = None
    chosen: bool = False
    refused: str = ""


@dataclass(slots=True)
class Orders:
    """Walks through a program, and leaves each region in the order that it chose. What a region reads is what the regions before it
    write in theirs. Regions that differ in names alone get one choice. `top`: how many orders of a region are simulated."""

    compiled: Compiled
    top: int
    estimator: Estimator
    ran: Remembered
    engine: Engine
    _chosen: dict[Hashable, tuple[Order, Order]] = field(default_factory=dict)

    def choose(self) -> tuple[Schedule, tuple[TriedOrder, ...]]:
        """The schedule with an order for each region that has several, and what was tried."""
        compiled, schedule = self.compiled, self.compiled.schedule
        formed = form(compiled.source.program, schedule)
        lowering = begin(formed, schedule, compiled.source.tensors)
        knowledge = self.estimator.knowledge(formed.program, compiled.source.tensors)
        memory, again = compiled.memory() if self.top else {}, RunHistory(dedup=True)
        asked, results = chains(formed, schedule), region_results(formed.program, formed.regions)
        tried: list[TriedOrder] = []
        for region in formed.regions:
            wanted = results[region.name]
            if not wanted:
                continue
            order = asked.get(region.name, ())
            if not order:
                key = lowering.key(region, wanted)
                (plain,) = (r for r in _tried(lowering, region, wanted, ()) if r.einsums)
                if self._chosen.get(key, ((), ()))[0] != plain.fused.indices:
                    found = self._compared(lowering, region, wanted, plain, knowledge, memory)
                    tried += found
                    self._chosen[key] = plain.fused.indices, next((t.order for t in found if t.chosen), ())
                order = self._chosen[key][1]
                schedule = schedule.order(region.name, order) if order else schedule
            made = tuple(lowering.region(region, wanted, order))
            expected(made, self.estimator, compiled.machine, knowledge)
            if self.top:
                self._run(made, memory, again)
        return replace(schedule, places={}), tuple(tried)

    def _compared(
        self,
        lowering: Lowering,
        region: Region,
        results: tuple[str, ...],
        plain: CompiledRegion,
        knowledge: TensorKnowledge,
        memory: Mapping[str, Tensor],
    ) -> list[TriedOrder]:
        """The orders of a region, the cheapest first; none if there is nothing to choose."""
        ranked = sorted(
            (c for c in plain.fused.compared if c.cost is not None), key=lambda c: (c.order != plain.fused.order, c.rank)
        )
        if len(ranked) < 2:
            return []
        made: dict[Order, tuple[CompiledRegion, ...]] = {}
        found: list[TriedOrder] = []
        for candidate in ranked[:ORDERS]:
            try:
                pieces = _tried(lowering, region, results, candidate.order)
            except FuseFlowError:
                continue  # the names of its loops are those of another way to fuse the region
            made[candidate.order] = pieces
            cycles = expected(pieces, self.estimator, self.compiled.machine, knowledge.copy())
            found.append(TriedOrder(region.name, candidate.order, cycles))
        found.sort(key=lambda t: t.estimate)
        for at, each in enumerate(found):
            if sum(t.cycles is not None for t in found) < self.top:
                try:
                    found[at] = replace(each, cycles=self._run(made[each.order], dict(memory), RunHistory(dedup=False)))
                except FuseFlowError as error:
                    found[at] = replace(each, refused=error.message)
        best = min(found, key=fewest, default=None)
        return [replace(each, chosen=each is best) for each in found]

    def _run(self, pieces: tuple[CompiledRegion, ...], memory: dict[str, Tensor], again: RunHistory) -> int:
        """The cycles of regions that run after another; `memory` then has what they write."""
        total = 0
        for region in pieces:
            for step in region.before:
                memory[step.name] = step.of(memory[step.source])
            read = {name: memory[name] for name in region.graph.inputs}
            results = again.again(region, read)
            if results is None:
                simulation = self.ran(region.graph, read, self.compiled.machine, engine=self.engine)
                results = again.first(region, read, simulation)
                total += simulation.cycles
            memory |= results
            for step in region.after:
                memory[step.name] = step.of(memory[step.source])
        return total


def fewest(tried: TriedOrder) -> tuple[bool, bool, float]:
    """What is simulated is before what is not, and what was refused last; then the fewest cycles."""
    return bool(tried.refused), tried.cycles is None, tried.estimate if tried.cycles is None else tried.cycles


def _tried(lowering: Lowering, region: Region, results: tuple[str, ...], order: Order) -> tuple[CompiledRegion, ...]:
    """The region in an order, as if it were lowered next."""
    trial = replace(lowering, stored=dict(lowering.stored), known=dict(lowering.known))
    return tuple(trial.region(region, results, order))


def with_orders(
    compiled: Compiled, top: int, estimator: Estimator, ran: Remembered, engine: Engine
) -> tuple[Compiled, tuple[TriedOrder, ...]]:
    """The program with its regions in the orders that were chosen."""
    schedule, tried = Orders(compiled, top, estimator, ran, engine).choose()
    return compile_source(compiled.source, schedule, compiled.machine), tried
