"""The circuit of a graph: a module for each node, and a channel from each output to each of its readers.

A channel is a FIFO with a latency. A token is visible `latency` cycles after the firing that emitted it, and takes a slot from
that firing until the cycle in which the reader takes the token. A channel with hops has a FIFO for each of them in front, or registers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from fuseflow.errors import HardwareError
from fuseflow.firing_rules.rules import MOST_LEVELS, Module
from fuseflow.hardware.arithmetic import ARITHMETICS, Arithmetic
from fuseflow.hardware.node_context import NodeContext
from fuseflow.hardware.primitives import RULES
from fuseflow.hardware.primitives.remote_lookup import REMOTE_RULES, asks
from fuseflow.machine.machine import Machine
from fuseflow.machine.timing import edge_fifo, node_timing, require_slots_behind_hops
from fuseflow.memory.buffer_assignment import buffered_ports, early_readers, preloaded_readers, sequential_readers
from fuseflow.memory.layout import ArrayName, stored_arrays, used_tensors
from fuseflow.memory.memory_interface import MOVED
from fuseflow.memory.settings import TimedMemory
from fuseflow.samml import nodes as n
from fuseflow.samml.graph import index_bits, stream_bounds
from fuseflow.sim.precision import refuse_wide_floats

MOST_TILE_BITS = 1 << 17
"""The most bits of a tile. Verilator takes no wider constants."""


@dataclass(frozen=True, slots=True, eq=False)
class Unit:
    """A node in a circuit: its rules, and the latency of its outputs."""

    node: n.Node
    module: Module
    latency: int


@dataclass(frozen=True, slots=True)
class Fifo:
    """A FIFO of a channel: its SystemVerilog module, slots (None without bound), and the cycles until a token is visible."""

    module: str
    depth: int | None
    latency: int = 1

    def parameters(self, width: int) -> dict[str, int]:
        """Return the parameters of the module for tokens of `width` bits."""
        assert self.depth is not None, "all FIFOs have a bound"
        return {"W": width} if self.module == HOP.module else {"W": width, "D": self.depth, "L": self.latency}


FIFO, TILE_FIFO, REGISTERS = "ff_channel", "ff_tile_channel", "ff_registers"
HOP = Fifo("ff_hop", 2)
"""A hop of two slots."""
NO_HOPS = n.Hops(0)


@dataclass(frozen=True, slots=True)
class Channel:
    """A channel from an output of a node to an input of one. `depth` has the slots at the reader, None for a FIFO without bound. `edge`
    is None inside a node. With `in_place`, tokens are in their slots already during the latency: tiles, and tokens that are computed
    after their firing."""

    writer: str
    output: str
    reader: str
    input: str
    depth: int | None
    latency: int
    edge: n.Edge | None
    in_place: bool = False
    hops: n.Hops = NO_HOPS

    @property
    def registers(self) -> int:
        """The hops without slots: the registers that a token passes without a stop, and a free slot on its way back."""
        return 0 if self.hops.slots else self.hops.count

    def register_parameters(self, width: int) -> dict[str, int]:
        """Return the parameters of these registers for tokens of `width` bits."""
        assert self.depth is not None, "all FIFOs have a bound"
        return {"W": width, "D": self.depth, "H": self.registers}

    @property
    def fifos(self) -> tuple[Fifo, ...]:
        """The FIFOs that a token passes: one for each hop of two slots, and that at the reader. The first has the latency, and as a hop
        a slot more for each of its cycles after the first."""
        module = TILE_FIFO if self.in_place else FIFO
        if not self.hops.count or self.registers:
            return (Fifo(module, self.depth, self.latency),)
        first = HOP if self.latency == 1 and not self.in_place else Fifo(module, self.latency + 1, self.latency)
        return (first, *(HOP,) * (self.hops.count - 1), Fifo(module, self.depth))


@dataclass(frozen=True, slots=True, eq=False)
class Circuit:
    """The units of a graph on a machine, in graph order, and the channels between them. `arithmetic` encodes numbers as words,
    and coordinates and references have `index` bits."""

    graph: n.Graph
    machine: Machine
    units: tuple[Unit, ...]
    channels: tuple[Channel, ...]
    arithmetic: Arithmetic
    index: int

    @property
    def memory(self) -> TimedMemory:
        """The memory of a circuit that has ports at it."""
        assert isinstance(self.machine.memory, TimedMemory)
        return self.machine.memory

    @property
    def stored(self) -> tuple[ArrayName, ...]:
        """The arrays that are stored from the scratchpad to the memory when the run has ended."""
        return stored_arrays(self.graph) if isinstance(self.machine.memory, TimedMemory) else ()

    def bounded(self, depths: Mapping[n.Edge, int], links: Mapping[str, int]) -> Circuit:
        """Return the circuit with `depths` for its unbounded channels, by edge, and `links` for those inside nodes, by node."""

        def depth(channel: Channel) -> int | None:
            if channel.depth is not None:
                return channel.depth
            return links.get(channel.writer) if channel.edge is None else depths.get(channel.edge)

        return replace(self, channels=tuple(replace(channel, depth=depth(channel)) for channel in self.channels))


def channel_modules(channels: Sequence[Channel]) -> tuple[str, ...]:
    """Return the SystemVerilog modules of channels, each once. There is always one."""
    modules = [fifo.module for channel in channels for fifo in channel.fifos]
    modules += [REGISTERS for channel in channels if channel.registers]
    return tuple(dict.fromkeys(modules))


def circuit_machine(machine: Machine) -> Machine:
    """Return the machine on which a circuit is built. All units of a circuit compute in floats of one width, so where the
    arithmetic follows the element types, that is the largest width."""
    return machine.model_copy(update={"arithmetic": "f64"}) if machine.arithmetic == "element" else machine


def build_circuit(graph: n.Graph, machine: Machine) -> Circuit:
    """Return the circuit of a verified graph on a machine. Raises `HardwareError` if the graph or the machine has no circuit."""
    machine = circuit_machine(machine)
    if machine.rules == "comal":
        raise HardwareError(
            f"machine `{machine.name}` has `rules: comal`, the times of a simulator that is no model of hardware",
            hint="take a machine with `rules: dataflow`, such as `ideal`",
        )
    require_slots_behind_hops(graph, machine)
    types, bounds, readers = graph.types(), stream_bounds(graph), graph.readers()
    deepest = max(types, key=lambda port: types[port].depth)
    if types[deepest].depth > MOST_LEVELS:
        raise HardwareError(
            f"graph `{graph.name}`: stream `{n.stream_name(graph.by_name[deepest.node], deepest.output)}` is {types[deepest].depth} levels "
            f"deep; the stops of a circuit have {MOST_LEVELS}",
            hint="fuse fewer statements in one region, or merge loops",
        )
    index, arithmetic = index_bits(graph, bounds), ARITHMETICS["f32" if machine.arithmetic == "f32" else "f64"]
    _refuse_wide_tiles(graph, arithmetic.width)
    _refuse_buffers(graph, machine)
    refuse_wide_floats(graph, machine)
    units, channels = [], []
    depths, hops, in_order = dict(graph.depths), dict(graph.hops), sequential_readers(graph)
    early = early_readers(graph)
    moves = transfers(graph) if isinstance(machine.memory, TimedMemory) else ()
    turns = dict(graph.turns)
    for node in graph.nodes:
        inputs = [types[port] for port in node.inputs]
        timing = node_timing(node, graph, machine, [type_.tile for type_ in inputs])
        context = NodeContext(
            node,
            tuple(inputs),
            tuple(bounds[port] for port in node.inputs),
            graph.declared,
            index,
            arithmetic,
            timing,
            machine.handover_depth,
            port_memory(node, graph, machine),
            node.name in in_order,
            node.name in early,
            moves if isinstance(node, n.Root) else (),
            machine.scratchpad,
        )
        unit = Unit(node, _module(context), timing.latency)
        unit.module.port_turn = turns.get(node.name)
        units.append(unit)
        for k, port in enumerate(node.ports):
            in_place = bool(types[port].tile) or f"out{k}" in unit.module.late
            for edge in readers.get(port, ()):
                its_hops = hops.get(edge, NO_HOPS)
                fifo = edge_fifo(graph.by_name[edge.node], depths.get(edge), its_hops, timing.latency, machine)
                depth = fifo.depth if its_hops.count and its_hops.slots else fifo.slots
                channels.append(
                    Channel(node.name, f"out{k}", edge.node, f"in{edge.input}", depth, timing.latency, edge, in_place, its_hops)
                )
        for link in unit.module.links:
            channels.append(Channel(node.name, link.output, node.name, link.input, link.depth, link.latency, None))
    return Circuit(graph, machine, tuple(units), tuple(channels), arithmetic, index)


def port_memory(node: n.Node, graph: n.Graph, machine: Machine) -> TimedMemory | None:
    """Return the memory that the ports of a node ask, None if it answers at once. At the scratchpad a line is a word."""
    if not isinstance(machine.memory, TimedMemory):
        return None
    if machine.scratchpad is None or not is_on_chip(node, graph):
        return machine.memory
    return machine.memory.model_copy(update={"line": machine.scratchpad.bytes_a_cycle})


def is_on_chip(node: n.Node, graph: n.Graph) -> bool:
    """Return whether a node reads or writes a tensor that lies in the scratchpad."""
    return isinstance(node, n.TensorUser) and bool(graph.declared[node.tensor].scratchpad)


def transfers(graph: n.Graph) -> tuple[n.Transfer, ...]:
    """Return the moves of a graph's inputs between scratchpad and memory while it runs, in the order of their ports."""
    ways = {graph.declared[name].scratchpad for name in used_tensors(graph) if name in graph.inputs}
    return tuple(way for way in MOVED.values() if way in ways)


