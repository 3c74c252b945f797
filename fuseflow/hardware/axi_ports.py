"""The ports of a circuit at the memory: one for each array of a node, in the shape of the channels AR and R, or AW and B, of AXI.

Each is an instance of `ff_port`, which counts requests and answers. An id is the number of the port, and in the lower bits a tag
that counts the port's requests. A port has at most `outstanding` unanswered requests, which have different tags.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import TypeAlias

from fuseflow.errors import HardwareError
from fuseflow.firing_rules.expressions import count_bits
from fuseflow.firing_rules.rules import KIND_BITS
from fuseflow.hardware.circuit import Circuit, is_on_chip, port_memory
from fuseflow.memory.memory_interface import TRANSFER_PORTS
from fuseflow.memory.settings import TimedMemory

Wire: TypeAlias = tuple[str, int]
"""A wire and its bits."""
PORT_BITS = 10
"""The bits of an id that hold the number of a port."""
ADDRESS_BITS = 40
"""The width of the address of a byte."""
_INTEGER = '!hw.int<#hw.param.decl.ref<"{}">>'
_ID = '!hw.int<#hw.param.expr.add<#hw.param.decl.ref<"I">, #hw.param.decl.ref<"T">>>'
PORT_MODULE = (
    "hw.module.extern @ff_port<W: i32, N: i32, K: i32, T: i32, P: i32, S: i32, A: i32, I: i32>(in %clk : !seq.clock, in %rst : i1, "
    f"in %request_valid : i1, in %request_data : {_INTEGER.format('N')}, in %base : {_INTEGER.format('A')}, in %ready : i1, "
    f"in %answer_valid : i1, in %answer_id : {_ID}, out request_ready : i1, out answers : {_INTEGER.format('W')}, out valid : i1, "
    f"out address : {_INTEGER.format('A')}, out id : {_ID})"
)


@dataclass(frozen=True, slots=True)
class MemoryTopPort:
    """A port of a top module at the memory, for the array `kind` of a node. `tag`, `answers` and `lines` are the widths of a tag,
    of the count of answers, and of the number of a line. `line` is the bytes of a request. The names of its wires begin with `name`.
    The memory of a port `on_chip` is the scratchpad of the circuit. A port that stores results from there has no node."""

    name: str
    node: str
    kind: str
    number: int
    write: bool
    answers: int
    lines: int
    tag: int
    line: int
    on_chip: bool = False

    @property
    def id(self) -> int:
        """The width of an id."""
        return PORT_BITS + self.tag

    def _wire(self, read: str, write: str) -> str:
        return f"{self.name}_{write if self.write else read}"

    @property
    def stores(self) -> bool:
        """Whether the port stores results from the scratchpad."""
        return not self.node

    @property
    def given(self) -> dict[str, tuple[str, int]]:
        """The names and widths of the wires at the inputs of `ff_port` from the memory, by the names of the ports of `ff_port`."""
        return {
            "base": (f"{self.name}_base", ADDRESS_BITS),
            "ready": (self._wire("arready", "awready"), 1),
            "answer_valid": (self._wire("rvalid", "bvalid"), 1),
            "answer_id": (self._wire("rid", "bid"), self.id),
        }

    @property
    def inputs(self) -> dict[str, tuple[str, int]]:
        """Those of the wires `given` that are inputs of the top module."""
        inner = {"ready", "answer_valid", "answer_id"} if self.on_chip else {"base"} if self.stores else set()
        return {pin: wire for pin, wire in self.given.items() if pin not in inner}

    @property
    def outputs(self) -> dict[str, tuple[str, int]]:
        """The names and widths of the wires to the memory, by the names of the ports of `ff_port`. They are outputs of the top module
        unless the port is one of the scratchpad."""
        return {
            "valid": (self._wire("arvalid", "awvalid"), 1),
            "address": (self._wire("araddr", "awaddr"), ADDRESS_BITS),
            "id": (self._wire("arid", "awid"), self.id),
        }


def memory_ports(circuit: Circuit, instances: Iterable[str]) -> list[MemoryTopPort]:
    """Return the ports of a circuit in the order of their numbers. `instances` are the names of the units' instances. Raises
    `HardwareError` if there are more ports than ids can number."""
    ports, numbers = list[MemoryTopPort](), count()
    for unit, instance in zip(circuit.units, instances, strict=True):
        for kind, port in unit.module.ports.items():
            memory = port_memory(unit.node, circuit.graph, circuit.machine)
            assert memory is not None
            tag, lines = count_bits(memory.outstanding), unit.module.outputs[port.request]
            name, on_chip = f"{instance}_{kind}", is_on_chip(unit.node, circuit.graph)
            widths = port.answers, lines, tag, memory.line
            ports.append(MemoryTopPort(name, unit.node.name, kind, next(numbers), port.write, *widths, on_chip))
    for k in range(TRANSFER_PORTS if circuit.stored else 0):
        tag, line = count_bits(circuit.memory.outstanding), circuit.memory.line
        lines = ADDRESS_BITS - line.bit_length() + 1
        ports.append(MemoryTopPort(f"stored{k}", "", f"stored{k}", next(numbers), True, tag + 1, lines, tag, line))
    if len(ports) > 1 << PORT_BITS:
        raise HardwareError(
            f"graph `{circuit.graph.name}` has {len(ports):,} ports at the memory, and the ids of a circuit name {1 << PORT_BITS}",
            hint="fuse fewer statements in one region, or use fewer lanes; `cosimulate --tool python` runs any number",
        )
    return ports


def port_instance(port: MemoryTopPort, memory: TimedMemory) -> str:
    """Return the line of MLIR with the instance of a port. The wires of the node are `NAME_request_valid`, `NAME_request_data`,
    `NAME_request_room` and `NAME_answers`."""
    name, width = port.name, port.lines + KIND_BITS
    shift = port.line.bit_length() - 1
    parameters = {
        "W": port.answers, "N": width, "K": memory.outstanding, "T": port.tag, "P": port.number, "S": shift, "A": ADDRESS_BITS,
        "I": PORT_BITS,
    }  # fmt: skip
    ins = {"request_valid": (f"%{name}_request_valid", 1), "request_data": (f"%{name}_request_data", width)}
    ins |= {pin: (f"%{wire}", bits) for pin, (wire, bits) in port.given.items()} | (
        {"ready": ("%yes", 1)} if port.on_chip else {}
    )
    outs = {"request_ready": (f"%{name}_request_room", 1), "answers": (f"%{name}_answers", port.answers)}
    outs |= {pin: (f"%{wire}", bits) for pin, (wire, bits) in port.outputs.items()}
    return instance(f"p_{name.removeprefix('n_')}", "ff_port", parameters, ins, outs)


def instance(name: str, module: str, parameters: Mapping[str, int], ins: Mapping[str, Wire], outs: Mapping[str, Wire]) -> str:
    """Return the line of MLIR with an instance of a clocked module, given the wires at its inputs and outputs."""
    given = ["clk: %clk: !seq.clock", "rst: %rst: i1", *(f"{pin}: {wire}: i{width}" for pin, (wire, width) in ins.items())]
    made = ", ".join(f"{pin}: i{width}" for pin, (_, width) in outs.items())
    listed = ", ".join(f"{key}: i32 = {value}" for key, value in parameters.items())
    wires = ", ".join(wire for wire, _ in outs.values())
    return f'  {wires} = hw.instance "{name}" @{module}<{listed}>({", ".join(given)}) -> ({made})'


def joined(name: str, pieces: Sequence[Wire]) -> str:
    """Return the line of MLIR that joins pieces into the word `name`. The first piece is the lowest."""
    names, types = ", ".join(piece for piece, _ in reversed(pieces)), ", ".join(f"i{width}" for _, width in reversed(pieces))
    return f"  {name} = comb.concat {names} : {types}"
