"""Modules and circuits as MLIR text in the dialects hw, comb and seq of CIRCT. This needs nothing installed.

Nodes with equal rules share a module. The top module has a port for each array that is read and each tensor that is written, so a
circuit holds no data. FIFOs, memories and arithmetic are modules of SystemVerilog, in the folder `sv`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fuseflow.firing_rules.expressions import Expr, count_bits
from fuseflow.firing_rules.rules import Memory
from fuseflow.hardware.arithmetic import INTEGER_UNITS
from fuseflow.hardware.circuit import Circuit
from fuseflow.hardware.rule_netlist import ANSWERS, Netlist, WritePort, expressions, netlist

PLAIN = {"and", "or", "xor", "add", "sub", "mul", "divu", "modu", "shl", "shru"}
COMPARED = {"eq", "ne", "ult", "ule"}
OPERANDS = "abc"
"""The names of the operands of units."""


@dataclass(frozen=True, slots=True, eq=False)
class EmittedUnit:
    """The module of a node in a printed circuit: names of both, and the module's netlist."""

    node: str
    module: str
    netlist: Netlist


def plain_name(name: str) -> str:
    """Return a name with only letters, digits and `_`, for use in names of SystemVerilog.

    >>> plain_name("layer1.a/b")
    'layer1_a_b'
    """
    return "".join(c if c.isascii() and c.isalnum() else "_" for c in name)


def top_name(circuit: Circuit) -> str:
    return f"ff_{plain_name(circuit.graph.name)}"


def emit_units(circuit: Circuit) -> tuple[list[EmittedUnit], dict[str, str]]:
    """Return the module of each node, and the text of each module by its name."""
    names: dict[str, str] = {}  # by the text of the module after its name
    units = []
    for unit in circuit.units:
        parts = netlist(unit.module)
        body = module_body(parts)
        if body not in names:
            names[body] = f"{top_name(circuit)}_{unit.node.op}_{len(names)}"
        units.append(EmittedUnit(unit.node.name, names[body], parts))
    return units, {name: f"hw.module private @{name}{body}" for body, name in names.items()}


def module_body(parts: Netlist) -> str:
    """Return the MLIR text of a module after its name: its ports and operations."""
    block = Block()
    results = [(name, block.value(expr), expr.width) for name, expr in parts.outputs.items()]
    states = [(name, block.value(state)) for name, (_, state) in parts.registers.items()]
    reads = parts.reads()
    for name, (memory, port) in parts.memories.items():
        block.memory(name, memory, port, reads.get(name, []))
    for name, value in states:
        register, _ = parts.registers[name]
        block.line(f"%{name}_start = hw.constant {signed(register.initial, register.width)} : i{register.width}")
        block.line(f"%{name} = seq.compreg {value}, %clk reset %rst, %{name}_start : i{register.width}")
    ports = [*(["in %clk : !seq.clock", "in %rst : i1"] if parts.clocked else [])]
    ports += [f"in %{name} : i{width}" for name, width in parts.inputs]
    ports += [f"out {name} : i{width}" for name, _, width in results]
    lines = [*block.lines, output_line([(value, width) for _, value, width in results])]
    return f"({', '.join(ports)}) {{\n" + "".join(f"  {line}\n" for line in lines) + "}\n"


def output_line(values: Sequence[tuple[str, int]]) -> str:
    """Return the operation that sets the outputs of a module to SSA values, given with their bits. There may be none."""
    if not values:
        return "hw.output"
    return f"hw.output {', '.join(value for value, _ in values)} : {', '.join(f'i{width}' for _, width in values)}"


def signed(value: int, width: int) -> str:
    """Return a constant as MLIR prints it: as a signed number.

    >>> signed(3, 2), signed(1, 1)
    ('-1', 'true')
    """
    if width == 1:
        return "true" if value else "false"
    return str(value - (1 << width) if value >> width - 1 else value)


