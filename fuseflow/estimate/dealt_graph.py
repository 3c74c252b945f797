"""A graph in lanes by arithmetic: the firings, cycles and resources of every node in every lane, from the lists counted on one lane."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, prod
from typing import Any, NamedTuple

import numpy as np

from fuseflow.estimate.batches import as_number
from fuseflow.estimate.counted.memo import Uncountable
from fuseflow.estimate.dealt_flows import DealtLevel, busiest, dealt_counts, dealt_flow, dealt_largest, in_all, most
from fuseflow.estimate.fifo_loops import Fifo
from fuseflow.estimate.flows import Flow, Number
from fuseflow.estimate.graph_bounds import GraphBounds, lines_written
from fuseflow.estimate.graph_cycles import BusyLoops, GraphCycles
from fuseflow.estimate.graph_work import process_cycles
from fuseflow.estimate.held_entries import collected_stream, held_entries
from fuseflow.estimate.lane_template import DealtStream, LaneTemplate, TemplateNode
from fuseflow.estimate.lane_turns import LaneTurns, merged_rows, row_fork
from fuseflow.estimate.memory_bound import memory_answers, memory_latency, request_bytes
from fuseflow.estimate.memory_load import LanePorts, MemoryLoad
from fuseflow.estimate.node_work import firings
from fuseflow.estimate.pipeline import Pipeline, Stage, stages_behind
from fuseflow.estimate.port_lines import Addresses, ReaderNode, buffered, node_lines, preloaded
from fuseflow.resources import Resources
from fuseflow.resources.area import AreaCount, FifoForm, branches, memory_area
from fuseflow.resources.graph_resources import HeldEntries
from fuseflow.resources.resource_count import ResourceCount, token_bytes
from fuseflow.resources.units import unit_kind
from fuseflow.samml import nodes as n
from fuseflow.samml.nodes import Edge
from fuseflow.sim.machine.machine import Machine
from fuseflow.sim.machine.timing import node_timing
from fuseflow.sim.memory.buffered_ports import PortName, buffered_ports
from fuseflow.sim.memory.settings import Hbm2Memory, IdealMemory, TimedMemory
from fuseflow.tensors.levels.base import bytes_of
from fuseflow.transform.stream_levels import Levels


class LaneEstimate(NamedTuple):
    """The expected cycles of a graph in lanes, its firings and its resources."""

    cycles: float
    firings: float
    resources: Resources


class _NodeLanes(NamedTuple):
    """What a node does: its firings in all lanes, and in the busiest lane its cycles, and the numbers of its stage and its FIFOs."""

    firings: int
    occupied: Number
    stage: Stage
    tokens: tuple[Number, ...]
    latency: int
    ports: tuple[LanePorts, ...]
    held: int


@dataclass(slots=True, eq=False)
class DealtGraph:
    """A graph in lanes of some indices, whatever their number. `levels` are those of the streams of the graph on one lane."""

    template: LaneTemplate
    serial: GraphBounds
    levels: Mapping[n.Port, Levels]
    _kept: dict[Any, Any] = field(default_factory=dict)
    _indices: list[tuple[str, ...]] = field(default_factory=list)
    _machine: Machine | None = None
    _of_machine: dict[Any, _NodeLanes] = field(default_factory=dict)
    _units: dict[str, _Unit] = field(default_factory=dict)

    def cost(self, lanes: Mapping[str, int], machine: Machine, depths: Mapping[Edge, int]) -> LaneEstimate:
        """Return the estimate with so many lanes of each index. Raises `Uncountable` if the counts on one lane do not say it."""
        nodes = self._nodes(lanes, machine)
        graph = self._graph(nodes, machine)
        slots = self._slots(graph.pipeline, machine, depths)
        cycles = graph.bound(machine, lambda: self._loops(graph, slots, machine), "").cycles
        return LaneEstimate(cycles, sum(node.firings for node in nodes), self._resources(nodes, lanes, slots, machine))

    def cycles(self, lanes: Mapping[str, int], machine: Machine, depth: int | None) -> float:
        """Return the cycles of the estimate alone, with FIFOs of so many slots, or those of the machine. Raises `Uncountable`."""
        graph = self._graph(self._nodes(lanes, machine), machine)
        fifos = graph.pipeline.fifos
        slots = self._slots(graph.pipeline, machine, {}) if depth is None else (float(depth),) * len(fifos)
        return graph.bound(machine, lambda: self._loops(graph, slots, machine), "").cycles

    def _graph(self, nodes: Sequence[_NodeLanes], machine: Machine) -> GraphCycles:
        """Return the graph with the cycles of its stages and what it asks of the memory."""
        answer = memory_latency(machine.memory)
        latency = [node.latency + answer * node.stage.answers for node in nodes]
        occupied = [node.occupied for node in nodes]
        bound = self.serial.on(machine).bound
        imbalance = bound.imbalance / bound.compute * max(occupied) if bound.compute else 0
        return GraphCycles(self._pipeline(nodes), latency, occupied, self._load(nodes, machine), imbalance)

    # The nodes -----------------------------------------------------------------------------------------------------------------

    def _nodes(self, lanes: Mapping[str, int], machine: Machine) -> list[_NodeLanes]:
        """Return what each node does in so many lanes."""
        if machine.rules == "comal":
            raise Uncountable
        kept = self._nodes_on(machine)
        return [self._node(at, lanes, machine, kept) for at in range(len(self.template.nodes))]

    def _nodes_on(self, machine: Machine) -> dict[Any, _NodeLanes]:
        """Return what is known of nodes on a machine, by their place and the lanes that matter to them."""
        if self._machine is not machine:
            self._machine, self._of_machine, self._units = machine, {}, {}
        return self._of_machine

    def _node(self, at: int, lanes: Mapping[str, int], machine: Machine, kept: dict[Any, _NodeLanes]) -> _NodeLanes:
        key = (at, *[lanes[index] for index in self._relevant(at)])
        if key not in kept:
            kept[key] = self._counted(at, self.template.nodes[at], lanes, machine)
        return kept[key]

    def _relevant(self, at: int) -> tuple[str, ...]:
        """Return the indices whose lanes matter to a node."""
        if not self._indices:
            for each in self.template.nodes:
                streams = {index for stream in (*each.inputs, *each.outputs) for index in stream.indices}
                self._indices.append(
                    tuple(index for index in self.template.indices if index in {*each.indices, *streams, each.folded})
                )
        return self._indices[at]

    def _counted(self, at: int, each: TemplateNode, lanes: Mapping[str, int], machine: Machine) -> _NodeLanes:
        node, declared = each.node, self.template.graph.declared
        around = each.indices
        inputs = tuple(self._flow(stream, around, lanes) for stream in each.inputs)
        outputs = tuple(self._flow(stream, around, lanes) for stream in each.outputs)
        shape = tuple(lanes[index] for index in around)
        tiles = self.template.graph.types()
        tiles_read = tuple(tiles[p].tile for p in node.inputs if tiles[p].kind == "val")
        timing = node_timing(node, self.template.graph, machine, tiles_read)
        processes = firings(node, declared, inputs, outputs, self._steps(each, inputs, lanes), machine)
        alike = self.template.lanes(each, lanes) // prod(shape)
        total = alike * sum(in_all(shape, values + closings) for values, closings in processes)
        intervals = (timing.interval, timing.emission)
        occupied = max(most(process_cycles(node, *process, machine)) for process in zip(processes, intervals, strict=False))
        stage = Stage(
            node,
            self.template.lanes(each, lanes),
            max(1, most(inputs[0].inner)) if node.holds_back else 0,
            most(outputs[-1].tokens) if isinstance(node, n.Workspace) else 0,
            memory_answers(node, declared),
            most(outputs[0].tokens) if outputs else 0,
            self._turns(each, inputs, lanes),
        )
        tokens = tuple(most(flow.tokens) for flow in inputs)
        held = self._held(each, lanes) if isinstance(node, n.Workspace | n.Locate) else 0
        return _NodeLanes(
            total, occupied, stage, tokens, timing.latency, self._ports(at, each, inputs, outputs, lanes, machine), held
        )

    def _turns(self, each: TemplateNode, inputs: Sequence[Flow], lanes: Mapping[str, int]) -> LaneTurns | None:
        """Return the turns of the lanes whose rows a node deals or merges, those of the lane that has most."""
        if fork := row_fork(each.node, self.template.graph.by_name):
            dealt = self.template.nodes[self._places()[fork.name]].lanes_of
            return LaneTurns(lanes[dealt], most(inputs[1].elements))
        rows = merged_rows(each.node, inputs)
        return LaneTurns(lanes[each.lanes_of], most(rows)) if np.any(rows) else None

    def _flow(self, stream: DealtStream, around: Sequence[str], lanes: Mapping[str, int]) -> Flow:
        """Return the flow of a stream in the lanes of the indices `around` it. An array of it has an axis for each of them."""
        counts = self.serial.counts
        whole = counts.flows[stream.port]
        if not stream.indices:
            return whole
        key = ("flow", stream, tuple(lanes[index] for index in stream.indices), tuple(around))
        if key not in self._kept:
            flow = dealt_flow(self.serial.memo, counts.streams[stream.port], self._dealt(stream.port, stream.indices, lanes))
            axes = [lanes[index] if index in stream.indices else 1 for index in (around or stream.indices)]
            extra = [lanes[index] for index in stream.indices if index not in around]
            shape = (*(axes if around else ()), *extra)

            def shaped(numbers: Number) -> Number:
                return as_number(np.asarray(numbers).reshape(shape))

            read: Number = 0
            producer = self.template.graph.by_name.get(stream.port.node) or counts.graph.by_name[stream.port.node]
            if whole.read:
                if isinstance(producer, n.Scan) and whole.read == whole.elements:
                    read = shaped(flow.elements)
                elif isinstance(producer, n.Locate):
                    read = whole.read
                else:
                    raise Uncountable
            self._kept[key] = Flow(
                tuple(map(shaped, flow.lists)), tuple(map(shaped, flow.filled)), shaped(flow.elements), shaped(flow.absent), read
            )
        kept: Flow = self._kept[key]
        return kept

    def _dealt(self, port: n.Port, indices: Sequence[str], lanes: Mapping[str, int]) -> tuple[DealtLevel, ...]:
        """Return the levels of a stream of the graph on one lane that are dealt, the outermost first."""
        levels = self.levels[port]
        dealt = []
        for index in indices:
            at = next((k for k, names in enumerate(levels) if index in names), None)
            if at is None:
                raise Uncountable
            dealt.append(DealtLevel(at, lanes[index]))
        if dealt != sorted(dealt):
            raise Uncountable
        return tuple(dealt)

    def _steps(self, each: TemplateNode, inputs: Sequence[Flow], lanes: Mapping[str, int]) -> Number:
        """Return the comparisons of a node that merges, in every lane."""
        if not each.serial and isinstance(each.node, n.Align | n.Join):
            return inputs[0].elements
        comparisons = self.serial.counts.comparisons.get(each.serial)
        if comparisons is None:
            return 0
        if not each.indices:
            return comparisons.total
        dealt = self._dealt(each.inputs[0].port, each.indices, lanes)
        if comparisons.nest is None or dealt[-1].level >= comparisons.nest.depth:
            raise Uncountable
        return as_number(dealt_counts(self.serial.memo, comparisons, dealt).reshape([lanes[index] for index in each.indices]))

    def _held(self, each: TemplateNode, lanes: Mapping[str, int]) -> int:
        """Return the most entries that a node holds at once, added up over its lanes."""
        counts = self.serial.counts
        serial = counts.graph.by_name.get(each.serial)
        if isinstance(serial, n.Locate):
            kept = self._serial_held().get(each.serial)
            return kept.most * self.template.lanes(each, lanes) if kept else 0
        if not isinstance(serial, n.Workspace):
            return 0
        if each.folded:
            return self._serial_held()[each.serial].most * self.template.lanes(each, lanes)
        collected = collected_stream(serial, counts)
        if collected is None or collected.nest is None:
            raise Uncountable
        if not each.indices or (isinstance(serial, n.Select) and serial.every):
            return self._serial_held()[each.serial].most * self.template.lanes(each, lanes)
        outer = counts.graph.types()[serial.inputs[0]].depth - 1
        dealt = self._dealt(serial.inputs[0], each.indices, lanes)
        return int(dealt_largest(self.serial.memo, collected.nest, outer, dealt).sum())

    def _serial_held(self) -> Mapping[str, HeldEntries]:
        if "held" not in self._kept:
            self._kept["held"] = held_entries(self.serial.counts)
        held: Mapping[str, HeldEntries] = self._kept["held"]
        return held

    # The graph -----------------------------------------------------------------------------------------------------------------

    def _places(self) -> Mapping[str, int]:
        if "places" not in self._kept:
            self._kept["places"] = {each.node.name: at for at, each in enumerate(self.template.nodes)}
        places: Mapping[str, int] = self._kept["places"]
        return places

    def _pipeline(self, nodes: Sequence[_NodeLanes]) -> Pipeline:
        if "ways" not in self._kept:
            places = self._places()
            self._kept["ways"] = tuple(
                (places[port.node], at, k)
                for at, each in enumerate(self.template.nodes)
                for k, port in enumerate(each.node.inputs)
                if port.node in places and (k == 0 or not isinstance(each.node, n.Merge))
            )  # what another lane gives is the same
            merges = frozenset(at for at, each in enumerate(self.template.nodes) if isinstance(each.node, n.Merge))
            empty = [Fifo(source, at, k, 0) for source, at, k in self._kept["ways"]]
            self._kept["behind"] = merges, stages_behind([node.stage for node in nodes], empty, merges)
        stages = tuple(node.stage for node in nodes)
        fifos = tuple(Fifo(source, at, k, nodes[at].tokens[k]) for source, at, k in self._kept["ways"])
        return Pipeline(stages, tuple(range(len(stages))), fifos, *self._kept["behind"])

    def _slots(self, pipeline: Pipeline, machine: Machine, depths: Mapping[Edge, int]) -> tuple[float, ...]:
        first = inf if machine.first_depth is None else float(machine.first_depth)
        merged = inf if machine.fifo_depth == "auto" else first
        return tuple(
            float(
                depths.get(
                    Edge(self.template.nodes[fifo.target].serial, fifo.input), merged if fifo.target in pipeline.merges else first
                )
            )
            for fifo in pipeline.fifos
        )

    def _loops(self, graph: GraphCycles, slots: Sequence[float], machine: Machine) -> BusyLoops | None:
        if all(room == inf for room in slots):
            return None
        memory = machine.memory
        ahead = (0, 64) if isinstance(memory, IdealMemory) else (memory.outstanding, memory.line)
        loops = graph.pipeline.loops(*ahead)
        return BusyLoops(loops, loops.shares(slots), loops.work(graph.occupied))

    # The memory ----------------------------------------------------------------------------------------------------------------

    def _ports(
        self,
        at: int,
        each: TemplateNode,
        inputs: Sequence[Flow],
        outputs: Sequence[Flow],
        lanes: Mapping[str, int],
        machine: Machine,
    ) -> tuple[LanePorts, ...]:
        """Return what the ports of a node request in all lanes: as much more than the busiest one as all its elements are more."""
        node, graph = each.node, self.template.graph
        if not isinstance(node, ReaderNode) or graph.declared[node.tensor].resident:
            return ()
        number = self.template.lanes(each, lanes)
        flows = _BusiestFlows(self, lanes)
        of_first = {t.node.name: lanes[t.lanes_of] for t in self.template.nodes if isinstance(t.node, n.Fork)}
        first = self.template.first
        forks = {name: of_first[first[name]] for name in first if first[name] in of_first}
        addresses = Addresses(graph, flows, forks)
        shape = tuple(lanes[index] for index in each.indices)
        times = min(in_all(shape, flow.elements) / max(1, most(flow.elements)) for flow in inputs)
        in_busiest = [busiest(flow) for flow in inputs], [busiest(flow) for flow in outputs]
        line, array_bytes, buffers = request_bytes(machine.memory), self.serial.counts.array_bytes, self._buffers(machine)
        ports = node_lines(node, addresses, *in_busiest, flows, line)
        if graph.declared[node.tensor].preload:
            ports = (preloaded(port, number, array_bytes, line) for port in ports)
            return tuple(LanePorts(at, port, number, port.lines * number, port.lines, port.jumps * number) for port in ports)
        if buffers:
            ports = (buffered(port, node, addresses, in_busiest[0][0], flows, line, array_bytes, buffers) for port in ports)
        return tuple(LanePorts(at, port, number, port.lines * times, port.lines, port.jumps * times, port.hits) for port in ports)

    def _buffers(self, machine: Machine) -> Mapping[PortName, int]:
        """Return the lines of the reuse buffer of each port of the template."""
        memory = machine.memory
        return buffered_ports(self.template.graph, memory.line) if isinstance(memory, TimedMemory) else {}

    def _load(self, nodes: Sequence[_NodeLanes], machine: Machine) -> MemoryLoad:
        counts, memory = self.serial.counts, machine.memory
        ports = [port for node in nodes for port in node.ports]
        written = lines_written(counts, request_bytes(memory))
        channels = memory.channels if isinstance(memory, Hbm2Memory) else 1
        return MemoryLoad.of_lanes(ports, counts.array_bytes, written, request_bytes(memory), channels)

    # Resources -----------------------------------------------------------------------------------------------------------------

    def _resources(
        self, nodes: Sequence[_NodeLanes], lanes: Mapping[str, int], slots: Sequence[float], machine: Machine
    ) -> Resources:
        count = AreaCount(ResourceCount(self.template.graph, machine))
        totals, ports, stream, area = Counter[str](), 0, 0, 0
        workspace, buffer, fifo, at_fifo = 0, 0, 0.0, 0
        for each, node in zip(self.template.nodes, nodes, strict=True):
            fixed = self._unit(count, each.node)
            number = node.stage.lanes
            for name, amount in fixed.lanes.items():
                totals[name] += amount * number
            stream += fixed.stream * number
            ports += fixed.ports * number
            workspace += fixed.entry_bytes * node.held
            buffer += fixed.buffer * number
            area += (fixed.area + fixed.branch_area * (lanes[each.lanes_of] if each.lanes_of else fixed.branches)) * number
            if isinstance(each.node, n.Merge):
                depth, number = machine.first_depth or 0, number * lanes[each.lanes_of]
                fifo += depth * fixed.tokens[0] * number
                area += fixed.fifos[0].area(depth) * number
                at_fifo += 1
                continue
            for width, own in zip(fixed.tokens, fixed.fifos, strict=True):
                fifo += slots[at_fifo] * width * number
                area += own.area(int(slots[at_fifo])) * number if machine.first_depth is not None else 0
                at_fifo += 1
        bytes_ = None if machine.first_depth is None else int(fifo)
        grows = machine.fifo_depth == "auto"
        lanes_of = totals["mul"], totals["add"], totals["special"]
        total = None if machine.first_depth is None else area + memory_area(workspace + buffer)
        return Resources(*lanes_of, ports, stream, bytes_, workspace, buffer, area=total, fifo_grows=grows)

    def _unit(self, areas: AreaCount, node: n.Primitive) -> _Unit:
        """Return what a node occupies in one lane, on the machine of the last call."""
        if node.name not in self._units:
            count = areas.count
            own, bits = count.lanes(node), count.entry_bits(node)
            self._units[node.name] = _Unit(
                own,
                unit_kind(node) != "none" and not own,
                count.ports(node),
                count.node_buffers.get(node.name, 0),
                count.buffers(node) * bytes_of(1, bits) if bits else 0,
                tuple(token_bytes(self.template.graph, port) for port in node.inputs),
                areas.node(node) - areas.branch(node) * branches(node),
                areas.branch(node),
                branches(node),
                tuple(areas.fifo_form(node, k) for k in range(len(node.inputs))),
            )
        return self._units[node.name]


class _Unit(NamedTuple):
    """What a node occupies in one lane; `tokens` are the bytes of a slot at each input, and `fifos` the forms of the FIFOs there. The area
    of a node that deals lanes grows with them, by `branch_area`; of another node it has its own `branches`."""

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


@dataclass(frozen=True, slots=True, eq=False)
class _BusiestFlows(Mapping[n.Port, Flow]):
    """The flows of the streams of a template, each in its busiest lane."""

    graph: DealtGraph
    lanes: Mapping[str, int]

    def __getitem__(self, port: n.Port) -> Flow:
        template = self.graph.template
        at = self.graph._places().get(template.first[port.node])
        if at is None:
            raise Uncountable
        each = template.nodes[at]
        return busiest(self.graph._flow(each.outputs[port.output], each.indices, self.lanes))

    def __iter__(self) -> Any:
        return (n.Port(each.node.name, k) for each in self.graph.template.nodes for k in range(len(each.outputs)))

    def __len__(self) -> int:
        return sum(len(each.outputs) for each in self.graph.template.nodes)


__all__ = ["DealtGraph", "LaneEstimate"]
