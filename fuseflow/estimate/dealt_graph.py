"""A graph in lanes by arithmetic: the firings, cycles and resources of every node in every lane, from the lists counted on one lane.

Many candidates are computed at once, as arrays of the numbers of all their lanes. The cycles of each are then added up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from fuseflow.estimate.batches import as_number
from fuseflow.estimate.bound import Bound
from fuseflow.estimate.counted.memo import Uncountable
from fuseflow.estimate.dealt_flows import dealt_largest
from fuseflow.estimate.dealt_nodes import DealtNodes, NodeNumbers
from fuseflow.estimate.dealt_ports import DealtPorts
from fuseflow.estimate.dealt_resources import DealtResources
from fuseflow.estimate.fifo_loops import BusyLoops, Fifo, LongestWays, Matrix
from fuseflow.estimate.flows import Number
from fuseflow.estimate.graph_bounds import GraphBounds, lines_ahead, lines_written
from fuseflow.estimate.graph_cycles import GraphCycles
from fuseflow.estimate.held_entries import collected_stream, held_entries
from fuseflow.estimate.lane_batch import LaneBatch
from fuseflow.estimate.lane_template import LaneTemplate, TemplateNode
from fuseflow.estimate.lane_turns import LaneTurns
from fuseflow.estimate.memory_bound import memory_answers, memory_latency, request_bytes
from fuseflow.estimate.memory_load import LanePorts, MemoryLoad
from fuseflow.estimate.pipeline import Pipeline, Stage, stages_behind
from fuseflow.machine.machine import Machine
from fuseflow.memory.settings import Hbm2Memory
from fuseflow.resources import HeldEntries, Resources
from fuseflow.samml import nodes as n
from fuseflow.samml.lane_writers import lane_part
from fuseflow.transform.stream_levels import Levels

MOST_KEPT = 256
"""For how many candidates (numbers of lanes of each index) the graphs are kept, to be used again with other depths of FIFOs."""

LaneNumbers: TypeAlias = tuple[int, ...]
"""The number of lanes of each dealt index."""
Slots: TypeAlias = tuple[float, ...]
"""The number of slots of each FIFO."""
MOST_NUMBERS = 1 << 19
"""The most numbers in a matrix that has one for each pair of nodes of each of many graphs."""


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


@dataclass(slots=True, eq=False)
class DealtGraph:
    """A graph whose indices are dealt to lanes, for any number of lanes. `serial` is the graph on one lane, counted. `levels` has
    the indices at each level of its streams."""

    template: LaneTemplate
    serial: GraphBounds
    levels: Mapping[n.Port, Levels]
    nodes: DealtNodes
    ports: DealtPorts
    resources: DealtResources
    _kept: dict[Any, Any] = field(default_factory=dict)
    _graphs: tuple[Machine, dict[LaneNumbers, _LaneGraph]] | None = None

    @classmethod
    def of(cls, template: LaneTemplate, serial: GraphBounds, levels: Mapping[n.Port, Levels]) -> DealtGraph:
        nodes, ports = DealtNodes(template, serial, levels), DealtPorts(template, serial.counts.array_bytes)
        return cls(template, serial, levels, nodes, ports, DealtResources(template))

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
        """Return the bounds of graphs, given the slots of the FIFOs of each."""
        loops = self._loops(graphs, slots, machine)
        return [graph.cycles.bound(around, "") for graph, around in zip(graphs, loops, strict=True)]

    def _loops(self, graphs: Sequence[_LaneGraph], slots: Sequence[Slots], machine: Machine) -> Sequence[BusyLoops | None]:
        """Return the loops of FIFOs of graphs, which are computed together; None for a graph whose FIFOs are never full."""
        several = list({id(graph): graph for graph in graphs}.values())
        place = {id(graph): at for at, graph in enumerate(several)}
        nodes = _together([graph.nodes for graph in several])
        loops = self._pipeline(nodes).loops(*lines_ahead(machine), many=(len(several),))
        occupied = [node.occupied for node in nodes]
        ways = loops.longest(several[0].cycles.loaded_latency, loops.work(occupied), occupied)
        longest = LongestWays(*map(_by_graph, (ways.latency, ways.batches, ways.drained)))
        bounded = {own for own in slots if any(room < inf for room in own)}
        busy = {own: BusyLoops.of(_by_graph(loops.shares(own)), longest) for own in bounded}
        return [busy[own].of_graph(place[id(graph)]) if own in busy else None for own, graph in zip(slots, graphs, strict=True)]

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
        missing = {self._numbers(lanes): lanes for lanes in candidates}
        missing = {numbers: lanes for numbers, lanes in missing.items() if numbers not in kept}
        if missing:
            kept |= zip(missing, self._made(LaneBatch.of(self.template.indices, tuple(missing.values())), machine), strict=True)
        return kept

    def _made(self, batch: LaneBatch, machine: Machine) -> list[_LaneGraph]:
        """Return the graph of each candidate of a batch."""
        streams = self.nodes.streams(batch)
        nodes = self.nodes.numbers(batch, streams, machine)
        ports = self.ports.of(batch, streams, machine)
        by_candidate = [_apart(node, batch) for node in nodes]
        return [self._graph([node[at] for node in by_candidate], own, machine) for at, own in enumerate(ports)]

    def _graph(self, nodes: Sequence[NodeNumbers], ports: Sequence[LanePorts], machine: Machine) -> _LaneGraph:
        """Return the graph of a candidate with the cycles of its stages and its load of the memory."""
        pipeline, answer = self._pipeline(nodes), memory_latency(machine.memory)
        timings = self.nodes.timings(machine)
        latency = [timing.latency + answer * stage.answers for timing, stage in zip(timings, pipeline.stages, strict=True)]
        occupied = [node.occupied for node in nodes]
        bound = self.serial.on(machine).bound
        imbalance = bound.imbalance / bound.compute * max(occupied) if bound.compute else 0
        graph = GraphCycles(machine, pipeline, latency, occupied, self._load(nodes, ports, machine), imbalance, True)
        return _LaneGraph(nodes, graph)

    def _pipeline(self, nodes: Sequence[NodeNumbers]) -> Pipeline:
        stages = tuple(map(_stage, self.template.nodes, nodes, self._once("answers", self._answers)))
        ways = self._once("ways", self._ways)
        fifos = tuple([Fifo(source, at, k, nodes[at].tokens[k]) for source, at, k in ways])
        merges = self._once("merges", self._merges)
        behind = self._once("behind", lambda: stages_behind(stages, fifos, merges))
        return Pipeline(stages, self._once("numbers", lambda: tuple(range(len(stages)))), fifos, merges, behind)

    def _answers(self) -> list[int]:
        declared = self.template.graph.declared
        return [memory_answers(each.node, declared) for each in self.template.nodes]

    def _ways(self) -> list[tuple[int, int, int]]:
        """Return the FIFOs of the first lane: the numbers of the nodes at both ends, and the input. Other lanes have the same
        FIFOs."""
        places = self.template.places
        return [
            (places[port.node], at, k)
            for at, each in enumerate(self.template.nodes)
            for k, port in enumerate(each.node.inputs)
            if port.node in places and (k == 0 or not isinstance(each.node, n.Merge))
        ]

    def _merges(self) -> frozenset[int]:
        return frozenset(at for at, each in enumerate(self.template.nodes) if isinstance(each.node, n.Merge))

    def _slots(self, machine: Machine, depth: int | None) -> Slots:
        """Return the slots of each FIFO: the stated depth, or else the depth of the machine."""
        ways = self._once("ways", self._ways)
        if depth is not None:
            return (float(depth),) * len(ways)
        first = inf if machine.first_depth is None else float(machine.first_depth)
        merges, merged = self._once("merges", self._merges), inf if machine.fifo_depth == "auto" else first
        return tuple(merged if at in merges else first for _, at, _ in ways)

    def _load(self, nodes: Sequence[NodeNumbers], ports: Sequence[LanePorts], machine: Machine) -> MemoryLoad:
        counts, memory = self.serial.counts, machine.memory
        line = request_bytes(memory)
        channels = memory.channels if isinstance(memory, Hbm2Memory) else 1
        parts = {
            each.node.tensor: replace(lane_part(each.node, counts.graph.declared[each.node.tensor]), lanes=int(own.lanes))
            for each, own in zip(self.template.nodes, nodes, strict=True)
            if isinstance(each.node, n.WriteLaneValues)
        }
        written = lines_written(counts, line, parts)
        return MemoryLoad.of_lanes(ports, counts.array_bytes, written, line, channels)

    # What is held --------------------------------------------------------------------------------------------------------------

    def _held(self, each: TemplateNode, lanes: Mapping[str, int]) -> int:
        """Return the most entries that a node holds at once, added up over its lanes; 0 for a node that holds none."""
        counts = self.serial.counts
        serial = counts.graph.by_name.get(each.serial)
        if not isinstance(each.node, n.Workspace | n.Locate) or not isinstance(serial, n.Workspace | n.Locate):
            return 0
        in_one: Mapping[str, HeldEntries] = self._once("held", lambda: held_entries(counts))
        number = self.template.lanes(each, lanes)
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

    def _once(self, key: Any, compute: Any) -> Any:
        """Return a value that is computed once for all candidates."""
        if key not in self._kept:
            self._kept[key] = compute()
        return self._kept[key]


def _stage(each: TemplateNode, numbers: NodeNumbers, answers: int) -> Stage:
    turns = LaneTurns(numbers.turning, numbers.turns) if _is_there(numbers.turns) else None
    return Stage(each.node, numbers.lanes, numbers.batches, numbers.emitted, answers, numbers.elements, turns)


def _is_there(number: Number) -> bool:
    """Return whether a number, or any number of an array, is not 0."""
    return bool(number.any()) if isinstance(number, np.ndarray) else number > 0


def _together(graphs: Sequence[Sequence[NodeNumbers]]) -> list[NodeNumbers]:
    """Return the numbers of each node with an array over the graphs where these differ."""
    return [_mapped(several, _number) for several in zip(*graphs, strict=True)]


def _mapped(nodes: Sequence[NodeNumbers], join: Callable[[Sequence[Number]], Number]) -> NodeNumbers:
    """Return the numbers of one node of several graphs, each combined by `join` into one number."""
    tokens, *own = zip(*nodes, strict=True)
    return NodeNumbers(tuple(join(one) for one in zip(*tokens, strict=True)), *map(join, own))


def _number(numbers: Sequence[Number]) -> Number:
    """Return several numbers as one, which is an array if they differ."""
    return numbers[0] if len({*numbers}) == 1 else as_number(np.array(numbers))


def _by_graph(matrix: Matrix) -> Matrix:
    """Return a matrix with the graphs on the first axis, given one that has them on the last."""
    return np.ascontiguousarray(np.moveaxis(matrix, -1, 0))


def _apart(numbers: NodeNumbers, batch: LaneBatch) -> list[NodeNumbers]:
    """Return the numbers of a node as one `NodeNumbers` for each candidate."""
    own: list[Number] = list(numbers[1:])
    tokens = [batch.each(number) for number in numbers.tokens]
    by_input: Sequence[tuple[Number, ...]] = list(zip(*tokens, strict=True)) if tokens else [()] * len(batch.candidates)
    columns = zip(*(batch.each(number) for number in own), strict=True)
    return [NodeNumbers(one, *each) for each, one in zip(columns, by_input, strict=True)]
