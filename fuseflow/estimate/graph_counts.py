"""The counts of a graph, node by node, which are the same on every machine, and its work on one: the firings of each node, and the cycles
for which it is occupied. They are exact where the streams of a node can be counted, and else expected."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate
from math import prod
from operator import mul
from typing import TypeAlias

import numpy as np

from fuseflow.costs.statistics import TensorStatistics, auxiliary_statistics
from fuseflow.costs.stream_shapes import Overlap, result_statistics
from fuseflow.estimate.counted.memo import CountMemo
from fuseflow.estimate.counted.patterns import Pattern, Piece, dense_pattern, result_pattern, written_nest
from fuseflow.estimate.counted.stream_rules import StreamRules, wanted_coordinates
from fuseflow.estimate.counted.stream_trie import CountedStream, ElementCounts, FiberNest
from fuseflow.estimate.node_work import ProcessFirings, elements_read, elements_written, firings, node_flops
from fuseflow.estimate.stream_flow import Flow, Number, largest
from fuseflow.estimate.stream_walk import GraphStreams, StreamWalk, count_pieces, lane_writers, written_levels, written_values
from fuseflow.machine.comal import readers_of_sums
from fuseflow.machine.machine import Machine
from fuseflow.machine.timing import NodeTiming, Pace, Paces, node_timing
from fuseflow.memory.layout import used_tensors
from fuseflow.resources import HeldEntries
from fuseflow.samml import nodes as n
from fuseflow.tensors.levels.base import bytes_of
from fuseflow.tile_ops import TileShape


@dataclass(frozen=True, slots=True)
class ArrayTraffic:
    """The bytes that a graph reads or writes of one array of a tensor in memory. `exact` says that they were counted."""

    tensor: str
    kind: str
    direction: str
    bytes: Number
    exact: bool


@dataclass(frozen=True, slots=True)
class _Access:
    """Elements of an array of a level that are read or written, and whether they were counted."""

    level: int
    elements: Number
    exact: bool


_Accesses: TypeAlias = dict[tuple[str, str, str], list[_Access]]
"""The accesses to arrays, by tensor, kind and direction."""


@dataclass(frozen=True, slots=True)
class NodeCounts:
    """The counts of a node: the flows of its inputs and outputs, the shapes of the tiles on its inputs, its comparisons (`steps`)
    and FLOPs.

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

    `streams` has the streams that could be counted, and `comparisons` the comparisons of each node that merges, list by list.
    `statistics` are of the tensors that the graph writes, and so are `patterns`, where these could be counted. `config_bytes` are
    of its resident tensors. `array_bytes` has the bytes of the arrays that it reads from memory, by tensor, level (-1 for values)
    and kind, in the order of their addresses.
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
    config_bytes: int = 0
    array_bytes: Mapping[tuple[str, int, str], int] = field(default_factory=dict)


