"""The choice of the loop order of every region, one after the other: the cheapest orders by estimate are simulated."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf

from fuseflow.array.capacity import tile_use
from fuseflow.array.links import linked_graph
from fuseflow.autoscheduler.simulation_cache import CandidateRuns
from fuseflow.compiler import compile_source
from fuseflow.cut.costs import RegionEstimates
from fuseflow.errors import FuseFlowError
from fuseflow.estimate.program import TensorKnowledge
from fuseflow.fusion.linear_extensions import LoopOrder
from fuseflow.lower.primitive_choice import lower_for
from fuseflow.lower.program import region_requests
from fuseflow.lower.region_fusion import fusion_key
from fuseflow.lower.regions import CompiledRegion, lower_region
from fuseflow.lower.reshape_views import add_views
from fuseflow.lower.state import LoweringState, RegionRequest, initial_state
from fuseflow.run.compiled import Compiled
from fuseflow.run.repeated_regions import RunHistory
from fuseflow.samml.auxiliary_tensors import auxiliary_tensors
from fuseflow.samml.nodes import Graph
from fuseflow.tensors import Tensor

MAX_ORDERS = 8
"""How many loop orders of a region are estimated on the machine: the ones that the compiler ranks best."""


@dataclass(frozen=True, slots=True)
class OrderTrial:
    """A loop order of a region that was considered.

    `estimate` and `cycles` are for the region together with its copies. `cycles` is None if the order was not simulated.
    `refused` says why it cannot be run; it is empty if it can.
    """

    region: str
    order: LoopOrder
    estimate: float
    cycles: int | None = None
    chosen: bool = False
    refused: str = ""


@dataclass(slots=True)
class OrderSearch:
    """A search that goes through a program and chooses the order of each region in turn.

    A region reads what the regions before it write in the orders chosen for them. Regions that differ in names alone get the same order.
    `top` is how many orders of a region are simulated. On an array, these run with their links, and their cycles are with loading.
    """

    compiled: Compiled
    top: int
    estimates: RegionEstimates
    runs: CandidateRuns
    _chosen: dict[Hashable, tuple[LoopOrder, LoopOrder]] = field(default_factory=dict)

    def choose(self) -> tuple[Compiled, tuple[OrderTrial, ...]]:
        """Return the program with an order for each region that has a choice, and the orders that were considered."""
        compiled, schedule = self.compiled, self.compiled.schedule
        partitioned, _ = lower_for(compiled.source.program, schedule, compiled.machine, compiled.source.tensors)
        state = initial_state(partitioned, compiled.source.tensors)
        knowledge = self.estimates.estimator.knowledge(partitioned.program, compiled.source.tensors)
        memory, history = compiled.memory() if self.top else {}, RunHistory(compiled.machine, dedup=True)
        trials: list[OrderTrial] = []
        for request in region_requests(partitioned):
            if not request.order:
                order, region_trials = self._chosen_order(state, request, knowledge, memory)
                trials += region_trials
                if order:
                    request, schedule = replace(request, order=order), schedule.order(request.name, order)
            regions, state = lower_region(state, request)
            self.estimates.cycles(regions, knowledge)
            if self.top:
                self._run(regions, memory, history)
        return compile_source(compiled.source, replace(schedule, places={}), compiled.machine), tuple(trials)

    def _chosen_order(
        self, state: LoweringState, request: RegionRequest, knowledge: TensorKnowledge, memory: Mapping[str, Tensor]
    ) -> tuple[LoopOrder, Sequence[OrderTrial]]:
        """Return the order that is chosen for a region, and the orders that were considered.

        The order is () if there is nothing to choose. A region that differs from an earlier one in names alone takes the order of
        the earlier one, and nothing is considered for it.
        """
        key = fusion_key(state, request)
        (plain,) = (region for region in lower_region(state, request)[0] if region.einsums)
        loops, order = self._chosen.get(key, ((), ()))
        if loops == plain.fused.indices:
            return order, ()
        trials = self._compared(state, request, plain, knowledge, memory)
        order = next((trial.order for trial in trials if trial.chosen), ())
        self._chosen[key] = plain.fused.indices, order
        return order, trials

    def _compared(
        self,
        state: LoweringState,
        request: RegionRequest,
        plain: CompiledRegion,
        knowledge: TensorKnowledge,
        memory: Mapping[str, Tensor],
    ) -> list[OrderTrial]:
        """Return the considered orders of a region, the cheapest by estimate first, one of them chosen; none without a choice."""
        ranked = plain.fused.ranked
        if len(ranked) < 2:
            return []
        regions_by_order: dict[LoopOrder, tuple[CompiledRegion, ...]] = {}
        trials: list[OrderTrial] = []
        for candidate in ranked[:MAX_ORDERS]:
            try:
                pieces, _ = lower_region(state, replace(request, order=candidate.order))
            except FuseFlowError:
                continue  # its loops have the names of another way to fuse the region
            regions_by_order[candidate.order] = pieces
            cycles = self.estimates.cycles(pieces, knowledge.copy())
            lack = "" if cycles < inf else "it does not fit the array"
            trials.append(OrderTrial(request.name, candidate.order, cycles, refused=lack))
        trials.sort(key=lambda t: t.estimate)
        for at, trial in enumerate(trials):
            if not trial.refused and sum(t.cycles is not None for t in trials) < self.top:
                try:
                    trials[at] = replace(
                        trial,
                        cycles=self._run(
                            regions_by_order[trial.order], dict(memory), RunHistory(self.compiled.machine, dedup=False)
                        ),
                    )
                except FuseFlowError as error:
                    trials[at] = replace(trial, refused=error.message)
        # Simulated orders are best, and refused ones worst.
        best = min(
            trials, key=lambda t: (bool(t.refused), t.cycles is None, t.estimate if t.cycles is None else t.cycles), default=None
        )
        return [replace(trial, chosen=trial is best) for trial in trials]

    def _placed(self, region: CompiledRegion) -> tuple[Graph, int]:
        """Return the graph of a region with its links, and the cycles of loading it, where it fits the array alone."""
        array = self.estimates.estimator.array
        if self.runs.placing is None or array is None or not tile_use(region.graph, array, self.compiled.machine).fits:
            return region.graph, 0
        placed = self.runs.placing.placed(region.graph)
        return linked_graph(placed), placed.loading_cycles

    def _run(self, regions: tuple[CompiledRegion, ...], memory: dict[str, Tensor], history: RunHistory) -> int:
        """Run regions one after the other, add what they write to `memory`, and return their cycles."""
        total = 0
        for region in regions:
            add_views(memory, region.views_before)
            memory |= auxiliary_tensors(region.graph)
            read = {name: memory[name] for name in region.graph.inputs}
            results = history.replay(region, read)
            if results is None:
                graph, loading = self._placed(region)
                simulation = self.runs.cache(graph, read, self.compiled.machine, engine=self.runs.engine)
                results = history.record(region, read, simulation)
                total += simulation.cycles + loading
            memory |= results
            add_views(memory, region.views_after)
        return total
