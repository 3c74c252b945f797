"""A graph in lanes by arithmetic: the firings, cycles and resources of every node in every lane, from the lists counted on one lane.

Many candidates are computed at once, as arrays of the numbers of all their lanes. The cycles of each are then added up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from typing import NamedTuple, TypeAlias

import numpy as np

from fuseflow.array.capacity import fifo_tiles, limited_tiles, node_storage, node_tiles
from fuseflow.array.settings import ArraySettings
from fuseflow.estimate.counted.memo import Uncountable
from fuseflow.estimate.dealt_nodes import DealtNodes, NodeNumbers, dealt_largest
from fuseflow.estimate.dealt_ports import DealtPorts
from fuseflow.estimate.fifo_loops import BusyLoops, Fifo, LineWait, LongestWays, Matrix
from fuseflow.estimate.graph_bounds import GraphBounds, lines_ahead, lines_written
from fuseflow.estimate.graph_counts import collected_stream, held_entries
from fuseflow.estimate.graph_cycles import Bound, GraphCycles
from fuseflow.estimate.lane_batch import LaneBatch
from fuseflow.estimate.lane_template import LaneTemplate, TemplateNode
from fuseflow.estimate.memory_load import ArrayLoad, MemoryLoad, memory_answers
from fuseflow.estimate.memory_pace import memory_pace
from fuseflow.estimate.pipeline_stages import LaneTurns, Pipeline, Stage, stages_behind
from fuseflow.estimate.stream_flow import Number, as_number
from fuseflow.machine.machine import Machine
from fuseflow.resources import HeldEntries, Resources
from fuseflow.resources.area import AreaCount, FifoForm, branches, fifo_area, memory_area, token_bytes
from fuseflow.samml import nodes as n
from fuseflow.samml.writers import lane_part
from fuseflow.transform.stream_levels import Levels

MOST_KEPT = 256
"""For how many candidates (numbers of lanes of each index) the graphs are kept, to be used again with other depths of FIFOs."""

LaneNumbers: TypeAlias = tuple[int, ...]
"""The number of lanes of each dealt index."""
Slots: TypeAlias = tuple[float, ...]
"""The number of slots of each FIFO."""
MOST_NUMBERS = 1 << 19
"""The most numbers in a matrix that has one for each pair of nodes of each of many graphs."""


class _Unit(NamedTuple):
    """The resources of a node in one lane. `tokens` has the bytes of a slot at each input, and `fifos` the forms of the FIFOs
    there. The node takes `area`, and `branch_area` for each lane that it deals or merges, or else for each of its `branches`."""

    lanes: Mapping[str, int]
    stream: bool
    ports: int
    buffer: int
    entry_bytes: int
    tokens: tuple[int, ...]
    area: int
    branch_area: int
    branches: int
    fifos: tuple[FifoForm, ...]


def _in_lanes(node: n.Primitive, lanes: int) -> n.Primitive:
    """Return a fork or a merge of two lanes with a number of lanes."""
    return replace(node, lanes=lanes) if isinstance(node, n.Fork) else replace(node, inputs=node.inputs[:1] * lanes)


@dataclass(slots=True, eq=False)
class DealtResources:
    """The resources of a graph that is dealt to lanes, with tiles if there is an `array`. The resources of its nodes on the machine of
    the last call are kept."""

    template: LaneTemplate
    array: ArraySettings | None = None
    _units: tuple[Machine, AreaCount, list[_Unit]] | None = None

    def at_most(
        self, held: Mapping[str, HeldEntries], lanes: Mapping[str, int], depth: int | None, machine: Machine
    ) -> Resources:
        """Return the resources if each node holds as many entries in every lane as on one lane. `held` has these by node on one
        lane; other nodes count with the most that they can hold. FIFOs have `depth` slots, None for the machine's."""
        count, _ = self._on(machine)

        def most(each: TemplateNode) -> int:
            if each.serial in held:
                return held[each.serial].most
            return count.most_entries(each.node) if count.entry_bits(each.node) else 0

        entries = [most(each) * self.template.lanes(each, lanes) for each in self.template.nodes]
        return self.of(entries, lanes, depth, machine)

    def of(self, held: Sequence[int], lanes: Mapping[str, int], depth: int | None, machine: Machine) -> Resources:
        """Return the resources, given how many entries each node has `held` in all lanes together, and the slots of FIFOs
        (`depth`; None for the machine's)."""
        totals, ports, stream, area = Counter[str](), 0, 0, 0
        workspace, buffer, fifo, slots = 0, 0, 0, machine.first_depth if depth is None else depth
        nodes = *self.template.nodes, *self.template.left_out
        held = *held, *(0 for _ in self.template.left_out)
        for each, fixed, entries in zip(nodes, self._on(machine)[1], held, strict=True):
            number = self.template.lanes(each, lanes)
            for name, amount in fixed.lanes.items():
                totals[name] += amount * number
            stream += fixed.stream * number
            ports += fixed.ports * number
            workspace += fixed.entry_bytes * entries
            buffer += fixed.buffer * number
            area += (fixed.area + fixed.branch_area * (lanes[each.lanes_of] if each.lanes_of else fixed.branches)) * number
            if slots is None:
                continue
            inputs = list(zip(fixed.tokens, fixed.fifos, strict=True))
            for width, own in inputs[:1] * lanes[each.lanes_of] if isinstance(each.node, n.Merge) else inputs:
                fifo += slots * width * number
                area += fifo_area(own, slots) * number
        bytes_ = None if slots is None else fifo
        grows = machine.fifo_depth == "auto"
        lanes_of = totals["mul"], totals["add"], totals["special"]
        total = None if slots is None else area + memory_area(workspace + buffer)
        used = Resources(*lanes_of, ports, stream, bytes_, workspace, buffer, area=total, fifo_grows=grows)
        return replace(used, tiles=self.tiles(lanes, depth, machine))

    def tiles(self, lanes: Mapping[str, int], depth: int | None, machine: Machine) -> tuple[tuple[str, int], ...]:
        """Return the tiles that the graph takes, as `capacity.placed_tiles` does, if it states `depth` slots of each FIFO (None: it
        states none)."""
        if (array := self.array) is None:
            return ()
        (count, units), graph, tiles = self._on(machine), self.template.graph, Counter[str](dict.fromkeys(array.kinds, 0))
        for each, fixed in zip((*self.template.nodes, *self.template.left_out), units, strict=True):
            number, width = self.template.lanes(each, lanes), lanes[each.lanes_of] if each.lanes_of else 0
            for kind, amount in node_tiles(_in_lanes(each.node, width) if width else each.node, graph, array).items():
                tiles[kind] += amount * number
            tokens = fixed.tokens[:1] * width if width and isinstance(each.node, n.Merge) else fixed.tokens
            deep = 0 if depth is None else sum(fifo_tiles(depth, token, array) for token in tokens)
            tiles[array.memory.kind] += (node_storage(each.node, count, array, {}).tiles + deep) * number
        return limited_tiles(tiles, array)

    def _on(self, machine: Machine) -> tuple[AreaCount, list[_Unit]]:
        """Return the count of resources on a machine, and the resources of each node in one lane."""
        if self._units is None or self._units[0] is not machine:
            count, nodes = AreaCount(self.template.graph, machine), (*self.template.nodes, *self.template.left_out)
            self._units = machine, count, [self._unit(count, each.node) for each in nodes]
        return self._units[1:]

    def _unit(self, count: AreaCount, node: n.Primitive) -> _Unit:
        own = count.lanes(node)
        return _Unit(
            own,
            node.role != "source" and not own,
            count.ports(node),
            count.node_buffers.get(node.name, 0),
            count.entry_bytes(node),
            tuple(token_bytes(self.template.graph, port) for port in node.inputs),
            count.node(node) - count.branch(node) * branches(node),
            count.branch(node),
            branches(node),
            tuple(count.fifo_form(node, k) for k in range(len(node.inputs))),
        )


