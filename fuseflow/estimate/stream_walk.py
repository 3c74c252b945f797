"""A walk through a graph that finds the streams of its nodes, counted ones where they can be counted and expected ones elsewhere.

Where the whole graph would take too many elements at once, it is counted in pieces. A piece is a range of the coordinates of the
outermost loops. Every scan and range at the root emits the coordinates of the piece only, and the streams inside have what is below
these. Below the outermost level, the pieces of every stream add up to the stream. They do not where a node sees more of the outermost
level than an element: a workspace around it, a fork, or levels that are merged or split.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce

import numpy as np

from fuseflow.costs.statistics import TensorStatistics
from fuseflow.costs.stream_shapes import ExpectedStream, Overlap, expected_comparisons, expected_read, output_shapes
from fuseflow.estimate.counted.memo import CountMemo, TooMany, Uncountable
from fuseflow.estimate.counted.patterns import Piece
from fuseflow.estimate.counted.stream_rules import StreamRules
from fuseflow.estimate.counted.stream_trie import EMPTY, CountedStream, ElementCounts, FiberLevel, FiberNest
from fuseflow.estimate.stream_flow import Flow, Number, counted_flow, expected_flow, expected_from_counted
from fuseflow.samml import nodes as n
from fuseflow.samml.writers import LaneWriter


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
        nests = {port: stream.nest for port, stream in self.exact.items()}
        results = {
            name: tuple(ResultLevel(self._shape(port), nests.get(port)) for port in written_levels(self.graph, name))
            for name in once
        }
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


def count_pieces(graph: n.Graph, walk_of: Callable[[Piece], StreamWalk], memo: CountMemo) -> GraphStreams | None:
    """Count a graph in pieces. `walk_of` makes the walk that counts a piece. A piece that has too many elements for `memo` is
    halved.

    None if the pieces would not add up, or are more than `memo` allows. The pattern of a result with more elements than one count
    may take is not put together.
    """
    size = _outer_size(graph)
    if size is None:
        return None
    pieces, waiting = list[GraphStreams](), [(0, size)]
    while waiting:
        first, end = waiting.pop()
        if len(pieces) + len(waiting) >= memo.pieces:
            return None
        walk = walk_of((first, end))
        streams = walk.run()
        if walk.exceeded and end - first > 1:
            middle = (first + end) // 2
            waiting += [(middle, end), (first, middle)]
        elif walk.exceeded or len(streams.streams) < len(streams.flows):
            return None
        else:
            pieces.append(replace(streams, streams={}, comparisons={}))
    return _together(pieces, memo.budget)


def _outer_size(graph: n.Graph) -> int | None:
    """Return the largest size of an outermost level. None if there is none, or if the pieces of the streams would not add up."""
    types, declared = graph.types(), graph.declared
    sizes = []
    for node in graph.nodes:
        depth = types[node.inputs[0]].depth if node.inputs else 0
        outermost = depth == 1 and isinstance(node, n.Workspace | n.Flatten | n.SplitLevel)
        if outermost or isinstance(node, n.Fork | n.Merge):
            return None
        if isinstance(node, n.Scan | n.Range) and depth == 0:
            sizes.append(node.size if isinstance(node, n.Range) else declared[node.tensor].size(node.level))
    return max(sizes, default=None)


def _together(pieces: Sequence[GraphStreams], budget: int) -> GraphStreams:
    """Return the whole streams, given their pieces in order."""
    first = pieces[0]
    return GraphStreams(
        {port: reduce(_added, (piece.flows[port] for piece in pieces)) for port in first.flows},
        {name: sum(piece.steps[name] for piece in pieces) for name in first.steps},
        frozenset.intersection(*(piece.counted for piece in pieces)),
        {name: tuple(_joined_levels([piece.results[name] for piece in pieces], budget)) for name in first.results},
        {},
        {},
    )


def _added(a: Flow, b: Flow) -> Flow:
    """Return the flow of two pieces of a stream together. Both have the one outermost list."""
    if not a.lists:
        return a
    return Flow(
        (a.lists[0], *(x + y for x, y in zip(a.lists[1:], b.lists[1:], strict=True))),
        (max(a.filled[0], b.filled[0]), *(x + y for x, y in zip(a.filled[1:], b.filled[1:], strict=True))),
        a.elements + b.elements,
        a.absent + b.absent,
        a.read + b.read,
    )


def _joined_levels(pieces: Sequence[Sequence[ResultLevel]], budget: int) -> list[ResultLevel]:
    """Return the levels of a result, given its levels in each piece. A nest of more than `budget` elements is left out."""
    levels = []
    for parts in zip(*pieces, strict=True):
        counts = tuple(map(sum, zip(*(part.shape.counts for part in parts), strict=True)))
        nests = [part.nest for part in parts if part.nest is not None]
        affordable = sum(nest.level.elements for nest in nests) <= budget
        nest = _joined_nest([nest.chain for nest in nests]) if nests and affordable else None
        levels.append(ResultLevel(parts[0].shape._replace(counts=counts), nest))
    return levels


def _joined_nest(chains: Sequence[Sequence[FiberNest]]) -> FiberNest:
    """Return the whole nest, given its pieces in the order of their outermost coordinates."""
    tops = [chain[0].level.expanded(chain[0].link)[1] for chain in chains]
    crds = np.concatenate([chain[0].level.crd[at] for chain, at in zip(chains, tops, strict=True)])
    nest = FiberNest(None, np.zeros(1, dtype=np.int64), FiberLevel(np.array([0, len(crds)]), crds, chains[0][0].level.size))
    for depth in range(1, len(chains[0])):
        parts = [chain[depth] for chain in chains]
        offsets = np.cumsum([0, *(part.level.fibers for part in parts)])
        links = [part.link[at] if depth == 1 else part.link for part, at in zip(parts, tops, strict=True)]
        link = np.concatenate([np.where(k >= 0, k + offset, EMPTY) for k, offset in zip(links, offsets, strict=False)])
        lengths = np.concatenate([part.level.lengths for part in parts])
        pos = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(lengths)))
        nest = FiberNest(nest, link, FiberLevel(pos, np.concatenate([part.level.crd for part in parts]), parts[0].level.size))
    return nest
