"""A walk through a graph that finds the streams of its nodes, counted ones where they can be counted and expected ones elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fuseflow.costs.statistics import TensorStatistics
from fuseflow.costs.stream_shapes import ExpectedStream, Overlap, expected_comparisons, expected_read, output_shapes
from fuseflow.estimate.counted.memo import TooMany, Uncountable
from fuseflow.estimate.counted.nests import CountedStream, ElementCounts, FiberNest
from fuseflow.estimate.counted.stream_rules import StreamRules
from fuseflow.estimate.flows import Flow, Number, counted_flow, expected_flow, expected_from_counted
from fuseflow.samml import nodes as n
from fuseflow.samml.lane_writers import LaneWriter


@dataclass(frozen=True, slots=True)
class ResultLevel:
    """A stream of coordinates that is written: its shape, and its nest where it was counted."""

    shape: ExpectedStream
    nest: FiberNest | None


@dataclass(frozen=True, slots=True)
class GraphStreams:
    """The result of a walk: the flows of all streams, and the comparisons of all nodes.

    `counted` are the nodes for which these were counted, and for all nodes before them. `streams` has the streams that were
    counted, and `comparisons` the comparisons of each node that merges, list by list. `results` has, for each tensor that is not
    written in lanes, the streams that the writers of its levels read.
    """

    flows: Mapping[n.Port, Flow]
    steps: Mapping[str, Number]
    counted: frozenset[str]
    results: Mapping[str, tuple[ResultLevel, ...]]
    streams: Mapping[n.Port, CountedStream]
    comparisons: Mapping[str, ElementCounts]


@dataclass(slots=True)
class StreamWalk:
    """A walk that is under way. `rules` count streams, and `overlap` has facts about pairs of tensors. `kept` has the share of
    its values that a node keeps by value, where it is known. `exceeded` says that a count was not taken because it has too many
    elements."""

    graph: n.Graph
    statistics: Mapping[str, TensorStatistics]
    overlap: Overlap | None
    rules: StreamRules
    kept: Mapping[str, float] = field(default_factory=dict)
    exact: dict[n.Port, CountedStream] = field(default_factory=dict)
    comparisons: dict[str, ElementCounts] = field(default_factory=dict)
    shapes: dict[n.Port, ExpectedStream] = field(default_factory=dict)
    flows: dict[n.Port, Flow] = field(default_factory=dict)
    exceeded: bool = False

    def run(self) -> GraphStreams:
        """Visit all nodes, and return their streams."""
        steps, counted = dict[str, Number](), set[str]()
        for node in self.graph.nodes:
            steps[node.name], exact = self._visit(node)
            if exact and all(port.node in counted for port in node.inputs):
                counted.add(node.name)
        once = [name for name in self.graph.outputs if not lane_writers(self.graph, name)]
        results = {name: tuple(map(self._result_level, written_levels(self.graph, name))) for name in once}
        return GraphStreams(self.flows, steps, frozenset(counted), results, self.exact, self.comparisons)

    def _visit(self, node: n.Primitive) -> tuple[Number, bool]:
        """Find the streams of a node. Return its comparisons, and whether they and the streams were counted."""
        if node.name not in self.kept and all(port in self.exact for port in node.inputs):
            try:
                outputs = self.rules.make(node, [self.exact[port] for port in node.inputs])
            except TooMany:
                self.exceeded = True
            except Uncountable:
                pass
            else:
                for k, stream in enumerate(outputs.streams):
                    self.exact[n.Port(node.name, k)] = stream
                    self.flows[n.Port(node.name, k)] = counted_flow(stream, outputs.read)
                if outputs.steps is not None:
                    self.comparisons[node.name] = outputs.steps
                return outputs.steps.total if outputs.steps is not None else 0, not node.by_value
        inputs = [self._shape(port) for port in node.inputs]
        if node.name in self.kept:
            inputs[-1] = inputs[-1]._replace(present=inputs[-1].present * self.kept[node.name])
        for k, shape in enumerate(output_shapes(node, inputs, self.graph.declared, self.statistics, self.overlap)):
            self.shapes[n.Port(node.name, k)] = shape
            read = expected_read(node, shape, self.statistics)
            self.flows[n.Port(node.name, k)] = expected_flow(shape, read)
        return expected_comparisons(node, inputs), False

    def _shape(self, port: n.Port) -> ExpectedStream:
        """Return a stream in the form of the statistical model."""
        if port not in self.shapes:
            self.shapes[port] = expected_from_counted(self.exact[port])
        return self.shapes[port]

    def _result_level(self, port: n.Port) -> ResultLevel:
        return ResultLevel(self._shape(port), self.exact[port].nest if port in self.exact else None)


def written_levels(graph: n.Graph, tensor: str) -> tuple[n.Port, ...]:
    """Return the streams that the writers of the levels of a tensor read, the outermost first."""
    levels = {node.level: node.inputs[0] for node in graph.nodes if isinstance(node, n.WriteLevel) and node.tensor == tensor}
    return tuple(levels[p] for p in sorted(levels))


def written_values(graph: n.Graph, tensor: str) -> n.Port:
    """Return the stream that the writer of the values of a tensor reads."""
    return next(node.inputs[0] for node in graph.nodes if isinstance(node, n.WriteValues) and node.tensor == tensor)


def lane_writers(graph: n.Graph, tensor: str) -> tuple[LaneWriter, ...]:
    """Return the writers of a tensor that is written in lanes, empty for other tensors."""
    return tuple(node for node in graph.nodes if isinstance(node, LaneWriter) and node.tensor == tensor)
