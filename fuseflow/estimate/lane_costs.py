"""What a region costs in lanes, from one count of its graph on one lane.

costs = LaneCosts.of(estimator, region.serial, region.table.loops, region.fused.order, machine, knowledge)
costs.cost({"i": 8}).cycles, costs.cost({"i": 8, "h": 4}).resources.mul
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from fuseflow.estimate.program import Estimator, EstimatorRegion, RegionEstimate, TensorKnowledge
from fuseflow.resources import Resources
from fuseflow.samml.nodes import Edge, Graph
from fuseflow.sim import Machine
from fuseflow.transform.parallelize import parallelize
from fuseflow.transform.stream_levels import Loops


@dataclass(frozen=True, slots=True)
class LaneCost:
    """The expected cycles of a region in lanes, its firings, which are counted, and what its graph occupies."""

    cycles: float
    firings: float
    resources: Resources


@dataclass(slots=True, eq=False)
class LaneCosts:
    """The costs of one region in one loop order, with any lanes of its indices.

    `graph` is the graph of the region on one lane, in our own primitives, and `loops` are the indices of its scans and ranges. `order` is
    that of the loops, outermost first. `knowledge` is what is known of the tensors before the region runs.
    """

    estimator: Estimator
    graph: Graph
    loops: Loops
    order: tuple[str, ...]
    machine: Machine
    knowledge: TensorKnowledge
    _costs: dict[tuple[tuple[str, int], ...], LaneCost] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        estimator: Estimator,
        graph: Graph,
        loops: Loops,
        order: Sequence[str],
        machine: Machine,
        knowledge: TensorKnowledge,
    ) -> LaneCosts:
        """Count a region on one lane."""
        return cls(estimator, graph, loops, tuple(order), machine, knowledge.copy())

    def cost(self, lanes: Mapping[str, int], depths: Mapping[Edge, int] | None = None) -> LaneCost:
        """Return the cost with so many lanes of each index; an index that is not there has one. `depths` are those of FIFOs of the graph on
        one lane, whose copies in lanes are as deep. The others have the depth of the machine.

        Raises `ScheduleError` for lanes that the graph cannot have, as `parallelize` does.
        """
        key = tuple((index, lanes[index]) for index in self.order if lanes.get(index, 1) > 1)
        if key not in self._costs:
            self._costs[key] = self._lowered(dict(key))
        return self._costs[key]

    def _lowered(self, lanes: Mapping[str, int]) -> LaneCost:
        """Return the cost of the graph with these lanes, counted anew."""
        graph = parallelize(self.graph, self.loops, lanes).graph
        estimate: RegionEstimate = self.estimator.region(
            EstimatorRegion(graph.name, (), graph), self.machine, self.knowledge.copy()
        )
        return LaneCost(estimate.bound.cycles, estimate.firings, estimate.resources)
