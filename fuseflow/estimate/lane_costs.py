"""What a region costs in lanes, from one count of its graph on one lane.

    costs = LaneCosts.of(estimator, region.serial, region.table.loops, region.fused.order, machine, knowledge)
    costs.cost({"i": 8}).cycles, costs.cost({"i": 8, "h": 4}).resources.mul
    costs.near([({"i": lanes}, None) for lanes in (2, 4, 8)])

Firings are those of the graph with these lanes, exactly: what a node does in a lane follows from the elements that the lane gets when they
are dealt in turn. Where lanes are folded, since something is reduced over their index, the graph is made and counted. `near` says for any
lanes how many cycles to expect without making the graph.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from fuseflow.errors import ScheduleError
from fuseflow.estimate.counted.memo import Uncountable
from fuseflow.estimate.dealt_graph import DealtGraph
from fuseflow.estimate.graph_bounds import GraphBounds
from fuseflow.estimate.lane_template import LaneTemplate
from fuseflow.estimate.program import Estimator, EstimatorRegion, TensorKnowledge
from fuseflow.estimate.program_estimate import RegionEstimate
from fuseflow.resources import Resources
from fuseflow.samml import nodes as n
from fuseflow.samml.nodes import Edge, Graph
from fuseflow.sim import Machine
from fuseflow.transform.lane_request import Writers
from fuseflow.transform.parallelize import parallelize
from fuseflow.transform.stream_levels import Levels, Loops, stream_levels


@dataclass(frozen=True, slots=True)
class LaneCost:
    """The expected cycles of a region in lanes, its firings, which are counted, and what its graph occupies. `by_arithmetic` says that the
    graph was not made for it."""

    cycles: float
    firings: float
    resources: Resources
    by_arithmetic: bool = False


@dataclass(slots=True, eq=False)
class LaneCosts:
    """The costs of one region in one loop order, with any lanes of its indices.

    `graph` is the graph of the region on one lane, in our own primitives, and `loops` are the indices of its scans and ranges. `order` is
    that of the loops, outermost first. `knowledge` is what is known of the tensors before the region runs, and `writers` says whether lanes
    write.
    """

    estimator: Estimator
    graph: Graph
    loops: Loops
    order: tuple[str, ...]
    machine: Machine
    knowledge: TensorKnowledge
    serial: GraphBounds
    levels: Mapping[n.Port, Levels]
    writers: Writers = "once"
    _dealt: dict[tuple[str, ...], DealtGraph | None] = field(default_factory=dict)
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
        writers: Writers = "once",
    ) -> LaneCosts:
        """Count a region on one lane."""
        knowledge = knowledge.copy()
        bounds, levels = estimator.bounds(graph, knowledge), stream_levels(graph, loops)
        return cls(estimator, graph, loops, tuple(order), machine, knowledge, bounds, levels, writers)

    def cost(self, lanes: Mapping[str, int], depths: Mapping[Edge, int] | None = None) -> LaneCost:
        """Return the cost with so many lanes of each index; an index that is not there has one. `depths` are those of FIFOs of the graph on
        one lane, whose copies in lanes are as deep. The others have the depth of the machine.

        Raises `ScheduleError` for lanes that the graph cannot have, as `parallelize` does.
        """
        key = tuple((index, lanes[index]) for index in self.order if lanes.get(index, 1) > 1)
        if depths:
            return self._cost(dict(key), depths)
        if key not in self._costs:
            self._costs[key] = self._cost(dict(key), {})
        return self._costs[key]

    def _cost(self, lanes: Mapping[str, int], depths: Mapping[Edge, int]) -> LaneCost:
        dealt = self.shape(tuple(lanes))
        if dealt is not None and dealt.template.is_exact:
            try:
                made = dealt.cost(lanes, self.machine, depths)
            except Uncountable:
                pass
            else:
                return LaneCost(made.cycles, made.firings, made.resources, True)
        return self.made(lanes, depths)

    def near(self, candidates: Sequence[tuple[Mapping[str, int], int | None]]) -> list[float | None]:
        """Return about how many cycles the region takes with so many lanes, and FIFOs of so many slots or those of the machine (None), for
        each of many candidates. None if nothing follows from the graph on one lane, or if it cannot have these lanes.
        """
        near: list[float | None] = [None] * len(candidates)
        together: dict[tuple[str, ...], list[int]] = {}
        for at, (lanes, _) in enumerate(candidates):
            together.setdefault(tuple(index for index in self.order if lanes.get(index, 1) > 1), []).append(at)
        for indices, places in together.items():
            with suppress(Uncountable, ScheduleError):
                dealt = self.shape(indices)
                cycles = [] if dealt is None else dealt.cycles([candidates[at] for at in places], self.machine)
                for at, own in zip(places, cycles, strict=False):
                    near[at] = own
        return near

    def shape(self, indices: tuple[str, ...]) -> DealtGraph | None:
        """Return the graph in lanes of these indices, None if not all of its streams were counted on one lane."""
        if indices not in self._dealt:
            counted = len(self.serial.counts.streams) == len(self.serial.counts.flows)
            template = LaneTemplate.of(self.graph, self.levels, self.loops, indices, self.writers) if counted else None
            self._dealt[indices] = None if template is None else DealtGraph.of(template, self.serial, self.levels)
        return self._dealt[indices]

    def made(self, lanes: Mapping[str, int], depths: Mapping[Edge, int] | None = None) -> LaneCost:
        """Return the cost of the graph with these lanes, counted anew."""
        own = {index: lanes[index] for index in self.order if index in lanes}
        lowered = parallelize(self.graph, self.loops, own, writers=self.writers)
        stated = {(edge.node, edge.input): depth for edge, depth in (depths or {}).items()}
        names = {node.name: node.name.split("/")[0] for node in lowered.graph.nodes}
        graph = lowered.graph.with_depths(
            {
                Edge(node.name, k): stated[names[node.name], k]
                for node in lowered.graph.nodes
                for k in range(len(node.inputs))
                if (names[node.name], k) in stated
            }
        )
        region = EstimatorRegion(graph.name, (), graph)
        estimate: RegionEstimate = self.estimator.region(region, self.machine, self.knowledge.copy())
        return LaneCost(estimate.bound.cycles, estimate.firings, estimate.resources)


__all__ = ["LaneCost", "LaneCosts"]
