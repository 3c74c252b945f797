"""The cycles of each stage at each coordinate of a sampled index, and the weight of the coordinate: the slowest stage, fiber by
fiber.

    row i of A X, order i,k,j     for each k of row i of A, the elements of row k of X; or 1 if there is nothing; and 1 for the stop behind

A dataflow graph is a pipeline whose FIFOs hold a part of a fiber, so that each fiber takes as long as its slowest stage. The
weight of an element is therefore the largest of the weights of the lists below it, and the weight of a list is the sum over its
elements. Equal lists are stored once (`estimate.counted`), and so is their weight.

FIFOs also hold whole rows that are in flight. So a stage that is slow in one row catches up in the next ones, in which another stage is
slow. Sampled rows therefore have the rows of the loop before them, in their order, and the time of these rows is not measured.
There are several times as many of them as FIFOs hold: a stage that is faster than the next one by a share of x takes 1 / x times
as many rows to fill the FIFOs between both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import ceil

import networkx as nx
import numpy as np
import numpy.typing as npt

from fuseflow.estimate import CountMemo
from fuseflow.estimate.counted.memo import Uncountable
from fuseflow.estimate.counted.patterns import Pattern
from fuseflow.estimate.counted.stream_rules import StreamRules, wanted_coordinates
from fuseflow.estimate.counted.stream_trie import CountedStream, FiberNest
from fuseflow.machine.machine import Machine
from fuseflow.machine.timing import node_timing
from fuseflow.samml.nodes import Graph, Port
from fuseflow.table import FusionTable, emit
from fuseflow.transform.stream_levels import stream_levels

Weights = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class IndexWeights:
    """The weight of each coordinate of an index, the cycles of each of the `stages` there, and the streams of each stage.

    `tokens` is the mean number of tokens of a stream in a row. A row is one coordinate in one turn of the loops around it.
    """

    weights: Weights
    stages: Weights
    streams: tuple[tuple[Port, ...], ...]
    tokens: Mapping[Port, float]


def index_weights(
    table: FusionTable, index: str, coordinates: int, patterns: Mapping[str, Pattern], machine: Machine, memo: CountMemo
) -> IndexWeights:
    """Return the weights of the coordinates of an index of a region. A weight adds up all turns of the loops around that index.

    `patterns` has the patterns of the tensors that the region reads.
    """
    graph = emit(table)
    levels, intervals = stream_levels(graph, table.loops), _intervals(graph, machine)
    whole, alone = _StageTree(), dict[FiberNest, _StageTree]()
    streams, tokens = dict[FiberNest, list[Port]](), dict[Port, float]()
    for port, stream in _counted_streams(graph, patterns, memo):
        depth = next((depth for depth, indices in enumerate(levels[port]) if index in indices), None)
        nest = stream.nest
        if nest is not None and depth is not None and depth < nest.depth:
            whole.add(nest, intervals[port], depth)
            alone.setdefault(nest, _StageTree()).add(nest, intervals[port], depth)
            streams.setdefault(nest, []).append(port)
            tokens[port] = float(nest.element_times.sum() / max(1, nest.chain[depth].element_times.sum()))
    stages = np.array([tree.coordinate_weights(coordinates) for tree in alone.values()]).reshape(-1, coordinates)
    return IndexWeights(whole.coordinate_weights(coordinates), stages, tuple(map(tuple, streams.values())), tokens)


def _intervals(graph: Graph, machine: Machine) -> Mapping[Port, int]:
    """Return the cycles between two tokens of each stream of a graph, by the slower of the nodes that make or take them."""
    types, intervals = graph.types(), dict[Port, int]()
    for node in graph.nodes:
        tiles = [types[port].tile for port in node.inputs if types[port].kind == "val"]
        timing = node_timing(node, graph, machine, tiles)
        for port in node.inputs:
            intervals[port] = max(timing.interval, intervals.get(port, 1))
        for port in node.ports:
            intervals[port] = max(timing.emission, intervals.get(port, 1))
    return intervals


@dataclass(slots=True)
class _StageTree:
    """The lists of the streams of a region as a tree: `inside` has the lists that are nested in each. `cycles` is for one
    element.

    `sampled` are the lists whose elements are coordinates of the sampled index.
    """

    cycles: dict[FiberNest, int] = field(default_factory=dict)
    inside: dict[FiberNest | None, list[FiberNest]] = field(default_factory=dict)
    sampled: dict[FiberNest, None] = field(default_factory=dict)

    def add(self, innermost: FiberNest, cycles: int, depth: int) -> None:
        """Add the lists of a stream that has the sampled index at this depth, and whose innermost elements take `cycles` each."""
        self.sampled[innermost.chain[depth]] = None
        for nest in innermost.chain:
            if nest not in self.cycles:
                self.cycles[nest] = 1
                self.inside.setdefault(nest.above, []).append(nest)
        self.cycles[innermost] = max(cycles, self.cycles[innermost])

    def coordinate_weights(self, coordinates: int) -> Weights:
        """Return the weight of each coordinate of the sampled index: the sum over all its elements, 1 if no stream has it."""
        weights = np.ones(coordinates)
        for nest in self.sampled:
            cycles = nest.element_times * self._elements(nest)
            weights = np.maximum(weights, np.bincount(nest.level.crd, weights=cycles, minlength=coordinates))
        return weights

    def _elements(self, nest: FiberNest) -> Weights:
        """Return the weight of each element of a nest: the largest weight of a list below it."""
        weights = np.full(len(nest.level.crd), float(self.cycles[nest]))
        for below in self.inside.get(nest, []):
            sums = np.bincount(below.level.owner, weights=self._elements(below), minlength=below.level.fibers)
            lists = sums + 1.0  # a cycle for the stop behind each list
            weights = np.maximum(weights, np.where(below.link >= 0, lists[below.link], 1.0) if len(lists) else 1.0)
        return weights


def _counted_streams(graph: Graph, patterns: Mapping[str, Pattern], memo: CountMemo) -> Iterator[tuple[Port, CountedStream]]:
    """Yield the streams of a graph that can be counted."""
    rules = StreamRules(memo, patterns, graph.types(), wanted_coordinates(graph, patterns))
    streams: dict[Port, CountedStream] = {}
    for node in graph.nodes:
        if not all(port in streams for port in node.inputs):
            continue
        try:
            outputs = rules.make(node, [streams[port] for port in node.inputs]).streams
        except Uncountable:
            continue
        for k, stream in enumerate(outputs):
            streams[Port(node.name, k)] = stream
            yield Port(node.name, k), stream


RARELY = 0.01
"""A stage is ignored if the rows in which it is the slowest have at most this share of all weight."""
WASHOUT = 5
"""The rows before the measured ones, as a multiple of the rows that FIFOs hold. With once as many, rows whose number of entries
rises and falls slowly were 4.5 % too fast, with two and a half times as many 0.2 %."""


def least_warmup(held: float) -> int:
    """Return how many rows must run before the measured rows, if FIFOs hold `held` rows."""
    return max(1, ceil(WASHOUT * held))


def rows_in_fifos(graph: Graph, loop: IndexWeights, depth: int) -> float:
    """Return how many rows of a loop FIFOs hold between stages that take turns in being the slowest. The deepest FIFO has `depth`
    slots. `graph` is the graph of one lane.

    A FIFO holds the rows to which its tokens belong, and the rows of the FIFOs on a path between two stages add up. The path that
    holds the fewest rows limits how far apart the stages get.
    """
    network: nx.Graph[str] = nx.Graph()
    for node in graph.nodes:
        for port in node.inputs:
            if port in loop.tokens:
                rows = depth / max(1.0, loop.tokens[port])
                known = network.get_edge_data(port.node, node.name, {"rows": rows})["rows"]
                network.add_edge(port.node, node.name, rows=min(rows, known))
    slowest = loop.stages.argmax(axis=0) if len(loop.stages) else np.array([], int)
    share = np.bincount(slowest, weights=loop.stages.max(axis=0, initial=0), minlength=len(loop.stages))
    nodes: list[set[str]] = []  # that make or take the tokens of each stage
    for stage in np.flatnonzero(share > RARELY * share.sum()):
        ports = set(loop.streams[stage])
        nodes.append({port.node for port in ports} | {node.name for node in graph.nodes if ports.intersection(node.inputs)})
    between = [_rows_between(network, one, nodes[k + 1 :]) for k, one in enumerate(nodes)]
    return max(between, default=0.0)


def _rows_between(network: nx.Graph[str], one: set[str], others: list[set[str]]) -> float:
    """Return how many rows FIFOs hold between the stage of the nodes `one` and the farthest of the other stages."""
    rows = nx.multi_source_dijkstra_path_length(network, one & set(network), weight="rows") if one & set(network) else {}
    return max((min((rows[node] for node in other if node in rows), default=0.0) for other in others), default=0.0)