class Block:
    """The operations of a module as lines of MLIR. Equal expressions become one operation."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.names: dict[str, str] = {}
        self.known: dict[int, str] = {}
        self.memories: dict[str, list[str]] = {}  # the addresses of the read ports of each memory

    def line(self, text: str) -> None:
        self.lines.append(text)

    def value(self, expr: Expr) -> str:
        """Return the SSA value of an expression, after the operations that compute it are added."""
        if id(expr) not in self.known:
            self.known[id(expr)] = self._value(expr, [self.value(arg) for arg in expr.args])
        return self.known[id(expr)]

    def _value(self, expr: Expr, args: list[str]) -> str:
        match expr.op:
            case "token" | "array":
                return f"%{expr.name}_data"
            case "port" | "register":
                return f"%{expr.name}"
            case "answers":
                return f"%{expr.name}_{ANSWERS}"
            case "memory":
                return self._read(expr, args[0])
            case "wire":
                self.line(f'%{expr.name} = hw.wire {args[0]} sym @{expr.name} name "{expr.name}" : i1')
                return f"%{expr.name}"
        text = _operation(expr, args)
        if text not in self.names:
            self.names[text] = name = f"%v{len(self.names)}"
            self.line(f"{name} = {text}".replace("INSTANCE", f"u{len(self.names)}"))
        return self.names[text]

    def _read(self, expr: Expr, address: str) -> str:
        addresses = self.memories.setdefault(expr.name, [])
        if address not in addresses:
            addresses.append(address)
        return f"%{expr.name}_read{addresses.index(address)}"

    def memory(self, name: str, memory: Memory, port: WritePort, reads: list[Expr]) -> None:
        """Add the instance of a memory, with a read port for each different address in `reads`."""
        width, bits = memory.width, count_bits(memory.depth)
        written = [self.value(part) for part in (port.enable, port.address, port.data)]
        addresses = {self.value(read): read.args[0] for read in reads}
        results = list(addresses)
        ports = [
            "clk: %clk: !seq.clock",
            f"enable: {written[0]}: i1",
            f"address: {written[1]}: i{bits}",
            f"data: {written[2]}: i{width}",
        ]
        ports += [f"address{k}: {self.value(addresses[read].fit(bits))}: i{bits}" for k, read in enumerate(results)]
        given = ", ".join(f"read{k}: i{width}" for k in range(len(results)))
        kind = f"@ff_memory{len(results)}<W: i32 = {width}, A: i32 = {bits}, N: i32 = {memory.depth}>"
        self.line(f'{", ".join(results)} = hw.instance "{name}" {kind}({", ".join(ports)}) -> ({given})')


def _operation(expr: Expr, args: list[str]) -> str:
    width, joined = f"i{expr.width}", ", ".join(args)
    first = f"i{expr.args[0].width}" if expr.args else ""
    if expr.op in PLAIN:
        return f"comb.{expr.op} {joined} : {width}"
    if expr.op in COMPARED:
        return f"comb.icmp {expr.op} {joined} : {first}"
    match expr.op:
        case "const":
            value = signed(expr.number, expr.width)
            return f"hw.constant {value}" if expr.width == 1 else f"hw.constant {value} : {width}"
        case "mux":
            return f"comb.mux {joined} : {width}"
        case "extract":
            return f"comb.extract {args[0]} from {expr.number} : ({first}) -> {width}"
        case "concat":
            return f"comb.concat {joined} : {', '.join(f'i{arg.width}' for arg in expr.args)}"
        case "call":
            widths = f"<W: i32 = {expr.args[0].width}, A: i32 = {expr.width}>" if expr.name in INTEGER_UNITS else ""
            ports = ", ".join(f"{p}: {arg}: i{e.width}" for p, arg, e in zip(OPERANDS, args, expr.args, strict=False))
            return f'hw.instance "INSTANCE" @{expr.name}{widths}({ports}) -> (y: {width})'
        case _:
            raise ValueError(f"`{expr.op}` has no operation")


def called_units(netlists: Iterable[Netlist]) -> dict[str, Expr]:
    """Return the units that netlists call, sorted by name, each with one expression that calls it."""
    calls = {expr.name: expr for parts in netlists for expr in expressions(parts.roots()) if expr.op == "call"}
    return dict(sorted(calls.items()))
