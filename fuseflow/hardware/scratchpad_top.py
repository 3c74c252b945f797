"""The scratchpad of a circuit: an instance of `ff_scratchpad` behind the ports of the nodes that use it, and what stores its results to
the memory when the run has ended.

The data are at the top module. What is written is given at `scratchpad_write_data` in the cycle in which `scratchpad_access_valid` says
so, and what is read comes one cycle later. Each bank has a port through which words are moved from and to the memory
(`scratchpad_move`). `stored_base` and `stored_lines` are the addresses of the results in the memory and the most lines of each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from fuseflow.errors import HardwareError
from fuseflow.firing_rules.expressions import count_bits
from fuseflow.firing_rules.rules import DONE, KIND_BITS
from fuseflow.hardware.arrays import array_of
from fuseflow.hardware.axi_ports import ADDRESS_BITS, PORT_BITS, MemoryTopPort, Wire, instance, joined
from fuseflow.hardware.circuit import Circuit
from fuseflow.hardware.rule_netlist import BUSY
from fuseflow.memory.scratchpad_settings import Scratchpad

Pins = Mapping[str, int]
"""The names of wires, and their widths."""
SCRATCHPAD, SENT, STORE = "ff_scratchpad", "ff_sent", "ff_store"
COUNT_BITS = 48
"""The bits of the number of requests of a port."""
MOST_BITS = 1 << 17
"""The most bits that the scratchpad of a circuit moves in a cycle."""


@dataclass(frozen=True, slots=True)
class ScratchpadTop:
    """The scratchpad of a circuit with its `ports`. `total` is the number of ports of all nodes and of those that store results."""

    settings: Scratchpad
    ports: tuple[MemoryTopPort, ...]
    total: int

    @property
    def rows(self) -> int:
        """The words of a bank."""
        return max(-(-self.settings.bytes // (self.settings.bytes_a_cycle * self.settings.banks)), 1)

    @property
    def parameters(self) -> Mapping[str, int]:
        s = self.settings
        return {
            "Q": len(self.ports), "T": self.ports[0].tag, "I": PORT_BITS, "A": ADDRESS_BITS, "B": s.banks, "P": s.ports, "L": s.latency,
            "S": s.bytes_a_cycle.bit_length() - 1, "N": self.rows, "R": count_bits(self.rows), "M": self.total,
        }  # fmt: skip

    @property
    def inputs(self) -> Pins:
        """The inputs of the top module, by the names of the ports of `ff_scratchpad`."""
        banks, word, row = self.settings.banks, 8 * self.settings.bytes_a_cycle, self.parameters["R"]
        pins = {"write_data": self.settings.words_a_cycle * word}
        return pins | {"move_valid": banks, "move_write": banks, "move_row": banks * row, "move_data": banks * word}

    @property
    def outputs(self) -> Pins:
        """The outputs of the top module, by the names of the ports of `ff_scratchpad`."""
        accesses, word, id_, row = (
            self.settings.words_a_cycle,
            8 * self.settings.bytes_a_cycle,
            self.ports[0].id,
            self.parameters["R"],
        )
        pins = {"access_valid": accesses, "access_write": accesses, "access_id": accesses * id_, "access_row": accesses * row}
        pins |= {"read_valid": accesses, "read_id": accesses * id_, "read_data": accesses * word}
        return pins | {"move_read": self.settings.banks * word}

    @property
    def extern(self) -> str:
        """The declaration of the module in MLIR."""
        count, id_ = len(self.ports), self.ports[0].id
        ins = {"valid": count, "write": count, "address": count * ADDRESS_BITS, "id": count * id_, **self.inputs}
        outs = {"answer_valid": count, "answer_id": count * id_, **self.outputs}
        return extern(SCRATCHPAD, self.parameters, ins, outs)

    def lines(self) -> Iterator[str]:
        """Yield the lines of MLIR with the instance, and the wires of its ports."""
        count, id_ = len(self.ports), self.ports[0].id
        yield joined("%scratchpad_valid", [(f"%{port.outputs['valid'][0]}", 1) for port in self.ports])
        yield joined("%scratchpad_address", [(f"%{port.outputs['address'][0]}", ADDRESS_BITS) for port in self.ports])
        yield joined("%scratchpad_id", [(f"%{port.outputs['id'][0]}", id_) for port in self.ports])
        yield joined("%scratchpad_write", [("%yes" if port.write else "%no", 1) for port in self.ports])
        given = {"valid": count, "write": count, "address": count * ADDRESS_BITS, "id": count * id_, **self.inputs}
        made = {"answer_valid": count, "answer_id": count * id_, **self.outputs}
        yield instance("scratchpad", SCRATCHPAD, self.parameters, named("scratchpad", given), named("scratchpad", made))
        for k, port in enumerate(self.ports):
            valid, answer = port.given["answer_valid"][0], port.given["answer_id"][0]
            yield f"  %{valid} = comb.extract %scratchpad_answer_valid from {k} : (i{count}) -> i1"
            yield f"  %{answer} = comb.extract %scratchpad_answer_id from {k * id_} : (i{count * id_}) -> i{id_}"


def scratchpad_top(circuit: Circuit, ports: Sequence[MemoryTopPort]) -> ScratchpadTop | None:
    """Return the scratchpad of a circuit, or None if no node uses it. Raises `HardwareError` if it moves too many bits in a cycle."""
    mine, settings = tuple(port for port in ports if port.on_chip), circuit.machine.scratchpad
    if settings is None or not mine:
        return None
    bits = 8 * settings.bytes_a_cycle * settings.words_a_cycle
    if bits > MOST_BITS:
        raise HardwareError(
            f"the scratchpad of machine `{circuit.machine.name}` moves {bits:,} bits in a cycle, and that of a circuit {MOST_BITS:,} at "
            "most",
            hint="give it fewer banks, or smaller words; `cosimulate --tool python` runs any scratchpad",
        )
    return ScratchpadTop(settings, mine, len(ports))


@dataclass(frozen=True, slots=True)
class StoreTop:
    """What stores results to the memory when a run has ended: the stored arrays, and all ports of the circuit. `ends` has the wires of the
    streams of each node, which has ended with `D` on all of them, with their widths; `busy` the wires that say that a node goes on."""

    circuit: Circuit
    ports: tuple[MemoryTopPort, ...]
    ends: tuple[tuple[str, int], ...]
    busy: tuple[str, ...]

    @property
    def inputs(self) -> Pins:
        bits = ADDRESS_BITS * len(self.circuit.stored)
        return {"stored_base": bits, "stored_lines": bits}

    @property
    def storing(self) -> list[MemoryTopPort]:
        return [port for port in self.ports if port.stores]

    @property
    def watched(self) -> list[MemoryTopPort]:
        """The ports that must be idle before results are stored."""
        return [port for port in self.ports if not port.stores]

    @property
    def parameters(self) -> Mapping[str, int]:
        scratchpad = self.circuit.machine.scratchpad
        assert scratchpad is not None
        return {
            "Z": len(self.circuit.stored), "K": len(self.storing), "N": len(self.ends) + len(self.busy), "M": len(self.watched),
            "C": COUNT_BITS, "A": ADDRESS_BITS, "S": self.circuit.memory.line.bit_length() - 1,
            "F": scratchpad.bytes_a_cycle.bit_length() - 1,
        }  # fmt: skip

    @property
    def pins(self) -> tuple[Pins, Pins]:
        """The inputs and the outputs of `ff_store`."""
        p, port = self.parameters, self.storing[0]
        ins = {"ended": p["N"], "idle": p["M"], "words": p["Z"] * COUNT_BITS, "base": p["Z"] * ADDRESS_BITS}
        ins |= {"most": p["Z"] * ADDRESS_BITS, "ready": p["K"]}
        return ins, {"valid": p["K"], "line": p["K"] * (port.lines + KIND_BITS)}

    @property
    def externs(self) -> list[str]:
        """The declarations of the modules in MLIR."""
        width = '!hw.int<#hw.param.decl.ref<"W">>'
        sent = f"in %clk : !seq.clock, in %rst : i1, in %request_valid : i1, in %answers : {width}, out sent : i{COUNT_BITS}, out idle : i1"
        return [f"hw.module.extern @{SENT}<W: i32, C: i32>({sent})", extern(STORE, self.parameters, *self.pins)]

    def lines(self) -> Iterator[str]:
        """Yield the lines of MLIR with the instances, and the wires of the ports that store."""
        ended = []
        for wire, width in self.ends:
            ended.append((f"%{wire}_ended", 1))
            yield f"  %{wire}_kind = comb.extract %{wire}_data from {width} : (i{width + KIND_BITS}) -> i{KIND_BITS}"
            yield f"  %{wire}_is_done = comb.icmp eq %{wire}_kind, %done_kind : i{KIND_BITS}"
            yield f"  %{wire}_ends = comb.and %{wire}_valid, %{wire}_is_done : i1"
            yield f"  %{wire}_now = comb.or %{wire}_ends, %{wire}_ended : i1"
            yield f"  %{wire}_ended = seq.compreg %{wire}_now, %clk reset %rst, %no : i1"
        for wire in self.busy:
            ended.append((f"%{wire}_not", 1))
            yield f"  %{wire}_not = comb.xor %{wire}, %yes : i1"
        yield f"  %done_kind = hw.constant {DONE - (1 << KIND_BITS)} : i{KIND_BITS}"
        yield joined("%store_ended", ended)
        for port in self.watched:
            parameters = {"W": port.answers, "C": max(COUNT_BITS, port.answers)}
            ins = {"request_valid": (f"%{port.name}_request_valid", 1), "answers": (f"%{port.name}_answers", port.answers)}
            outs = {"sent": (f"%{port.name}_sent", COUNT_BITS), "idle": (f"%{port.name}_idle", 1)}
            yield instance(f"s_{port.name.removeprefix('n_')}", SENT, parameters, ins, outs)
        yield joined("%store_idle", [(f"%{port.name}_idle", 1) for port in self.watched])
        yield from self._words()
        yield joined("%store_ready", [(f"%{port.name}_request_room", 1) for port in self.storing])
        yield f"  %no_base = hw.constant 0 : i{ADDRESS_BITS}"
        pins, made = self.pins
        outer = {"base": "stored_base", "most": "stored_lines"}
        given = {pin: (f"%{outer.get(pin, f'store_{pin}')}", width) for pin, width in pins.items()}
        yield instance("store", STORE, self.parameters, given, named("store", made))
        width = self.storing[0].lines + KIND_BITS
        for k, port in enumerate(self.storing):
            yield f"  %{port.name}_request_valid = comb.extract %store_valid from {k} : (i{made['valid']}) -> i1"
            yield f"  %{port.name}_request_data = comb.extract %store_line from {k * width} : (i{made['line']}) -> i{width}"
            yield f"  %{port.given['base'][0]} = comb.add %no_base : i{ADDRESS_BITS}"

    def _words(self) -> Iterator[str]:
        """Yield the lines with the number of words that were written of each stored array."""
        units, words = {unit.node.name: unit for unit in self.circuit.units}, []
        for k, array in enumerate(self.circuit.stored):
            writers = [port for port in self.watched if port.write and array_of(units[port.node], port.kind) == array]
            yield f"  %stored{k}_words = comb.add {', '.join(f'%{port.name}_sent' for port in writers)} : i{COUNT_BITS}"
            words.append((f"%stored{k}_words", COUNT_BITS))
        yield joined("%store_words", words)


def store_top(circuit: Circuit, ports: Sequence[MemoryTopPort], names: Mapping[str, str]) -> StoreTop | None:
    """Return what stores the results of a circuit, or None if none is stored. `names` has the name of the instance of each node."""
    if not circuit.stored:
        return None
    ends = ((f"{names[unit.node.name]}_{out}", unit.module.outputs[out]) for unit in circuit.units for out in unit.module.streams)
    busy = (f"{names[unit.node.name]}_{BUSY}" for unit in circuit.units if unit.module.busy is not None)
    return StoreTop(circuit, tuple(ports), tuple(ends), tuple(busy))


def named(prefix: str, pins: Pins) -> dict[str, Wire]:
    """Return the wires at the pins of an instance, whose names begin with `prefix`."""
    return {pin: (f"%{prefix}_{pin}", width) for pin, width in pins.items()}


def extern(module: str, parameters: Mapping[str, int], ins: Pins, outs: Pins) -> str:
    """Return the declaration of a module of SystemVerilog in MLIR, with ports of these widths."""
    ports = ["in %clk : !seq.clock", "in %rst : i1", *(f"in %{pin} : i{width}" for pin, width in ins.items())]
    ports += [f"out {pin} : i{width}" for pin, width in outs.items()]
    return f"hw.module.extern @{module}<{', '.join(f'{key}: i32' for key in parameters)}>({', '.join(ports)})"
