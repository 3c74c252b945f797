"""The work of a graph on a machine: the firings of each node, and the cycles for which it is occupied."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from fuseflow.costs.statistics import TensorStatistics
from fuseflow.costs.stream_shapes import Overlap
from fuseflow.estimate.counted.memo import CountMemo
from fuseflow.estimate.counted.patterns import Pattern
from fuseflow.estimate.flows import Flow, Number
from fuseflow.estimate.graph_counts import ArrayTraffic, GraphCounts, count_graph
from fuseflow.estimate.node_work import ProcessFirings, firings
from fuseflow.machine.comal import readers_of_sums
from fuseflow.machine.machine import Machine
from fuseflow.machine.timing import NodeTiming, node_timing
from fuseflow.samml import nodes as n


@dataclass(frozen=True, slots=True)
class NodeWork:
    """The work of one node. `firings` are those of all its processes (a workspace collects in one and emits in another), and
    `occupied` is how many cycles the busiest process takes at least.

    `exact` says that the numbers were counted.
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

    `statistics` are of the tensors that it writes, and so are `patterns`, where these could be counted. `config_bytes` are of its
    resident tensors.
    """

    nodes: tuple[NodeWork, ...]
    operators: Mapping[str, Number]
    traffic: tuple[ArrayTraffic, ...]
    flows: Mapping[n.Port, Flow]
    patterns: Mapping[str, Pattern] = field(default_factory=dict)
    statistics: Mapping[str, TensorStatistics] = field(default_factory=dict)
    config_bytes: int = 0

    @property
    def exact(self) -> bool:
        """Whether the work of all nodes was counted."""
        return all(node.exact for node in self.nodes)


Intervals: TypeAlias = tuple[int, int]
"""The cycles from one firing on a value to the next, of the first process of a node and of the second one, if it has two."""


def node_timings(counts: GraphCounts, machine: Machine) -> list[NodeTiming]:
    """Return the timing of each node of a graph on a machine."""
    nodes = zip(counts.graph.nodes, counts.nodes, strict=True)
    return [node_timing(node, counts.graph, machine, numbers.tiles) for node, numbers in nodes]


def count_work(
    graph: n.Graph,
    machine: Machine,
    statistics: Mapping[str, TensorStatistics],
    patterns: Mapping[str, Pattern],
    memo: CountMemo,
    overlap: Overlap | None = None,
) -> Work:
    """Count the work of a verified graph on a machine. The other arguments are as in `count_graph`."""
    counts = count_graph(graph, statistics, patterns, memo, overlap)
    return work_on(counts, [timing[1:] for timing in node_timings(counts, machine)], machine)


def work_on(counts: GraphCounts, intervals: Sequence[Intervals], machine: Machine) -> Work:
    """Return the work of a graph on a machine, given its counts, and for each node the cycles between its firings."""
    declared = counts.graph.declared
    summed = readers_of_sums(counts.graph) if machine.rules == "comal" else frozenset[str]()
    nodes = []
    for node, numbers, own in zip(counts.graph.nodes, counts.nodes, intervals, strict=True):
        processes = firings(node, declared, numbers.inputs, numbers.outputs, numbers.steps, machine)
        if node.name in summed:
            closed = numbers.inputs[0].stops - numbers.inputs[0].inner_filled
            processes = [(values, closings + closed) for values, closings in processes]
        occupied = max(process_cycles(node, *process, machine) for process in zip(processes, own, strict=False))
        total = sum(values + closings for values, closings in processes)
        nodes.append(NodeWork(node.name, node.op, total, occupied, numbers.flops, numbers.exact))
    return Work(
        tuple(nodes), counts.operators, counts.traffic, counts.flows, counts.patterns, counts.statistics, counts.config_bytes
    )


def process_cycles(node: n.Node, process: ProcessFirings, interval: int, machine: Machine) -> Number:
    """Return the least cycles that a process of a node takes, given its firings and the `interval` in cycles between firings on
    values."""
    values, closings = process
    pause = interval if machine.rules == "comal" and isinstance(node, n.Alu) else 1  # after a stop
    return values * interval + closings * pause