def count_graph(
    graph: n.Graph,
    statistics: Mapping[str, TensorStatistics],
    patterns: Mapping[str, Pattern],
    memo: CountMemo,
    overlap: Overlap | None = None,
    kept: Mapping[str, float] | None = None,
) -> GraphCounts:
    """Count the work of a verified graph.

    `statistics` are of all tensors that it reads, `patterns` of the tensors that can be counted, and `overlap` has facts about
    pairs of tensors. `kept` has the share of its values that a node keeps by value, where it is known.
    """
    own, declared = auxiliary_statistics(graph), graph.declared
    structures = statistics, patterns
    statistics = {**statistics, **own}
    patterns = {**patterns, **{name: dense_pattern(vector.sizes) for name, vector in own.items()}}
    streams = _count_streams(graph, statistics, patterns, memo, overlap, kept or {})
    types, flows = graph.types(), streams.flows
    nodes, operators, accesses = list[NodeCounts](), Counter[str](), _Accesses()
    for node in graph.nodes:
        exact = node.name in streams.counted
        inputs = tuple(flows[port] for port in node.inputs)
        outputs = tuple(flows[port] for port in node.ports)
        tiles = tuple(types[port].tile for port in node.inputs if types[port].kind == "val")
        flops = node_flops(node, inputs, tiles)
        if node.operator:
            operators[node.operator] += flops  # type: ignore[assignment]
        nodes.append(NodeCounts(inputs, outputs, tiles, streams.steps[node.name], flops, exact))
        if isinstance(node, n.Scan | n.Locate | n.Load) and not declared[node.tensor].resident:
            level = -1 if isinstance(node, n.Load) else node.level
            for kind, words in elements_read(node, declared[node.tensor], inputs, outputs).items():
                accesses.setdefault((node.tensor, kind, "read"), []).append(_Access(level, words, exact))
    result_patterns, result_statistics_ = {}, {}
    for name in graph.outputs:
        decl = declared[name]
        if lanes := lane_writers(graph, name):  # it has all coordinates
            exact = all(port.node in streams.counted for node in lanes for port in node.inputs)
            accesses.setdefault((name, "val", "write"), []).append(_Access(-1, prod(decl.shape) * prod(decl.tile), exact))
            sizes = decl.level_sizes
            result_patterns[name] = dense_pattern(sizes)
            result_statistics_[name] = TensorStatistics(sizes, tuple(map(float, sizes)))
            continue
        ports, values = written_levels(graph, name), written_values(graph, name)
        exact = all(port.node in streams.counted for port in (*ports, values))
        for (p, kind), words in elements_written(decl, [flows[port] for port in ports], flows[values]).items():
            accesses.setdefault((name, kind, "write"), []).append(_Access(p, words, exact))
        if decl.like:
            result_statistics_[name] = structures[0][decl.like]
            result_patterns |= {name: structures[1][decl.like]} if decl.like in structures[1] else {}
            continue
        levels = streams.results[name]
        fills_up = any(level.pads for level in decl.format.levels)  # which coordinates it adds follows from the ones that it gets
        if exact and not fills_up and all(level.nest is not None for level in levels):
            nest = written_nest([level.nest for level in levels])
            key = ("written", str(decl.format), decl.shape)
            result_patterns[name] = memo.once(key, (nest,), partial(result_pattern, nest, decl.format, decl.shape))
        result_statistics_[name] = result_statistics(decl, [level.shape for level in levels], statistics)
    return GraphCounts(
        graph,
        tuple(nodes),
        {function: total for function, total in sorted(operators.items()) if total},
        _traffic(graph, accesses),
        flows,
        streams.streams,
        streams.comparisons,
        result_patterns,
        result_statistics_,
        sum(sum(array_bytes(decl, statistics[decl.name]).values()) for decl in graph.tensors if decl.resident),
        {
            (name, *array): number
            for name in used_tensors(graph)
            if name in graph.inputs and not declared[name].resident
            for array, number in array_bytes(declared[name], statistics[name]).items()
        },
    )


