"""The counts of a graph, node by node, whatever machine it runs on. They are exact where the streams of a node can be counted, and else
expected."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

from fuseflow.estimate.counted.memo import CountMemo, Uncountable
from fuseflow.estimate.counted.nests import CountedStream, ElementCounts
from fuseflow.estimate.counted.patterns import Pattern, dense_pattern, result_pattern
from fuseflow.estimate.counted.stream_rules import StreamRules, wanted_coordinates
from fuseflow.estimate.expected.stream_shapes import (
    ExpectedStream,
    Overlap,
    expected_comparisons,
    output_shapes,
    result_statistics,
)
from fuseflow.estimate.flows import Flow, Number, counted_flow, expected_flow, expected_from_counted
from fuseflow.estimate.node_work import elements_read, elements_written, node_flops
from fuseflow.estimate.statistics import TensorStatistics, auxiliary_statistics
from fuseflow.samml import nodes as n
from fuseflow.tensors import DTYPES
from fuseflow.tensors.levels.base import WORD_BYTES
from fuseflow.tile_ops import TileShape


@dataclass(frozen=True, slots=True)
class ArrayTraffic:
    """The bytes that a graph reads or writes of one array of a tensor. `exact` says that they were counted."""

    tensor: str
    kind: str
    direction: str
    bytes: Number
    exact: bool


@dataclass(frozen=True, slots=True)
class NodeCounts:
    """What passes through a node: the flows of its inputs and outputs, the shapes of the tiles that it reads, its comparisons and FLOPs.

    `exact` says that the numbers were counted.
    """

    inputs: tuple[Flow, ...]
    outputs: tuple[Flow, ...]
    tiles: tuple[TileShape, ...]
    steps: Number
    flops: Number
    exact: bool


@dataclass(frozen=True, eq=False)
class GraphCounts:
    """The counts of a graph: of its nodes, its FLOPs by operator, its bytes by array, and the flows of its streams.

    `streams` are the streams that could be counted, and `comparisons` those of each node that merges, list by list. `statistics` are
    those of the tensors that the graph writes; `patterns` are their patterns, where these could be counted.
    """

    graph: n.Graph
    nodes: tuple[NodeCounts, ...]
    operators: Mapping[str, Number]
    traffic: tuple[ArrayTraffic, ...]
    flows: Mapping[n.Port, Flow]
    streams: Mapping[n.Port, CountedStream]
    comparisons: Mapping[str, ElementCounts]
    patterns: Mapping[str, Pattern] = field(default_factory=dict)
    statistics: Mapping[str, TensorStatistics] = field(default_factory=dict)


@dataclass(slots=True)
class _StreamWalk:
    """A walk through the nodes of a graph that finds the streams of each, exact ones where they can be counted."""

    graph: n.Graph
    statistics: Mapping[str, TensorStatistics]
    overlap: Overlap | None
    rules: StreamRules
    exact: dict[n.Port, CountedStream] = field(default_factory=dict)
    comparisons: dict[str, ElementCounts] = field(default_factory=dict)
    shapes: dict[n.Port, ExpectedStream] = field(default_factory=dict)
    flows: dict[n.Port, Flow] = field(default_factory=dict)

    def visit(self, node: n.Primitive) -> tuple[Number, bool]:
        """Find the streams of a node. Returns its comparisons, and whether they and the streams were counted."""
        if all(port in self.exact for port in node.inputs):
            try:
                outputs = self.rules.make(node, [self.exact[port] for port in node.inputs])
            except Uncountable:
                pass
            else:
                for k, stream in enumerate(outputs.streams):
                    self.exact[n.Port(node.name, k)] = stream
                    self.flows[n.Port(node.name, k)] = counted_flow(stream, outputs.read)
                if outputs.steps is not None:
                    self.comparisons[node.name] = outputs.steps
                return outputs.steps.total if outputs.steps is not None else 0, not node.by_value
        inputs = [self.shape(port) for port in node.inputs]
        for k, shape in enumerate(output_shapes(node, inputs, self.graph.declared, self.statistics, self.overlap)):
            self.shapes[n.Port(node.name, k)] = shape
            self.flows[n.Port(node.name, k)] = expected_flow(shape)
        return expected_comparisons(node, inputs), False

    def shape(self, port: n.Port) -> ExpectedStream:
        """Return a stream as the statistical model describes it."""
        if port not in self.shapes:
            self.shapes[port] = expected_from_counted(self.exact[port])
        return self.shapes[port]


def count_graph(
    graph: n.Graph,
    statistics: Mapping[str, TensorStatistics],
    patterns: Mapping[str, Pattern],
    memo: CountMemo,
    overlap: Overlap | None = None,
) -> GraphCounts:
    """Count what a verified graph does.

    `statistics` are those of all tensors that it reads, `patterns` the patterns of those that can be counted, and `overlap` what is known
    of pairs of them.
    """
    types, own, declared = graph.types(), auxiliary_statistics(graph), graph.declared
    statistics = {**statistics, **own}
    patterns = {**patterns, **{name: dense_pattern(vector.sizes) for name, vector in own.items()}}
    walk = _StreamWalk(graph, statistics, overlap, StreamRules(memo, patterns, types, wanted_coordinates(graph, patterns)))
    nodes, operators, accesses = list[NodeCounts](), Counter[str](), dict[tuple[str, str, str], list[tuple[Number, bool]]]()
    certain: dict[str, bool] = {}  # by node: whether whatever its streams have was counted
    for node in graph.nodes:
        steps, exact = walk.visit(node)
        exact = exact and all(certain[port.node] for port in node.inputs)
        certain[node.name] = exact
        inputs = tuple(walk.flows[port] for port in node.inputs)
        outputs = tuple(walk.flows[n.Port(node.name, k)] for k in range(len(node.port_names())))
        tiles = tuple(types[port].tile for port in node.inputs if types[port].kind == "val")
        flops = node_flops(node, inputs, tiles)
        if node.operator:
            operators[node.operator] += flops  # type: ignore[assignment]
        nodes.append(NodeCounts(inputs, outputs, tiles, steps, flops, exact))
        if isinstance(node, n.Scan | n.Locate | n.Load):
            for kind, words in elements_read(node, declared[node.tensor], inputs, outputs).items():
                accesses.setdefault((node.tensor, kind, "read"), []).append((words, exact))
    result_patterns, result_statistics_ = {}, {}
    for name in graph.outputs:
        result = _result_streams(walk, name, certain)
        decl = declared[name]
        flows = [walk.flows[port] for port in result.levels]
        for kind, words in elements_written(decl, flows, walk.flows[result.values]).items():
            accesses.setdefault((name, kind, "write"), []).append((words, result.certain))
        if all(port in walk.exact for port in result.levels) and result.certain:
            nest = walk.exact[result.levels[-1]].nest if result.levels else None
            key = ("written", str(decl.format), decl.shape)
            result_patterns[name] = memo.once(key, (nest,), partial(result_pattern, nest, decl.format, decl.shape))
        result_statistics_[name] = result_statistics([walk.shape(port) for port in result.levels])
    return GraphCounts(
        graph,
        tuple(nodes),
        {function: total for function, total in sorted(operators.items()) if total},
        _traffic(graph, accesses),
        walk.flows,
        walk.exact,
        walk.comparisons,
        result_patterns,
        result_statistics_,
    )


@dataclass(frozen=True, slots=True)
class _ResultStreams:
    """The streams that the writers of a result read. `certain` says that they were counted."""

    levels: tuple[n.Port, ...]
    values: n.Port
    certain: bool


def _result_streams(walk: _StreamWalk, name: str, certain: Mapping[str, bool]) -> _ResultStreams:
    """Return the streams that the writers of a result read."""
    levels = {node.level: node.inputs[0] for node in walk.graph.nodes if isinstance(node, n.WriteLevel) and node.tensor == name}
    values = next(node.inputs[0] for node in walk.graph.nodes if isinstance(node, n.WriteValues) and node.tensor == name)
    ports = tuple(levels[p] for p in sorted(levels))
    return _ResultStreams(ports, values, all(certain[port.node] for port in (*ports, values)))


def _traffic(graph: n.Graph, accesses: Mapping[tuple[str, str, str], list[tuple[Number, bool]]]) -> tuple[ArrayTraffic, ...]:
    """Add up the accesses of each array, in the order of the tensors of the graph."""
    traffic = []
    for decl in graph.tensors:
        for kind, width in (*WORD_BYTES.items(), ("val", DTYPES[decl.dtype].itemsize)):
            for direction in ("read", "write"):
                parts = accesses.get((decl.name, kind, direction), [])
                words = sum(number for number, _ in parts)
                if words:
                    traffic.append(ArrayTraffic(decl.name, kind, direction, words * width, all(exact for _, exact in parts)))
    return tuple(traffic)
