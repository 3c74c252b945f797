"""The parts of a circuit: modules of nodes, channels, units of arithmetic, and memories. Equal parts are counted together."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal, TypeAlias

from fuseflow.errors import HardwareError
from fuseflow.hardware.axi_ports import memory_ports, port_instance
from fuseflow.hardware.circuit import FIFO, HOP, REGISTERS, Channel, Circuit, is_on_chip
from fuseflow.hardware.circuit_files import library_closure
from fuseflow.hardware.emit import emit_units, module_body
from fuseflow.hardware.live_bits import kept_bits
from fuseflow.hardware.rtl_simulators import CHANNEL_MEMORY, library_text
from fuseflow.hardware.top import instance_name, require_bounds
from fuseflow.memory.settings import TimedMemory

PartKind: TypeAlias = Literal["primitive", "fifo", "unit", "port", "memory"]
"""The kind of a part: the control of a node, a FIFO, a unit of arithmetic, a port at the memory, or a memory on the chip."""

MEMORY = CHANNEL_MEMORY.removesuffix(".sv")
_INSTANCE = re.compile(r'hw\.instance "[^"]*" @(\w+)(?:<([^>]*)>)?\(')
_PARAMETER = re.compile(r"(\w+): i32 = (\d+)")


@dataclass(frozen=True, slots=True)
class Part:
    """A module, with its parameters. `name` is for people, such as `scan` or `64 x 34`. The module of a node is identified by its
    `body`, its text in MLIR; any other is the module `module` of a file in the folder `sv`."""

    kind: PartKind
    name: str
    module: str = ""
    parameters: tuple[tuple[str, int], ...] = ()
    body: str = ""

    @property
    def values(self) -> Mapping[str, int]:
        return dict(self.parameters)

    @property
    def files(self) -> tuple[str, ...]:
        """The files of the folder `sv` that define the part, or for the module of a node, the files of the modules inside it."""
        if self.kind == "primitive":
            return tuple(sorted({file for part, _ in instances(self.body) for file in part.files}))
        return tuple(library_closure([self.module]))


def instances(body: str) -> Iterator[tuple[Part, int]]:
    """Yield the units and memories that have instances in a module's text (`body`), each with the number of instances."""
    counts = Counter((match[1], match[2] or "") for match in _INSTANCE.finditer(body))
    for (module, text), count in counts.items():
        parameters = tuple((name, int(value)) for name, value in _PARAMETER.findall(text))
        values = dict(parameters)
        if module.startswith("ff_memory"):
            yield Part("memory", f"{values['N']} x {values['W']}", module, parameters), count
        else:
            widths = f" {values['W']}" if values else ""
            yield Part("unit", module.removeprefix("ff_") + widths, module, parameters), count


@dataclass(frozen=True, slots=True, eq=False)
class CircuitParts:
    """The parts of a circuit, with the number of each, by the node to which they belong. A channel belongs to its reader.
    `modules` maps the text of each node's module to its name in the SystemVerilog of the circuit."""

    circuit: Circuit
    by_node: Mapping[str, Counter[Part]]
    modules: Mapping[str, str]

    @classmethod
    def of(cls, circuit: Circuit) -> CircuitParts:
        """Return the parts of a circuit. Raises `HardwareError` if a FIFO has no bound, or if the circuit has a scratchpad."""
        require_bounds(circuit)
        _refuse_scratchpads(circuit)
        by_node: dict[str, Counter[Part]] = {}
        modules: dict[str, str] = {}
        units, _ = emit_units(circuit)
        for unit, emitted in zip(circuit.units, units, strict=True):
            body = module_body(emitted.netlist)
            modules[body] = emitted.module
            own = by_node.setdefault(unit.node.name, Counter())
            own[Part("primitive", unit.node.op, body=body)] += 1
            for part, count in instances(body):
                own[part] += count
        kept = kept_bits(circuit, {unit.node: unit.netlist for unit in units})
        for channel in circuit.channels:
            by_node[channel.reader].update(_fifos(channel, kept[channel].bit_count()))
        memory = circuit.machine.memory
        for port in memory_ports(circuit, [instance_name(unit.node.name) for unit in circuit.units]):
            assert isinstance(memory, TimedMemory), "a memory that answers at once has no ports"
            by_node[port.node][_port(port_instance(port, memory))] += 1
        return cls(circuit, by_node, modules)

    @property
    def total(self) -> Counter[Part]:
        """All parts of the circuit with their numbers, in the order of their first node."""
        total: Counter[Part] = Counter()
        for parts in self.by_node.values():
            total.update(parts)
        return total


def _refuse_scratchpads(circuit: Circuit) -> None:
    placed = next((unit.node for unit in circuit.units if unit.module.ports and is_on_chip(unit.node, circuit.graph)), None)
    if placed is not None:
        raise HardwareError(
            f"graph `{circuit.graph.name}`: node `{placed.name}` uses the scratchpad, whose area is not modelled",
            hint="leave the place out of the schedule: the rest of the circuit is the same but for its ports",
        )


def _fifos(channel: Channel, width: int) -> Iterator[Part]:
    """Yield the parts of a channel for tokens of `width` bits: each FIFO and, if it is deep, a memory for its words, and the registers
    of hops without slots."""
    for fifo in channel.fifos:
        latency = f", latency {fifo.latency}" if fifo.latency > 1 else ""
        name = f"hop x {width}" if fifo == HOP else f"{fifo.depth} x {width}{latency}"
        yield Part("fifo", name, fifo.module, tuple(fifo.parameters(width).items()))
        if fifo != HOP and fifo.depth is not None and fifo.depth > shallow_slots(fifo.module):
            yield Part("memory", f"{fifo.depth} x {width}", MEMORY, (("W", width), ("N", fifo.depth)))
    if channel.registers:
        values = channel.register_parameters(width)
        yield Part("fifo", f"{channel.registers} registers x {width}", REGISTERS, tuple(values.items()))


@cache
def shallow_slots(module: str = FIFO) -> int:
    """Return the most tokens that the FIFO `module` keeps in flip-flops, from its SystemVerilog. A deeper one has a memory."""
    depth = re.search(r"SHALLOW = (\d+);", library_text(f"{module}.sv"))
    assert depth is not None
    return int(depth[1])


def _port(instance: str) -> Part:
    """Return the part of a port, from the MLIR text of its instance. Ports that differ only in their number are the same part."""
    match = _INSTANCE.search(instance)
    assert match is not None and match[2] is not None, "a port is an instance with parameters"
    values = {name: int(value) for name, value in _PARAMETER.findall(match[2])}
    return Part("port", f"{values['K']} without an answer", match[1], tuple((values | {"P": 0}).items()))
