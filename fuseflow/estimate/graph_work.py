"""The work of a graph on a machine, node by node: what its counts mean in firings, and in cycles that a node is occupied."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fuseflow.estimate.counted.memo import CountMemo
from fuseflow.estimate.counted.patterns import Pattern
from fuseflow.estimate.expected.stream_shapes import Overlap
from fuseflow.estimate.flows import Flow, Number
from fuseflow.estimate.graph_counts import ArrayTraffic, GraphCounts, NodeCounts, count_graph
from fuseflow.estimate.node_work import ProcessFirings, firings
from fuseflow.estimate.statistics import TensorStatistics
from fuseflow.samml import nodes as n
from fuseflow.sim.machine.machine import Machine
from fuseflow.sim.machine.timing import node_timing


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


def count_work(
    graph: n.Graph,
    machine: Machine,
    statistics: Mapping[str, TensorStatistics],
    patterns: Mapping[str, Pattern],
    memo: CountMemo,
    overlap: Overlap | None = None,
) -> Work:
    """Count the work of a verified graph. The arguments but the machine are those of `count_graph`."""
    return work_on(count_graph(graph, statistics, patterns, memo, overlap), machine)


def work_on(counts: GraphCounts, machine: Machine) -> Work:
    """Return the work of a graph on a machine, given its counts."""
    nodes = tuple(
        _node_work(node, counts.graph, numbers, machine) for node, numbers in zip(counts.graph.nodes, counts.nodes, strict=True)
    )
    return Work(nodes, counts.operators, counts.traffic, counts.flows, counts.patterns, counts.statistics)


def _node_work(node: n.Primitive, graph: n.Graph, numbers: NodeCounts, machine: Machine) -> NodeWork:
    processes = firings(node, graph.declared, numbers.inputs, numbers.outputs, numbers.steps, machine)
    interval = node_timing(node, graph, machine, numbers.tiles)[1]
    occupied = max(process_cycles(node, process, interval, machine) for process in processes)
    total = sum(values + closings for values, closings in processes)
    return NodeWork(node.name, node.op, total, occupied, numbers.flops, numbers.exact)


def process_cycles(node: n.Node, process: ProcessFirings, interval: int, machine: Machine) -> Number:
    """Return the cycles that a process of a node takes at least, given its firings and the interval between firings on values."""
    values, closings = process
    pause = interval if machine.rules == "comal" and isinstance(node, n.Alu) else 1  # after a stop
    return values * interval + closings * pause
