"""The cost of a region in lanes, from one count of its graph on one lane.

    costs = LaneCosts(estimator, region.serial, region.table.loops, region.fused.order, machine, knowledge)
    costs.cost({"i": 8}).cycles, costs.cost({"i": 8, "h": 4}).resources.mul
    costs.near([({"i": lanes}, None) for lanes in (2, 4, 8)])

The work of a node in a lane follows from the elements that the lane gets when they are dealt in turn. So resources and firings
are as in the graph with these lanes, but for the lines that lanes write, which depend on where each begins. Where lanes are
folded, since something is reduced over their index, or get coordinates that they lack, the graph is made and counted. `near` says
for any lanes how many cycles to expect without making the graph.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from fuseflow.errors import ScheduleError
from fuseflow.estimate.counted.memo import Uncountable
from fuseflow.estimate.dealt_graph import DealtGraph, LaneCost
from fuseflow.estimate.graph_bounds import GraphBounds
from fuseflow.estimate.lane_template import LaneTemplate
from fuseflow.estimate.program import Estimator, EstimatorRegion, TensorKnowledge
from fuseflow.estimate.program_estimate import RegionEstimate
from fuseflow.machine.machine import Machine
from fuseflow.samml import nodes as n
from fuseflow.samml.nodes import Edge, Graph
from fuseflow.transform.lane_request import Writers
from fuseflow.transform.parallelize import NO_STAGES, LaneGraph, parallelize
from fuseflow.transform.stream_levels import Levels, Loops, stream_levels


@dataclass(slots=True, eq=False)
class LaneCosts:
    """The costs of one region in one loop order, with any number of lanes of its indices.

    `graph` is the graph of the region on one lane, in fuseflow's own primitives. `loops` are the indices of its scans and ranges,
    by node name, and `order` is the order of the loops, outermost first. `knowledge` has facts about the tensors before the
    region runs. `serial` is the counted graph, `levels` are the indices at each level of its streams, and `writers` says whether
    lanes write.
    """

    estimator: Estimator
    graph: Graph
    loops: Loops
    order: Sequence[str]
    machine: Machine
    knowledge: TensorKnowledge
    writers: Writers = "once"
    stages: Mapping[str, str] = field(default_factory=dict)
    """The stage of each node that is in one, by node name."""
    serial: GraphBounds = field(init=False)
    levels: Mapping[n.Port, Levels] = field(init=False)
    _templates: dict[tuple[str, ...], LaneTemplate] = field(default_factory=dict)
    _dealt: dict[tuple[str, ...], DealtGraph | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.knowledge = self.knowledge.copy()
        self.serial, self.levels = self.estimator.bounds(self.graph, self.knowledge), stream_levels(self.graph, self.loops)

    def cost(self, lanes: Mapping[str, int], depth: int | None = None) -> LaneCost:
        """Return the cost with `lanes` of each index; an index that is not there has one. All FIFOs have `depth` slots, or as
        many as the machine has (None).

        Raises `ScheduleError` for lanes that the graph cannot have, as `parallelize` does.
        """
        own = {index: lanes[index] for index in self.order if lanes.get(index, 1) > 1}
        dealt = self.shape(tuple(own))
        if dealt is not None and dealt.template.is_exact:
            with suppress(Uncountable):
                return dealt.cost(own, self.machine, depth)
        return self.made(own, depth)

    def near(self, candidates: Sequence[tuple[Mapping[str, int], int | None]]) -> list[float | None]:
        """Return about how many cycles the region takes under each candidate: the lanes of each index, and the slots of all
        FIFOs, None for the machine's. The result is None if the graph cannot have these lanes, or if the graph on one lane does
        not tell the cycles."""
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
        """Return the graph with these indices dealt to lanes, None if not all of its streams were counted on one lane."""
        if indices not in self._dealt:
            counted = len(self.serial.counts.streams) == len(self.serial.counts.flows)
            self._dealt[indices] = (
                DealtGraph(self.template(indices), self.serial, self.levels, self.estimator.array) if counted else None
            )
        return self._dealt[indices]

    def template(self, indices: tuple[str, ...]) -> LaneTemplate:
        """Return the shape of the graph with these indices dealt to lanes. An index of one stage alone is named as in `T.i`.
        Raises `ScheduleError` for indices that cannot be dealt."""
        if indices not in self._templates:
            self._templates[indices] = LaneTemplate.of(
                self.graph, self.levels, self.loops, indices, self.writers, self.stages if "." in "".join(indices) else NO_STAGES
            )
        return self._templates[indices]

    def lowered(self, lanes: Mapping[str, int]) -> LaneGraph:
        """Return the graph with these lanes. Raises `ScheduleError` as `parallelize` does."""
        own = {index: lanes[index] for index in self.order if index in lanes}
        return parallelize(self.graph, self.loops, own, writers=self.writers)

    def made(self, lanes: Mapping[str, int], depth: int | None = None) -> LaneCost:
        """Return the cost of the graph with these lanes, which is built and counted for that."""
        graph = self.lowered(lanes).graph
        if depth is not None:
            graph = graph.with_depths({Edge(node.name, k): depth for node in graph.nodes for k in range(len(node.inputs))})
        region = EstimatorRegion(graph.name, (), graph)
        estimate: RegionEstimate = self.estimator.region(region, self.machine, self.knowledge.copy())
        return LaneCost(estimate.bound, estimate.firings, estimate.resources, False)
