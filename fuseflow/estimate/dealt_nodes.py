"""The work of the nodes of a graph in lanes, for many candidates (numbers of lanes) at once, from the lists that were counted on
one lane."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import prod
from typing import NamedTuple, TypeAlias

import numpy as np

from fuseflow.estimate.counted.memo import CountMemo, Uncountable
from fuseflow.estimate.counted.stream_trie import CountedStream, ElementCounts, FiberNest, Ints, take
from fuseflow.estimate.graph_bounds import GraphBounds
from fuseflow.estimate.graph_counts import process_cycles
from fuseflow.estimate.lane_batch import LaneBatch
from fuseflow.estimate.lane_deal import DealtLevel, LaneDeal, shape_of
from fuseflow.estimate.lane_template import DealtStream, LaneTemplate, TemplateNode
from fuseflow.estimate.node_work import firings
from fuseflow.estimate.pipeline_batches import batch_flow
from fuseflow.estimate.pipeline_stages import lane_turns, row_fork
from fuseflow.estimate.stream_flow import Flow, Number, as_number, largest
from fuseflow.machine.machine import Machine
from fuseflow.machine.timing import NodeTiming, node_timing
from fuseflow.samml import nodes as n
from fuseflow.transform.stream_levels import Levels


class NodeNumbers(NamedTuple):
    """The numbers of a node. It is in `lanes` lanes, and has `firings` in all of them together. The others are those of the
    busiest lane: the `tokens` at each input, the `occupied` cycles, how often it emits what it holds back (`batches`), the tokens
    that it `emitted` then, and those at its first output (`elements`). If it deals or merges rows, `turning` lanes have up to
    `turns` turns each.

    Each number is an array with one for each candidate, or one number for all.
    """

    tokens: tuple[Number, ...]
    lanes: Number
    firings: Number
    occupied: Number
    batches: Number
    emitted: Number
    elements: Number
    turning: Number
    turns: Number


@dataclass(slots=True, eq=False)
class NodeStreams:
    """The flows of the streams of a node. For each stream, inputs first, `axes` has the indices whose lanes its numbers are given
    for: those around the node, and those to whose lanes the stream is dealt."""

    inputs: tuple[Flow, ...]
    outputs: tuple[Flow, ...]
    axes: tuple[tuple[str, ...], ...]


class AlikeStreams(NamedTuple):
    """Streams with equal flows in all lanes. `counted` is one of them on one lane. Its `levels` are dealt to the lanes of the
    `indices`. `read` is how many coordinates are read for each lane, None if all elements are."""

    counted: CountedStream
    levels: tuple[int, ...]
    indices: tuple[str, ...]
    read: Number | None


FlowsOnAxes: TypeAlias = dict[tuple[AlikeStreams, tuple[str, ...]], Flow]
"""The flows of streams in the lanes of some indices, for all candidates of a batch."""


@dataclass(slots=True, eq=False)
class DealtNodes:
    """The nodes of a graph that is dealt to lanes. `serial` is the graph on one lane, counted; `levels` are the indices of its
    streams."""

    template: LaneTemplate
    serial: GraphBounds
    levels: Mapping[n.Port, Levels]
    _timings: tuple[Machine, list[NodeTiming]] | None = None
    _dealt: dict[tuple[n.Port, tuple[str, ...]], tuple[int, ...]] = field(default_factory=dict)
    _alike: dict[DealtStream, AlikeStreams] = field(default_factory=dict)
    _whole: dict[FiberNest, CountedStream] = field(default_factory=dict)
    """A stream without absent elements for each nest."""

    def timings(self, machine: Machine) -> list[NodeTiming]:
        """Return the timing of each node. Timings on the machine of the last call are kept."""
        if self._timings is None or self._timings[0] is not machine:
            graph, types = self.template.graph, self.template.graph.types()
            nodes = [each.node for each in self.template.nodes]
            tiles = [[types[port].tile for port in node.inputs if types[port].kind == "val"] for node in nodes]
            self._timings = machine, [node_timing(node, graph, machine, own) for node, own in zip(nodes, tiles, strict=True)]
        return self._timings[1]

    # Streams -------------------------------------------------------------------------------------------------------------------

    def streams(self, batch: LaneBatch) -> list[NodeStreams]:
        """Return the flows of the streams of each node. Raises `Uncountable` if they do not follow from the counts on one
        lane."""
        kept, nodes = FlowsOnAxes(), []
        for each in self.template.nodes:
            streams, count = (*each.inputs, *each.outputs), len(each.inputs)
            axes = tuple(self._axis(each, stream) for stream in streams)
            flows = tuple(self._flow(stream, axis, batch, kept) for stream, axis in zip(streams, axes, strict=True))
            nodes.append(NodeStreams(flows[:count], flows[count:], axes))
        return nodes

    def _axis(self, each: TemplateNode, stream: DealtStream) -> tuple[str, ...]:
        """Return the indices whose lanes have numbers of their own of a stream at a node."""
        both = {*each.indices, *stream.indices}
        return tuple(index for index in self.template.indices if index in both) if stream.indices else ()

    def _flow(self, stream: DealtStream, axis: tuple[str, ...], batch: LaneBatch, kept: FlowsOnAxes) -> Flow:
        """Return the flow of a stream in the lanes of `axis`. `kept` has the flows that were computed before."""
        if not stream.indices:
            return self.serial.counts.flows[stream.port]
        if stream not in self._alike:
            self._alike[stream] = self._alike_of(stream)
        alike = self._alike[stream]
        if (alike, stream.indices) not in kept:
            kept[alike, stream.indices] = self._dealt_flow(alike, batch)
        if (alike, axis) not in kept:
            kept[alike, axis] = batch.spread(kept[alike, stream.indices], stream.indices, axis)
        return kept[alike, axis]

    def _alike_of(self, stream: DealtStream) -> AlikeStreams:
        """Return the class of streams whose flow `stream` shares."""
        own, levels = self.serial.counts.streams[stream.port], self._levels_of(stream.port, stream.indices)
        assert own.nest is not None
        shape = shape_of(self.serial.memo, own.nest)
        counted = own if own.absent else self._whole.setdefault(shape, CountedStream(shape))
        return AlikeStreams(counted, levels, stream.indices, self._read(stream))

    def _dealt_flow(self, alike: AlikeStreams, batch: LaneBatch) -> Flow:
        """Return the flow of a class of streams in the lanes of the indices that they are dealt for."""
        dealt = [tuple(map(DealtLevel, alike.levels, lanes)) for lanes in batch.axis(alike.indices).numbers]
        flows = [dealt_flow(self.serial.memo, alike.counted, own) for own in dealt]
        elements = _joined([flow.elements for flow in flows])
        return Flow(
            tuple(map(_joined, zip(*(flow.lists for flow in flows), strict=True))),
            tuple(map(_joined, zip(*(flow.filled for flow in flows), strict=True))),
            elements,
            _joined([flow.absent for flow in flows]),
            elements if alike.read is None else alike.read,
        )

    def _read(self, stream: DealtStream) -> Number | None:
        """Return how many coordinates are read for a stream in each lane, None if as many as it has. Raises `Uncountable`."""
        counts = self.serial.counts
        whole = counts.flows[stream.port]
        if not whole.read:
            return 0
        producer = self.template.graph.by_name.get(stream.port.node) or counts.graph.by_name[stream.port.node]
        if isinstance(producer, n.Scan) and whole.read == whole.elements:
            return None
        if isinstance(producer, n.Locate):
            return whole.read
        raise Uncountable

    def dealt(self, port: n.Port, indices: tuple[str, ...], lanes: Sequence[int]) -> tuple[DealtLevel, ...]:
        """Return the levels of a stream that the `indices` deal, outermost first, each with its number of `lanes`."""
        return tuple(map(DealtLevel, self._levels_of(port, indices), lanes))

    def _levels_of(self, port: n.Port, indices: tuple[str, ...]) -> tuple[int, ...]:
        """Return the levels of a stream that the indices deal, outermost first. Raises `Uncountable` if one deals none."""
        if (port, indices) not in self._dealt:
            dealt = [next((k for k, names in enumerate(self.levels[port]) if index in names), None) for index in indices]
            levels = tuple(level for level in dealt if level is not None)
            if len(levels) < len(indices) or any(inner <= outer for outer, inner in pairwise(levels)):
                raise Uncountable
            self._dealt[port, indices] = levels
        return self._dealt[port, indices]

    # Work ----------------------------------------------------------------------------------------------------------------------

    def numbers(self, batch: LaneBatch, streams: Sequence[NodeStreams], machine: Machine) -> list[NodeNumbers]:
        """Return the numbers of each node, given its streams."""
        counts, timings = batch.counts(), self.timings(machine)
        nodes = zip(self.template.nodes, streams, timings, strict=True)
        return [self._numbers_of(each, own, timing, batch, counts, machine) for each, own, timing in nodes]

    def _numbers_of(
        self,
        each: TemplateNode,
        streams: NodeStreams,
        timing: NodeTiming,
        batch: LaneBatch,
        counts: Mapping[str, Ints],
        machine: Machine,
    ) -> NodeNumbers:
        node, around = each.node, each.indices
        inputs, outputs = streams.inputs, streams.outputs
        axes, made = streams.axes, streams.axes[len(inputs) :]
        processes = firings(node, self.template.graph.declared, inputs, outputs, self._steps(each, inputs, batch), machine)
        number = as_number(np.asarray(self.template.lanes(each, counts)))
        alike = number // prod(as_number(counts[index]) for index in around)
        lanes = (around, *axes)  # a stream may be dealt further than its node
        in_all = sum(batch.total(own, batch.axis_of(own, lanes)) for own in map(sum, processes))
        cycles = [process_cycles(node, *process, machine) for process in zip(processes, timing.paces, strict=False)]
        tokens = tuple(batch.most(flow.tokens, axis) for flow, axis in zip(inputs, axes, strict=False))
        turning, turns = self._turns(each, inputs, axes, batch, counts)
        return NodeNumbers(
            tokens,
            number,
            alike * in_all,
            largest(batch.most(one, batch.axis_of(one, lanes)) for one in cycles),
            largest((1, batch.most(inputs[0].inner, axes[0]))) if node.holds_back else 0,
            batch.most(outputs[-1].tokens, made[-1]) if isinstance(node, n.Workspace) else 0,
            batch.most(outputs[0].tokens, made[0]) if outputs else 0,
            turning,
            turns,
        )

    def _turns(
        self,
        each: TemplateNode,
        inputs: Sequence[Flow],
        axes: Sequence[tuple[str, ...]],
        batch: LaneBatch,
        counts: Mapping[str, Ints],
    ) -> tuple[Number, Number]:
        """Return how many lanes have rows that a node deals or merges, and the most turns of one; 0 and 0 without turns."""
        by_name = self.template.graph.by_name
        turns, fork = lane_turns(each.node, inputs, by_name), row_fork(each.node, by_name)
        if turns is None:
            return 0, 0
        dealing = self.template.nodes[self.template.places[fork.name]] if fork else each
        return as_number(counts[dealing.lanes_of]), batch.most(turns.number, axes[1 if fork else 0])

    def _steps(self, each: TemplateNode, inputs: Sequence[Flow], batch: LaneBatch) -> Number:
        """Return the comparisons of a node that merges, in every lane; 0 for other nodes."""
        if not each.serial and isinstance(each.node, n.Align | n.Join):
            return inputs[0].elements
        comparisons = self.serial.counts.comparisons.get(each.serial)
        if comparisons is None:
            return 0
        if not each.indices:
            return comparisons.total
        counted, memo = [], self.serial.memo
        for lanes in batch.axis(each.indices).numbers:
            dealt = self.dealt(each.inputs[0].port, each.indices, lanes)
            if comparisons.nest is None or dealt[-1].level >= comparisons.nest.depth:
                raise Uncountable
            deal = LaneDeal.of(memo, shape_of(memo, comparisons.nest).chain[dealt[-1].level], dealt)
            counted.append(as_number(deal.sums(comparisons.summed(dealt[-1].level + 1))))
        return _joined(counted)


def _joined(numbers: Sequence[Number]) -> Number:
    """Return one array of the numbers of all lanes, given those of each candidate: an array, or one number."""
    arrays = [one if isinstance(one, np.ndarray) else np.full(1, one) for one in numbers]
    return as_number(np.concatenate(arrays))


def dealt_flow(memo: CountMemo, stream: CountedStream, dealt: Sequence[DealtLevel]) -> Flow:
    """Return the flow of a stream whose `dealt` levels are dealt to lanes. Its numbers are arrays with one number for each
    lane."""
    assert stream.nest is not None
    nest, labels, depth = shape_of(memo, stream.nest), stream.labels, dealt[-1].level + 1
    deal = LaneDeal.of(memo, nest.chain[depth - 1], dealt)

    def sums(numbers: Number) -> Number:
        return as_number(deal.sums(np.asarray(numbers)))

    def lists() -> Flow:
        below = batch_flow(memo, CountedStream(nest), depth)
        outer = (*map(as_number, deal.lists), *map(sums, below.lists))
        return Flow(outer, (*map(as_number, deal.filled), *map(sums, below.filled)), sums(below.elements))

    counted = memo.once(("dealt", tuple(dealt)), (nest,), lists)
    absent = memo.once(
        ("dealt absent", tuple(dealt)), (nest, labels), lambda: sums(batch_flow(memo, CountedStream(nest, labels), depth).absent)
    )
    return replace(counted, absent=absent)


def dealt_largest(memo: CountMemo, nest: FiberNest, depth: int, dealt: Sequence[DealtLevel]) -> Ints:
    """Return, by lane, the most elements of a nest inside of one element at `depth`, which is further in than the `dealt`
    levels."""
    largest = ElementCounts(nest.above, nest.list_lengths).summed(depth)
    for outer in reversed(nest.chain[dealt[-1].level + 1 : depth]):
        fibers = np.zeros(outer.level.fibers, dtype=np.int64)
        np.maximum.at(fibers, outer.level.owner, largest)
        largest = take(fibers, outer.link, 0)
    return LaneDeal.of(memo, nest.chain[dealt[-1].level], dealt).largest(largest)