class LaneCost(NamedTuple):
    """The bounds of a graph in lanes, its counted firings, and its resources. `by_arithmetic` says that they follow from the
    counts on one lane: the graph in lanes was not built."""

    bound: Bound
    firings: float
    resources: Resources
    by_arithmetic: bool

    @property
    def cycles(self) -> float:
        """The cycles that the graph is expected to take."""
        return float(self.bound.cycles)


@dataclass(frozen=True, slots=True, eq=False)
class _LaneGraph:
    """The graph of a candidate apart from the depths of its FIFOs: the numbers of its nodes, and their cycles on a machine."""

    nodes: Sequence[NodeNumbers]
    cycles: GraphCycles


@dataclass(eq=False)  # without slots: cached properties are stored in the instance
class DealtGraph:
    """A graph whose indices are dealt to lanes, for any number of lanes. `serial` is the graph on one lane, counted. `levels` has
    the indices at each level of its streams, and `array` the tiles among its resources, if there is one."""

    template: LaneTemplate
    serial: GraphBounds
    levels: Mapping[n.Port, Levels]
    array: ArraySettings | None = None
    _graphs: tuple[Machine, dict[LaneNumbers, _LaneGraph]] | None = None
    _behind: frozenset[int] | None = None

    @cached_property
    def nodes(self) -> DealtNodes:
        """The nodes, with their work in lanes."""
        return DealtNodes(self.template, self.serial, self.levels)

    @cached_property
    def resources(self) -> DealtResources:
        """The resources that the nodes take in lanes."""
        return DealtResources(self.template, self.array)

    def cost(self, lanes: Mapping[str, int], machine: Machine, depth: int | None) -> LaneCost:
        """Return the cost with `lanes` of each index, and with FIFOs of `depth` slots; None takes the depth of the machine.
        Raises `Uncountable` if the cost does not follow from the counts on one lane."""
        graph = self._graphs_of([lanes], machine)[self._numbers(lanes)]
        held = [self._held(each, lanes) for each in self.template.nodes]
        used = self.resources.of(held, lanes, depth, machine)
        (bound,) = self._bounds([graph], [self._slots(machine, depth)], machine)
        return LaneCost(bound, int(sum(node.firings for node in graph.nodes)), used, True)

    def cycles(self, candidates: Sequence[tuple[Mapping[str, int], int | None]], machine: Machine) -> list[float]:
        """Return only the cycles of many candidates. Each has the lanes of each index, and the slots of all FIFOs, or None for
        the slots of the machine. Raises `Uncountable`."""
        graphs = self._graphs_of([lanes for lanes, _ in candidates], machine)
        slots = {depth: self._slots(machine, depth) for _, depth in candidates}
        size, cycles = max(1, MOST_NUMBERS // len(self.template.nodes) ** 2), list[float]()
        for at in range(0, len(candidates), size):
            chunk = candidates[at : at + size]
            own = [graphs[self._numbers(lanes)] for lanes, _ in chunk]
            bounds = self._bounds(own, [slots[depth] for _, depth in chunk], machine)
            cycles += [float(bound.cycles) for bound in bounds]
        return cycles

    def _bounds(self, graphs: Sequence[_LaneGraph], slots: Sequence[Slots], machine: Machine) -> list[Bound]:
        """Return the bounds of graphs, given the slots of the FIFOs of each. The loops of FIFOs of all graphs are computed together."""
        several = list({id(graph): graph for graph in graphs}.values())
        place = {id(graph): at for at, graph in enumerate(several)}
        nodes = _together([graph.nodes for graph in several])
        loops = self._pipeline(nodes).loops(*lines_ahead(machine), many=(len(several),))
        occupied = [node.occupied for node in nodes]
        of_stages = zip(*(graph.cycles.line_waits for graph in several), strict=True)
        waits = [LineWait(*map(_number, zip(*stage, strict=True))) for stage in of_stages]
        latency = [_number(stage) for stage in zip(*(graph.cycles.loaded_latency for graph in several), strict=True)]
        ways = loops.longest(latency, waits, loops.work(occupied), occupied)
        longest = LongestWays(*map(_by_graph, ways))
        bounded = {own for own in slots if any(room < inf for room in own)}
        busy = {own: BusyLoops.of(_by_graph(loops.shares(own)), longest) for own in bounded}
        loops_of = [
            busy[own].of_graph(place[id(graph)]) if own in busy else None for own, graph in zip(slots, graphs, strict=True)
        ]
        return [graph.cycles.bound(around, "") for graph, around in zip(graphs, loops_of, strict=True)]

    def _numbers(self, lanes: Mapping[str, int]) -> LaneNumbers:
        return tuple(lanes[index] for index in self.template.indices)

    # The graphs ----------------------------------------------------------------------------------------------------------------

    def _graphs_of(self, candidates: Sequence[Mapping[str, int]], machine: Machine) -> dict[LaneNumbers, _LaneGraph]:
        """Return the graph of each candidate on a machine, by its numbers of lanes. The graphs of the last calls are kept."""
        if machine.rules == "comal":
            raise Uncountable
        if self._graphs is None or self._graphs[0] is not machine or len(self._graphs[1]) > MOST_KEPT:
            self._graphs = machine, {}
        kept = self._graphs[1]
        missing = tuple(numbers for numbers in dict.fromkeys(map(self._numbers, candidates)) if numbers not in kept)
        if missing:
            kept |= zip(missing, self._made(LaneBatch(self.template.indices, missing), machine), strict=True)
        return kept

    def _made(self, batch: LaneBatch, machine: Machine) -> list[_LaneGraph]:
        """Return the graph of each candidate of a batch."""
        streams = self.nodes.streams(batch)
        nodes = self.nodes.numbers(batch, streams, machine)
        ports = DealtPorts(self.template, self.serial.counts.array_bytes).of(batch, streams, machine)
        by_candidate = [_apart(node, batch) for node in nodes]
        return [self._graph([node[at] for node in by_candidate], own, machine) for at, own in enumerate(ports)]

    def _graph(self, nodes: Sequence[NodeNumbers], ports: Sequence[ArrayLoad], machine: Machine) -> _LaneGraph:
        """Return the graph of a candidate with the cycles of its stages and its load of the memory."""
        pipeline, pace = self._pipeline(nodes), memory_pace(machine)
        timings = self.nodes.timings(machine)
        latency = [timing.latency + pace.latency * stage.answers for timing, stage in zip(timings, pipeline.stages, strict=True)]
        occupied = [node.occupied for node in nodes]
        bound = self.serial.on(machine).bound
        imbalance = bound.imbalance / bound.compute * max(occupied) if bound.compute else 0
        counts = self.serial.counts
        parts = {
            each.node.tensor: replace(lane_part(each.node, counts.graph.declared[each.node.tensor]), lanes=int(own.lanes))
            for each, own in zip(self.template.nodes, nodes, strict=True)
            if isinstance(each.node, n.WriteLaneValues)
        }
        load = MemoryLoad.of_lanes(ports, counts.array_bytes, lines_written(counts, pace.line, parts), pace)
        return _LaneGraph(nodes, GraphCycles(machine, pipeline, latency, occupied, load, imbalance, True))

    def _pipeline(self, nodes: Sequence[NodeNumbers]) -> Pipeline:
        stages = tuple(map(_stage, self.template.nodes, nodes, self._answers))
        fifos = tuple([Fifo(source, at, k, nodes[at].tokens[k]) for source, at, k in self._ways])
        if self._behind is None:  # it is the same for all candidates
            self._behind = stages_behind(stages, fifos, self._merges)
        return Pipeline(stages, tuple(range(len(stages))), fifos, self._merges, self._behind)

    @cached_property
    def _answers(self) -> list[int]:
        declared = self.template.graph.declared
        return [memory_answers(each.node, declared) for each in self.template.nodes]

    @cached_property
    def _ways(self) -> list[tuple[int, int, int]]:
        """The FIFOs of the first lane, which stand for all: the numbers of the nodes at both ends, and the input."""
        places = self.template.places
        return [
            (places[port.node], at, k)
            for at, each in enumerate(self.template.nodes)
            for k, port in enumerate(each.node.inputs)
            if port.node in places and (k == 0 or not isinstance(each.node, n.Merge))
        ]

    @cached_property
    def _merges(self) -> frozenset[int]:
        return frozenset(at for at, each in enumerate(self.template.nodes) if isinstance(each.node, n.Merge))

    def _slots(self, machine: Machine, depth: int | None) -> Slots:
        """Return the slots of each FIFO: the stated depth, or else the depth of the machine."""
        if depth is not None:
            return (float(depth),) * len(self._ways)
        first = inf if machine.first_depth is None else float(machine.first_depth)
        merged = inf if machine.fifo_depth == "auto" else first
        return tuple(merged if at in self._merges else first for _, at, _ in self._ways)

    # What is held --------------------------------------------------------------------------------------------------------------

    def _held(self, each: TemplateNode, lanes: Mapping[str, int]) -> int:
        """Return the most entries that a node holds at once, added up over its lanes; 0 for a node that holds none."""
        counts = self.serial.counts
        serial = counts.graph.by_name.get(each.serial)
        if not isinstance(each.node, n.Workspace | n.Locate) or not isinstance(serial, n.Workspace | n.Locate):
            return 0
        in_one, number = self._held_in_one, self.template.lanes(each, lanes)
        if isinstance(serial, n.Locate):
            return in_one[each.serial].most * number if each.serial in in_one else 0
        if each.folded:
            return in_one[each.serial].most * number
        collected = collected_stream(serial, counts)
        if collected is None or collected.nest is None:
            raise Uncountable
        if not each.indices or (isinstance(serial, n.Select) and serial.every):
            return in_one[each.serial].most * number
        outer = counts.graph.types()[serial.inputs[0]].depth - 1
        dealt = self.nodes.dealt(serial.inputs[0], each.indices, [lanes[index] for index in each.indices])
        return int(dealt_largest(self.serial.memo, collected.nest, outer, dealt).sum())

    @cached_property
    def _held_in_one(self) -> Mapping[str, HeldEntries]:
        """The most entries that each node holds at once on one lane."""
        return held_entries(self.serial.counts)


def _stage(each: TemplateNode, numbers: NodeNumbers, answers: int) -> Stage:
    turns = LaneTurns(numbers.turning, numbers.turns) if np.any(numbers.turns) else None
    return Stage(each.node, numbers.lanes, numbers.batches, numbers.emitted, answers, numbers.elements, turns)


def _together(graphs: Sequence[Sequence[NodeNumbers]]) -> list[NodeNumbers]:
    """Return the numbers of each node with an array over the graphs where these differ."""
    together = []
    for nodes in zip(*graphs, strict=True):
        tokens, *own = zip(*nodes, strict=True)
        together.append(NodeNumbers(tuple(map(_number, zip(*tokens, strict=True))), *map(_number, own)))
    return together


def _number(numbers: Sequence[Number]) -> Number:
    """Return several numbers as one, which is an array if they differ."""
    return numbers[0] if len({*numbers}) == 1 else as_number(np.array(numbers))


def _by_graph(matrix: Matrix) -> Matrix:
    """Return a matrix with the graphs on the first axis, given one that has them on the last."""
    return np.ascontiguousarray(np.moveaxis(matrix, -1, 0))


def _apart(numbers: NodeNumbers, batch: LaneBatch) -> list[NodeNumbers]:
    """Return the numbers of a node as one `NodeNumbers` for each candidate."""
    tokens, *own = numbers
    by_input = list(zip(*map(batch.each, tokens), strict=True)) if tokens else [()] * len(batch.candidates)
    return [NodeNumbers(*one) for one in zip(by_input, *map(batch.each, own), strict=True)]
