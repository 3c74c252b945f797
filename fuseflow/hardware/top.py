"""The top module of a circuit: an instance of each node, a channel for each edge, and a port for each array and each written tensor."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from fuseflow.errors import HardwareError
from fuseflow.firing_rules.expressions import Expr
from fuseflow.firing_rules.rules import KIND_BITS, LOADED
from fuseflow.hardware.axi_ports import PORT_MODULE, MemoryTopPort, Wire, instance, joined, memory_ports, port_instance
from fuseflow.hardware.circuit import FIFO, HOP, REGISTERS, TILE_FIFO, Channel, Circuit, Fifo, channel_modules
from fuseflow.hardware.emit import OPERANDS, EmittedUnit, called_units, emit_units, output_line, plain_name, top_name
from fuseflow.hardware.live_bits import kept_bits, runs
from fuseflow.hardware.rule_netlist import ANSWERS, LATE
from fuseflow.hardware.scratchpad_top import ScratchpadTop, StoreTop, scratchpad_top, store_top
from fuseflow.memory.settings import TimedMemory
from fuseflow.primitives.write import WRITTEN

WORD = '!hw.int<#hw.param.decl.ref<"W">>'
ADDRESS = '!hw.int<#hw.param.decl.ref<"A">>'
CHANNEL = f"""hw.module.extern @ff_channel<W: i32, D: i32, L: i32>(in %clk : !seq.clock, in %rst : i1, in %in_valid : i1, in %in_data : {WORD}, out in_ready : i1, out out_valid : i1, out out_data : {WORD}, in %out_take : i1)"""  # noqa: E501
PINS = CHANNEL.partition("(")[2]
CHANNEL_MODULES = {
    FIFO: CHANNEL,
    TILE_FIFO: CHANNEL.replace(FIFO, TILE_FIFO).replace("out in_ready", "in %late : i1, out in_ready"),
    HOP.module: f"hw.module.extern @ff_hop<W: i32>({PINS}",
    REGISTERS: f"hw.module.extern @ff_registers<W: i32, D: i32, H: i32>(in %clk : !seq.clock, in %rst : i1, in %in_valid : i1, in %in_data : {WORD}, in %late : i1, out in_ready : i1, out out_valid : i1, out out_data : {WORD}, out out_late : i1, in %out_take : i1)",  # noqa: E501
}
"""The declarations of the modules of channels."""
OUTPUTS = "in_ready", "out_valid", "out_data", "out_late"
"""The outputs of these modules, in their order."""
MEMORY_PORTS = f"in %clk : !seq.clock, in %enable : i1, in %address : {ADDRESS}, in %data : {WORD}"
MOST_SLOTS = 1 << 16
"""The most slots of a FIFO."""
MOST_CHANNEL_HOPS = 1024
"""The most hops of a channel."""
MEMORY_READS = 2
"""The most ports at which a memory is read."""


@dataclass(frozen=True, slots=True)
class TopPort:
    """A port of the top module. `port` is its name; `node` and `name` identify the array, or the stream that is written."""

    port: str
    node: str
    name: str
    width: int


@dataclass(frozen=True, slots=True, eq=False)
class Top:
    """A printed circuit: its MLIR text, the modules of its nodes, and its ports. Each array has ports for an address and the
    data, and each written stream for whether there is a token, and for the token. `ports` are those at a memory that takes
    time, and at the scratchpad."""

    text: str
    name: str
    units: tuple[EmittedUnit, ...]
    addresses: tuple[TopPort, ...]
    arrays: tuple[TopPort, ...]
    written: tuple[TopPort, ...]
    ports: tuple[MemoryTopPort, ...]
    channels: tuple[Channel, ...]
    scratchpad: ScratchpadTop | None
    store: StoreTop | None

    @property
    def instances(self) -> dict[str, str]:
        """The name of the instance of each node."""
        return {unit.node: instance_name(unit.node) for unit in self.units}


def instance_name(node: str) -> str:
    return f"n_{plain_name(node)}"


def emit_circuit(circuit: Circuit) -> Top:
    """Return a circuit as MLIR text. Raises `HardwareError` if a FIFO has no bound, or two nodes have one name in SystemVerilog."""
    require_bounds(circuit)
    _require_names(circuit)
    units, modules = emit_units(circuit)
    wires = _Wires(circuit, units)
    calls = called_units(unit.netlist for unit in units)
    externs = [
        *(CHANNEL_MODULES[module] for module in channel_modules(circuit.channels)),
        *([PORT_MODULE] if wires.ports else []),
        *([wires.scratchpad.extern] if wires.scratchpad is not None else []),
        *(wires.store.externs if wires.store is not None else []),
        *(_memory_extern(k) for k in range(1, MEMORY_READS + 1)),
        *(_unit_extern(call) for call in calls.values()),
    ]
    ins = [*((p.port, p.width) for p in wires.arrays), *(pin for port in wires.ports for pin in port.inputs.values())]
    outs = [(p.port, p.width) for p in (*wires.addresses, *wires.written)]
    outs += [pin for port in wires.ports for pin in port.outputs.values() if not port.on_chip]
    if wires.scratchpad is not None:
        ins += [(f"scratchpad_{pin}", width) for pin, width in wires.scratchpad.inputs.items()]
        outs += [(f"scratchpad_{pin}", width) for pin, width in wires.scratchpad.outputs.items()]
    if wires.store is not None:
        ins += wires.store.inputs.items()
    ports = ["in %clk : !seq.clock", "in %rst : i1", *(f"in %{name} : i{width}" for name, width in ins)]
    ports += [f"out {name} : i{width}" for name, width in outs]
    lines = [
        f"hw.module @{top_name(circuit)}({', '.join(ports)}) {{",
        "  %yes = hw.constant true",
        "  %no = hw.constant false",
        *wires.lines,
        f"  {output_line([(f'%{name}', width) for name, width in outs])}",
        "}",
        "",
    ]
    text = "\n".join([*externs, *modules.values(), *lines])
    arrays = tuple(wires.addresses), tuple(wires.arrays), tuple(wires.written)
    return Top(
        text, top_name(circuit), tuple(units), *arrays, tuple(wires.ports), circuit.channels, wires.scratchpad, wires.store
    )


def require_bounds(circuit: Circuit) -> None:
    """Raise `HardwareError` if a FIFO of a circuit has no bound, or more than `MOST_SLOTS` slots, or a channel too many hops."""
    deepest = max(circuit.channels, key=lambda channel: channel.depth or 0, default=None)
    if deepest is not None and (deepest.depth or 0) > MOST_SLOTS:
        raise HardwareError(
            f"graph `{circuit.graph.name}`: a FIFO of `{deepest.reader}` has {deepest.depth:,} slots, and in SystemVerilog there are "
            f"{MOST_SLOTS:,} at most",
            hint="lower `memory.outstanding`, or the depths of FIFOs; `cosimulate --tool python` runs any depth",
        )
    farthest = max(circuit.channels, key=lambda channel: channel.hops.count, default=None)
    if farthest is not None and farthest.hops.count > MOST_CHANNEL_HOPS:
        raise HardwareError(
            f"graph `{circuit.graph.name}`: the channel to `{farthest.reader}` has {farthest.hops.count:,} hops, and in SystemVerilog "
            f"there are {MOST_CHANNEL_HOPS:,} at most",
            hint="`cosimulate --tool python` runs any number",
        )
    unbound = [channel for channel in circuit.channels if channel.depth is None]
    if unbound:
        channel = unbound[0]
        raise HardwareError(
            f"graph `{circuit.graph.name}`: the FIFO of input `{channel.input.removeprefix('in')}` of `{channel.reader}` has no bound on "
            "this machine, and a circuit needs one",
            hint="take a machine with `fifo_depth: 8`, or with `fifo_depth: auto`, or state depths in the schedule",
        )


def _require_names(circuit: Circuit) -> None:
    names: dict[str, str] = {}
    for node in circuit.graph.nodes:
        other = names.setdefault(instance_name(node.name), node.name)
        if other != node.name:
            raise HardwareError(f"nodes `{other}` and `{node.name}` have one name in SystemVerilog, `{instance_name(node.name)}`")


def _memory_extern(reads: int) -> str:
    ports = [f"in %address{k} : {ADDRESS}, out read{k} : {WORD}" for k in range(reads)]
    return f"hw.module.extern @ff_memory{reads}<W: i32, A: i32, N: i32>({', '.join([MEMORY_PORTS, *ports])})"


def _unit_extern(call: Expr) -> str:
    if call.name in ("ff_lowest", "ff_ones"):
        return f"hw.module.extern @{call.name}<W: i32, A: i32>(in %a : {WORD}, out y : {ADDRESS})"
    ports = ", ".join(f"in %{name} : i{arg.width}" for name, arg in zip(OPERANDS, call.args, strict=False))
    return f"hw.module.extern @{call.name}({ports}, out y : i{call.width})"


class _Wires:
    """The lines of the top module with the instances of nodes and channels, and the ports of the top module."""

    def __init__(self, circuit: Circuit, units: list[EmittedUnit]) -> None:
        self.circuit = circuit
        self.lines: list[str] = []
        self.addresses: list[TopPort] = []
        self.arrays: list[TopPort] = []
        self.written: list[TopPort] = []
        self.kept = kept_bits(circuit, {unit.node: unit.netlist for unit in units})
        self.widths = {(u.node.name, name): width + KIND_BITS for u in circuit.units for name, width in u.module.outputs.items()}
        self.late = {(u.node.name, out) for u in circuit.units for out in u.module.late}
        self.by_reader = {(channel.reader, channel.input): channel for channel in circuit.channels}
        self.by_writer: dict[tuple[str, str], list[Channel]] = {}
        for channel in circuit.channels:
            self.by_writer.setdefault((channel.writer, channel.output), []).append(channel)
        self.ports = memory_ports(circuit, [instance_name(unit.node) for unit in units])
        self.requests = {(port.node, f"{port.kind}_request"): port for port in self.ports}
        self.loaded = next((f"%{instance_name(unit.node)}_{LOADED}" for unit in units if LOADED in unit.netlist.outputs), "%yes")
        for unit in units:
            self.unit(unit)
        if isinstance(circuit.machine.memory, TimedMemory):
            self.lines += [port_instance(port, circuit.machine.memory) for port in self.ports]
        self.scratchpad = scratchpad_top(circuit, self.ports)
        self.store = store_top(circuit, self.ports, {unit.node: instance_name(unit.node) for unit in units})
        for part in (self.scratchpad, self.store):
            self.lines += [] if part is None else part.lines()

    def unit(self, unit: EmittedUnit) -> None:
        """Add the instance of a node, the channels at its inputs, and the ports of its arrays."""
        node, me = unit.node, instance_name(unit.node)
        outputs = {name: expr.width for name, expr in unit.netlist.outputs.items()}
        values = dict(self._inputs(unit))
        results = {name: f"%{me}_{name}" for name in outputs}
        for name in [name.removesuffix("_take") for name in outputs if name.endswith("_take")]:
            self.channel(self.by_reader[node, name])
        for name, width in outputs.items():
            if name.endswith("_address"):
                self.addresses.append(TopPort(f"{me}_{name}", node, name.removesuffix("_address"), width))
            elif name.startswith(f"{WRITTEN}_"):
                self.written.append(TopPort(f"{me}_{name}", node, name, width))
        given = ["clk: %clk: !seq.clock", "rst: %rst: i1"] if unit.netlist.clocked else []
        given += [f"{port}: {values[port]}: i{width}" for port, width in unit.netlist.inputs]
        made = ", ".join(f"{name}: i{width}" for name, width in outputs.items())
        self.lines.append(f'  {", ".join(results.values())} = hw.instance "{me}" @{unit.module}({", ".join(given)}) -> ({made})')

    def _inputs(self, unit: EmittedUnit) -> Iterator[tuple[str, str]]:
        """Yield each input port of the instance of a node, and the wire at it."""
        node, me = unit.node, instance_name(unit.node)
        for port, width in unit.netlist.inputs:
            name, _, end = port.rpartition("_")
            if (node, name) in self.requests:
                yield port, f"%{self.requests[node, name].name}_request_room"
            elif end == "ready":
                yield port, self._room(node, name)
            elif port == LOADED:
                yield port, self.loaded
            elif end == ANSWERS:
                yield port, f"%{me}_{port}"
            elif (node, name) in self.by_reader:
                yield port, f"%{me}_{name}_{'there' if end == 'valid' else 'token'}"
            else:
                self.arrays.append(TopPort(f"{me}_{port}", node, name, width))
                yield port, f"%{me}_{port}"

    def _room(self, node: str, output: str) -> str:
        """Return the wire that says whether all readers of an output have room."""
        rooms = [f"%{instance_name(channel.reader)}_{channel.input}_room" for channel in self.by_writer.get((node, output), ())]
        if len(rooms) < 2:
            return rooms[0] if rooms else "%yes"
        name = f"%{instance_name(node)}_{output}_rooms"
        self.lines.append(f"  {name} = comb.and {', '.join(rooms)} : i1")
        return name

    def channel(self, channel: Channel) -> None:
        """Add the FIFOs of a channel, one for each hop and one at the reader, or the registers before it."""
        writer, reader = instance_name(channel.writer), f"{instance_name(channel.reader)}_{channel.input}"
        kept, full = self.kept[channel], self.widths[channel.writer, channel.output]
        width, narrow, output = kept.bit_count(), kept != (1 << full) - 1, f"%{writer}_{channel.output}"
        data, token = f"{output}_data", f"%{reader}_{'kept' if narrow else 'token'}"
        if narrow:
            data = self._narrowed(data, f"%{reader}_put", kept, full)
        late = f"{output}_{LATE}" if (channel.writer, channel.output) in self.late else "%no"
        given, take = {"in_valid": (f"{output}_valid", 1), "in_data": (data, width), "late": (late, 1)}, (f"%{reader}_take", 1)
        me, room = f"c_{reader.removeprefix('n_')}", f"%{reader}_room"
        if channel.registers:
            passed = {"in_valid": (f"%{reader}_comes", 1), "in_data": (f"%{reader}_word", width), "late": (f"%{reader}_late", 1)}
            pins, made = {**given, "out_take": take}, [(room, 1), *passed.values()]
            self.lines.append(
                instance(
                    f"{me}_hops", REGISTERS, channel.register_parameters(width), pins, dict(zip(OUTPUTS, made, strict=False))
                )
            )
            given, room = passed, f"%{reader}_full"
        *hops, last = channel.fifos
        for k, fifo in enumerate(hops):
            hop = f"%{reader}_hop{k}"
            there, word, goes = (f"{hop}_there", 1), (f"{hop}_word", width), (f"{hop}_goes", 1)
            self._fifo(f"{me}_hop{k}", fifo, given, goes, [(room, 1), there, word])
            given, room = {"in_valid": goes, "in_data": word, "late": ("%no", 1)}, f"{hop}_room"
            self.lines.append(f"  {hop}_goes = comb.and {hop}_there, {room} : i1")
        self._fifo(me, last, given, take, [(room, 1), (f"%{reader}_there", 1), (token, width)])
        if narrow:
            self._widened(token, f"%{reader}_token", kept, full)

    def _fifo(self, name: str, fifo: Fifo, given: Mapping[str, Wire], take: Wire, made: Sequence[Wire]) -> None:
        """Add the instance of a FIFO, which gives whether it has room, whether it has a token, and the token."""
        pins = {pin: wire for pin, wire in given.items() if pin != "late" or fifo.module == TILE_FIFO}
        parameters = fifo.parameters(given["in_data"][1])
        self.lines.append(
            instance(name, fifo.module, parameters, {**pins, "out_take": take}, dict(zip(OUTPUTS, made, strict=False)))
        )

    def _narrowed(self, data: str, name: str, kept: int, full: int) -> str:
        """Add the bits `kept` of the token `data` of `full` bits as one word, for a channel. Return the name of that word."""
        pieces = [(low, length) for low, length, is_kept in runs(kept, full) if is_kept]
        for low, length in pieces:
            self.lines.append(f"  {name}{low} = comb.extract {data} from {low} : (i{full}) -> i{length}")
        self.lines.append(joined(name, [(f"{name}{low}", length) for low, length in pieces]))
        return name

    def _widened(self, token: str, name: str, kept: int, full: int) -> None:
        """Add the token `name` of `full` bits that a reader gets: the bits `kept` from a channel, and zeros."""
        at, pieces = 0, list[tuple[str, int]]()
        for low, length, is_kept in runs(kept, full):
            text = f"comb.extract {token} from {at} : (i{kept.bit_count()}) -> i{length}" if is_kept else zeros(length)
            self.lines.append(f"  {name}{low} = {text}")
            pieces.append((f"{name}{low}", length))
            at += length if is_kept else 0
        self.lines.append(joined(name, pieces))


def zeros(width: int) -> str:
    return "hw.constant false" if width == 1 else f"hw.constant 0 : i{width}"
