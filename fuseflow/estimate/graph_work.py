"""The work of a graph, node by node. It is counted exactly where the streams of a node can be counted, and else expected."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from fuseflow.estimate.counted.memo import CountMemo, Uncountable
from fuseflow.estimate.counted.nests import CountedStream
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
from fuseflow.estimate.node_work import ProcessFirings, elements_read, elements_written, firings, node_flops
from fuseflow.estimate.statistics import TensorStatistics, auxiliary_statistics
from fuseflow.samml import nodes as n
from fuseflow.sim.machine.comal import readers_of_sums
from fuseflow.sim.machine.machine import Machine
from fuseflow.sim.machine.timing import node_timing
from fuseflow.tensors import DTYPES
from fuseflow.tensors.levels.base import WORD_BYTES


@dataclass(frozen=True, slots=True)
class NodeWork:
    """The work of one node.

    `firings` are those of all its processes, and `occupied` are the cycles that the busiest process takes at least. `exact` says that the
    numbers were counted.
    """

    name: str
    op: str
    firings: Number
    occupied: Number
    flops: Number
    exact: bool


@dataclass(frozen=True, slots=True)
class ArrayTraffic:
    """The bytes that a graph reads or writes of one array of a tensor. `exact` says that they were counted."""

    tensor: str
    kind: str
    direction: str
    bytes: Number
    exact: bool


@dataclass(frozen=True, slots=True)
class Work:
    """The work of a graph: of its nodes, its FLOPs by operator, its bytes by array, and the flows of its streams.

    `statistics` are those of the tensors that it writes; `patterns` are their patterns, where these could be counted.
    """

    nodes: tuple[NodeWork, ...]
    operators: Mapping[str, Number]
    traffic: tuple[ArrayTraffic, ...]
    flows: Mapping[n.Port, Flow]
    patterns: Mapping[str, Pattern] = field(default_factory=dict)
    statistics: Mapping[str, TensorStatistics] = field(default_factory=dict)

    @property
    def exact(self) -> bool:
        """Whether the work of all nodes was counted."""
        return all(node.exact for node in self.nodes)


@dataclass(slots=True)
class _StreamWalk:
    """A walk through the nodes of a graph that finds the streams of each, exact ones where they can be counted."""

    graph: n.Graph
    statistics: Mapping[str, TensorStatistics]
    overlap: Overlap | None
    rules: StreamRules
    exact: dict[n.Port, CountedStream] = field(default_factory=dict)
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
                return outputs.steps, not node.by_value
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


def count_work(
    graph: n.Graph,
    machine: Machine,
    statistics: Mapping[str, TensorStatistics],
    patterns: Mapping[str, Pattern],
    memo: CountMemo,
    overlap: Overlap | None = None,
) -> Work:
    """Count the work of a verified graph.

    `statistics` are those of all tensors that it reads, `patterns` the patterns of those that can be counted, and `overlap` what is known
    of pairs of them.
    """
    types, own = graph.types(), auxiliary_statistics(graph)
    statistics = {**statistics, **own}
    patterns = {**patterns, **{name: dense_pattern(vector.sizes) for name, vector in own.items()}}
    walk = _StreamWalk(graph, statistics, overlap, StreamRules(memo, patterns, types, wanted_coordinates(graph, patterns)))
    summed = readers_of_sums(graph) if machine.rules == "comal" else frozenset[str]()
    nodes, operators, accesses = list[NodeWork](), Counter[str](), dict[tuple[str, str, str], list[tuple[Number, bool]]]()
    certain: dict[str, bool] = {}  # by node: whether whatever its streams have was counted
    for node in graph.nodes:
        steps, exact = walk.visit(node)
        exact = exact and all(certain[port.node] for port in node.inputs)
        certain[node.name] = exact
        inputs = [walk.flows[port] for port in node.inputs]
        outputs = [walk.flows[n.Port(node.name, k)] for k in range(len(node.port_names()))]
        tiles = [types[port].tile for port in node.inputs if types[port].kind == "val"]
        processes = firings(node, graph.declared, inputs, outputs, steps, machine)
        if node.name in summed:
            processes = [(values, closings + inputs[0].stops - inputs[0].inner_filled) for values, closings in processes]
        interval = node_timing(node, graph, machine, tiles)[1]
        pause = interval if machine.rules == "comal" and isinstance(node, n.Alu) else 1  # after a stop
        occupied = max(values * interval + closings * pause for values, closings in processes)
        flops = node_flops(node, inputs, tiles)
        if node.operator:
            operators[node.operator] += flops  # type: ignore[assignment]
        nodes.append(NodeWork(node.name, node.op, _total_firings(processes), occupied, flops, exact))
        if isinstance(node, n.Scan | n.Locate | n.Load):
            for kind, words in elements_read(node, graph.declared[node.tensor], inputs, outputs).items():
                accesses.setdefault((node.tensor, kind, "read"), []).append((words, exact))
    result_patterns, result_statistics_ = {}, {}
    for name in graph.outputs:
        result = _result_streams(walk, name, certain)
        decl = graph.declared[name]
        flows = [walk.flows[port] for port in result.levels]
        for kind, words in elements_written(decl, flows, walk.flows[result.values]).items():
            accesses.setdefault((name, kind, "write"), []).append((words, result.certain))
        if all(port in walk.exact for port in result.levels) and result.certain:
            nest = walk.exact[result.levels[-1]].nest if result.levels else None
            key = ("written", str(decl.format), decl.shape)
            result_patterns[name] = memo.once(key, (nest,), partial(result_pattern, nest, decl.format, decl.shape))
        result_statistics_[name] = result_statistics([walk.shape(port) for port in result.levels])
    flops_by_operator = {function: total for function, total in sorted(operators.items()) if total}
    return Work(tuple(nodes), flops_by_operator, _traffic(graph, accesses), walk.flows, result_patterns, result_statistics_)


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


def _total_firings(processes: Sequence[ProcessFirings]) -> Number:
    return sum(values + closings for values, closings in processes)


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