def _count_streams(
    graph: n.Graph,
    statistics: Mapping[str, TensorStatistics],
    patterns: Mapping[str, Pattern],
    memo: CountMemo,
    overlap: Overlap | None,
    kept: Mapping[str, float],
) -> GraphStreams:
    """Find the streams of a graph at once, or in pieces if that takes too many elements and every tensor has a pattern."""
    types, wanted = graph.types(), wanted_coordinates(graph, patterns)
    walk = StreamWalk(graph, statistics, overlap, StreamRules(memo, patterns, types, wanted), kept)
    streams = walk.run()
    if not walk.exceeded or memo.pieces == 1 or not patterns.keys() >= set(graph.inputs):
        return streams

    def piece_walk(piece: Piece) -> StreamWalk:
        rules = StreamRules(CountMemo(-(-memo.budget // 8)), patterns, types, wanted, piece)
        return StreamWalk(graph, statistics, overlap, rules, kept)

    return count_pieces(graph, piece_walk, memo) or streams


def _traffic(graph: n.Graph, accesses: _Accesses) -> tuple[ArrayTraffic, ...]:
    """Return the bytes of the accesses to each array, in the order of the tensors of the graph."""
    traffic = []
    for decl in graph.tensors:
        for kind in ("pos", "crd", "val"):
            for direction in ("read", "write"):
                parts = accesses.get((decl.name, kind, direction), [])
                number = _bytes(decl, kind, parts)
                if number:
                    traffic.append(ArrayTraffic(decl.name, kind, direction, number, all(part.exact for part in parts)))
    return tuple(traffic)


def _bytes(decl: n.TensorDecl, kind: str, parts: Sequence[_Access]) -> Number:
    """Return the bytes of accesses to arrays of one kind. Bytes of smaller elements are rounded up once."""
    elements: dict[tuple[int, int], Number] = {}
    for part in parts:
        bits = decl.element_bits
        if kind != "val":
            (bits,) = (array.bits for array in decl.stored_arrays(part.level) if array.kind == kind)
        rounded = bits, part.level if bits % 8 else -1
        elements[rounded] = elements.get(rounded, 0) + part.elements
    return sum(bytes_of(number, bits) for (bits, _), number in elements.items())


def array_bytes(decl: n.TensorDecl, statistics: TensorStatistics) -> dict[tuple[int, str], int]:
    """Return the bytes of every array of a tensor, by its level (-1 for the values) and its kind. They are exact where the statistics
    were measured. A tensor that is like another one has no arrays of levels."""
    levels, arrays, fibers = decl.format.levels, dict[tuple[int, str], int](), 1
    elements = list(accumulate(statistics.fanouts, mul))
    for p, level in enumerate(levels):
        room = decl.size(p) if level.full else decl.room(p)
        last = next(q for q in range(p, len(levels)) if q + 1 == len(levels) or not levels[q + 1].follows)
        entries = round(elements[last]) if room is None else fibers * room  # those of levels that follow p have one for each of p
        for array in () if decl.like else decl.stored_arrays(p):
            arrays[p, array.kind] = bytes_of(round(array.count(fibers, entries)), array.bits)
        fibers = entries
    return {**arrays, (-1, "val"): bytes_of(fibers, decl.value_bits)}


def held_entries(counts: GraphCounts) -> Mapping[str, HeldEntries]:
    """Return the most entries that each node holds at once, by node name: the largest fiber that a workspace collects, or the coordinates
    that a locate keeps. Nodes whose streams were not counted are left out."""
    held: dict[str, HeldEntries] = {}
    declared = counts.graph.declared
    for node, numbers in zip(counts.graph.nodes, counts.nodes, strict=True):
        if isinstance(node, n.Locate) and node.keeps(declared):
            if numbers.exact:
                held[node.name] = HeldEntries(round(numbers.outputs[0].read))
        elif isinstance(node, n.Workspace) and (collected := collected_stream(node, counts)) is not None:
            outer = counts.graph.types()[node.inputs[0]].depth - 1
            every = node.every if isinstance(node, n.Select) else 0
            held[node.name] = HeldEntries(_largest(collected.nest, outer, every))
    return held


def collected_stream(node: n.Workspace, counts: GraphCounts) -> CountedStream | None:
    """Return the stream whose entries a workspace collects, None if it was not counted: the output of an accumulator or a
    permute, or the input of a selection."""
    if isinstance(node, n.Select):
        return counts.streams.get(node.inputs[-1])
    return counts.streams.get(node.ports[-1])


def _largest(nest: FiberNest | None, depth: int, every: int) -> int:
    """Return the most elements inside of one element at `depth`, or if `every` is not 0, in a group of `every` coordinates."""
    if nest is None:
        return 1
    if every:
        return _largest_group(nest, every)
    around = nest.chain[depth - 1] if depth else None
    sums = ElementCounts(nest.above, nest.list_lengths).summed(depth)
    occurs = around.element_times > 0 if around is not None else np.ones(1, dtype=bool)
    return int(sums[occurs].max(initial=0))


def _largest_group(nest: FiberNest, every: int) -> int:
    """Return the most elements that a fiber that occurs has in one group of `every` neighbouring coordinates."""
    level = nest.level
    groups = -(-level.size // every)
    occurs = nest.times[level.owner] > 0
    sizes = np.bincount((level.owner * groups + level.crd // every)[occurs], minlength=1)
    return int(sizes.max(initial=0))


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
) -> Work:
    """Count the work of a verified graph on a machine. The other arguments are as in `count_graph`."""
    counts = count_graph(graph, statistics, patterns, memo)
    return work_on(counts, [timing.paces for timing in node_timings(counts, machine)], machine)


def work_on(counts: GraphCounts, paces: Sequence[Paces], machine: Machine) -> Work:
    """Return the work of a graph on a machine, given its counts, and for each node the paces of its processes."""
    declared = counts.graph.declared
    summed = readers_of_sums(counts.graph) if machine.rules == "comal" else frozenset[str]()
    nodes, turns = [], dict(counts.graph.turns)
    for node, numbers, own in zip(counts.graph.nodes, counts.nodes, paces, strict=True):
        processes = firings(node, declared, numbers.inputs, numbers.outputs, numbers.steps, machine)
        if node.name in summed:
            closed = numbers.inputs[0].stops - numbers.inputs[0].inner_filled
            processes = [(values, closings + closed) for values, closings in processes]
        turn = turns.get(node.name)
        occupied = max(process_cycles(node, *process, machine, turn) for process in zip(processes, own, strict=False))
        total = sum(values + closings for values, closings in processes)
        nodes.append(NodeWork(node.name, node.op, total, occupied, numbers.flops, numbers.exact))
    return Work(
        tuple(nodes), counts.operators, counts.traffic, counts.flows, counts.patterns, counts.statistics, counts.config_bytes
    )


def process_cycles(node: n.Node, process: ProcessFirings, pace: Pace, machine: Machine, turn: n.Turn | None = None) -> Number:
    """Return the least cycles that a process of a node takes, given its firings, its pace, and its turn at a port that it shares: a round
    for each value, all of them whole. Stops are taken between turns."""
    (values, closings), (interval, pause) = process, pace
    pause = interval if machine.rules == "comal" and isinstance(node, n.Alu) else pause
    cycles = values * interval + closings * pause
    return cycles if turn is None else largest((cycles, values * turn.interval(interval)))