def _refuse_wide_tiles(graph: n.Graph, bits: int) -> None:
    """Raise `HardwareError` if a tile of the graph, with elements of `bits` bits, has more bits than tools take in a vector."""
    for port, type_ in graph.types().items():
        if bits * prod(type_.tile) > MOST_TILE_BITS:
            name = n.stream_name(graph.by_name[port.node], port.output)
            raise HardwareError(
                f"graph `{graph.name}`: stream `{name}` carries tiles of {n.show_tile(type_.tile)}, and in a circuit a tile has at most "
                f"{MOST_TILE_BITS // bits:,} elements of {bits} bits",
                hint="compile with smaller blocks",
            )


def _refuse_buffers(graph: n.Graph, machine: Machine) -> None:
    """Raise `HardwareError` if a port of the graph has a reuse buffer, or a tensor is preloaded, which no circuit has."""
    if not isinstance(machine.memory, TimedMemory):
        return
    for node, (tensor, _, _) in buffered_ports(graph, machine.memory.line):
        raise HardwareError(
            f"graph `{graph.name}`: node `{node}` reads `{tensor}` through a reuse buffer, and the ports of a circuit have none",
            hint="leave the buffer out of the schedule, or simulate the graph with `fuseflow run`",
        )
    for name in preloaded_readers(graph):
        raise HardwareError(
            f"graph `{graph.name}`: node `{name}` reads a tensor that is preloaded, and the ports of a circuit do not do that",
            hint="leave the preload out of the schedule, or simulate the graph with `fuseflow run`",
        )


def _module(context: NodeContext) -> Module:
    """Return the module of a node, with its firing rules. Raises `HardwareError` if its primitive has no rules for circuits."""
    node = context.node
    build = (REMOTE_RULES if asks(node, context) else RULES).get(type(node))
    if build is None:
        raise context.refused("has no circuit", "a `select` compares all entries of a fiber: keep the simulator for its region")
    module = Module(node.op, context.timing.interval, context.timing.pause)
    build(node, context, module)
    return module
