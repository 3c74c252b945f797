"""A testbench for the circuit of a graph: it has the arrays, and prints every token and every firing with its cycle.

A line `G cycle number word` is a token, and `F cycle number` a firing. `L cycle number word` replaces the last token of a stream,
which was emitted before it was computed. The numbers count the streams and the processes that the testbench watches. `Q cycle
port address` is a request of a port at the memory, and `A cycle` an answer that is visible in the next cycle. The testbench reads
inside the circuit by hierarchical names, so the circuit has no ports for that.

An element of an array in the memory is undefined until the memory has answered its line. So a circuit that ends with the right tokens has
read its tensors through its ports alone. Data outside the memory, such as the ends of runs of equal coordinates, are defined from the
start.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from fuseflow.errors import HardwareError
from fuseflow.hardware.arrays import circuit_arrays
from fuseflow.hardware.axi_ports import ADDRESS_BITS, PORT_BITS, MemoryTopPort
from fuseflow.hardware.bench_memory import BenchMemory, accepted, bench_memory
from fuseflow.hardware.bench_scratchpad import BenchScratchpad, Words, bench_scratchpad
from fuseflow.hardware.circuit import Circuit
from fuseflow.hardware.evaluate import Evaluation, waiting_nodes
from fuseflow.hardware.memory_run import NONE, MemoryRun
from fuseflow.hardware.rtl_simulators import TESTBENCH, Serve
from fuseflow.hardware.rule_netlist import LATE
from fuseflow.hardware.top import Top, TopPort
from fuseflow.memory.layout import ArrayKind
from fuseflow.samml import nodes as n
from fuseflow.tensors import Tensor

PLACES = {"values": ("val", 0), "crds": ("crd", 0), "low": ("pos", 0), "high": ("pos", 1)}
"""For each array of a node, the kind of its array in memory, and the index there of its first element."""


@dataclass(frozen=True, slots=True)
class Testbench:
    """The text of a testbench, the arrays that it reads by the names of their files, and all that it watches: streams by node and
    output, for each process its node, and for each port at the memory its node and the kind of its array. `serve` answers
    requests if the memory is not part of the testbench. `results` are words of results that must lie in the scratchpad at the end."""

    text: str
    files: Mapping[str, str]
    streams: tuple[tuple[str, str], ...]
    processes: tuple[str, ...]
    ports: tuple[tuple[str, str], ...]
    serve: Serve | None
    results: Words


def make_testbench(
    circuit: Circuit,
    top: Top,
    tensors: Mapping[str, Tensor],
    limit: int,
    wave: str,
    stalls: int | None,
    results: Mapping[str, Tensor],
) -> Testbench:
    """Return a testbench that stops when nothing has fired for as long as anything can be on its way, or after `limit` cycles.
    With `wave` it writes the waveform to that file, and with `stalls`, a seed, its memory is not always ready. `results` are packed
    into the words that are written to the scratchpad. Raises `HardwareError` if the tensors that are moved in one way have no bytes."""
    words = circuit_arrays(circuit, tensors)
    roms, files = list[str](), dict[str, str]()
    run = MemoryRun(circuit, tensors)
    if any(port.number == NONE for port in run.ports.values()):
        raise HardwareError(
            f"graph `{circuit.graph.name}` moves tensors of no bytes to the scratchpad",
            hint="`cosimulate --tool python` runs that",
        )
    scratchpad = bench_scratchpad(circuit, top, run, tensors, results)
    files |= scratchpad.files
    lines = _ArrayLines(circuit, top, run)
    for port in top.arrays:
        array = words[port.node, port.name]
        files[f"{port.port}.hex"] = "".join(f"{word:x}\n" for word in array or [0])
        roms.append(lines.rom(port, max(len(array), 1)))
    streams = [(unit.node.name, out) for unit in circuit.units for out in unit.module.streams]
    late = {(unit.node.name, out) for unit in circuit.units for out in unit.module.late}
    watches, processes = list[str](), list[str]()
    for number, (node, out) in enumerate(streams):
        signal = f"dut.{top.instances[node]}.{out}"
        watches.append(f'if ({signal}_valid) $fwrite(file, "G %0d {number} %h\\n", cycle, {signal}_data);')
        if (node, out) in late:
            watches.append(f'if ({signal}_{LATE}) $fwrite(file, "L %0d {number} %h\\n", cycle, {signal}_data);')
    for unit, made in zip(circuit.units, top.units, strict=True):
        for process, wires in made.netlist.fires.items():
            fires = " | ".join(f"dut.{top.instances[made.node]}.{wire}" for wire in wires)
            line = f'$fwrite(file, "F %0d {len(processes)}\\n", cycle); '
            counted = process not in unit.module.helpers
            watches.append(f"if ({fires}) begin {line if counted else ''}last = cycle; end")
            processes += [made.node] if counted else []
    roms = [*lines.parts(), *roms]
    memory = bench_memory(top.ports, circuit.machine.memory, run, stalls)
    quiet = 2 + max(
        unit.latency + max(max(unit.module.interval_of(on), unit.module.pause_of(on)) for on in unit.module.processes)
        for unit in circuit.units
    )
    quiet += max((channel.hops.count for channel in circuit.channels), default=0)
    quiet += max((turn.of for _, turn in circuit.graph.turns), default=0)
    ports = tuple((port.node, port.kind) for port in top.ports)
    text = _text(top, [*scratchpad.parts, *roms], watches, quiet, limit, wave, memory, scratchpad)
    return Testbench(text, files, tuple(streams), tuple(processes), ports, memory.serve, scratchpad.results)


class _ArrayLines:
    """The arrays of a circuit in a testbench, with the code that tracks which lines of the arrays in the memory have arrived."""

    def __init__(self, circuit: Circuit, top: Top, run: MemoryRun) -> None:
        self.circuit, self.run = circuit, run
        self.addresses = {(port.node, port.name): port for port in top.addresses}
        self.ports = {(port.node, port.kind): port for port in top.ports if not port.write and port.kind in get_args(ArrayKind)}
        self.scratchpad = top.scratchpad

    def rom(self, port: TopPort, count: int) -> str:
        """Return the SystemVerilog instance of the array of a port, with `count` words. If the memory holds it in the form that the
        node reads, an element is defined once its line has arrived."""
        address = self.addresses[port.node, port.name]
        parameters = f'.W({port.width}), .A({address.width}), .N({count}), .FILE("{port.port}.hex")'
        pins = f".address({address.port}), .data({port.port})"
        kind, first = PLACES.get(port.name, ("", 0))
        reads = self.ports.get((port.node, kind))
        if reads is None or not self._is_listed(self.circuit.graph.by_name[port.node], port.name):
            return f"ff_rom #({parameters}) r_{port.port} ({pins});"
        bits = self.run.ports[port.node, kind].place.bits
        parameters += f", .E({bits}), .F({first}), .L({8 * reads.line}), .C({self._count(reads)})"
        return f"ff_line_rom #({parameters}) r_{port.port} ({pins}, .arrived(arrived_{reads.name}));"

    def parts(self) -> Iterator[str]:
        """Yield the lines of SystemVerilog that follow the requests and answers of each port that reads."""
        for port in self.ports.values():
            count, shift = self._count(port), port.line.bit_length() - 1
            address, offset = port.outputs["address"][0], f"offset_{port.name}"
            yield f"wire [{count - 1}:0] arrived_{port.name};"
            yield f"wire [{ADDRESS_BITS - 1}:0] {offset} = {address} - {port.inputs['base'][0]};"
            pins = {"clk": "clk", "rst": "rst", "valid": accepted(port), "offset": offset}
            pins |= {"tag": f"{port.outputs['id'][0]}[{port.tag - 1}:0]", "arrived": f"arrived_{port.name}"}
            parameters, module = f".N({count}), .T({port.tag}), .S({shift}), .A({ADDRESS_BITS})", "ff_arrivals"
            if port.on_chip and self.scratchpad is not None:
                pins |= {pin: f"scratchpad_{pin}" for pin in ("read_valid", "read_id", "read_data")}
                accesses, file = self.scratchpad.settings.words_a_cycle, f"words_{port.name}.hex"
                parameters += f', .I({PORT_BITS}), .G({accesses}), .P({port.number}), .FILE("{file}")'
                module = "ff_words"
            else:
                pins |= {"answer_valid": port.given["answer_valid"][0]}
                pins |= {"answer_tag": f"{port.given['answer_id'][0]}[{port.tag - 1}:0]"}
            connected = ", ".join(f".{pin}({wire})" for pin, wire in pins.items())
            yield f"{module} #({parameters}) a_{port.name} ({connected});"

    def _count(self, port: MemoryTopPort) -> int:
        """Return the number of lines of the array that a port reads."""
        return max(-(-self.run.ports[port.node, port.kind].place.length // port.line), 1)

    def _is_listed(self, node: n.Node, name: str) -> bool:
        """Return whether a node reads coordinates that are stored in memory, at the places of the array `name`. A bitmap stores them as
        bits, and of coordinates that repeat a circuit reads one for each run."""
        if not isinstance(node, n.Scan | n.Locate):
            return True
        decl = self.circuit.graph.declared[node.tensor]
        level = decl.format.levels[node.level]
        return level.reads(decl.size(node.level)).entries is not None and (level.unique or name != "crds")


def _text(
    top: Top,
    roms: Iterable[str],
    watches: Iterable[str],
    quiet: int,
    limit: int,
    wave: str,
    memory: BenchMemory,
    scratchpad: BenchScratchpad,
) -> str:
    ports = (*top.arrays, *top.addresses, *top.written)
    wires = "\n  ".join(f"wire [{port.width - 1}:0] {port.port};" for port in ports)
    outputs = (wire for port in top.ports if not port.on_chip for wire in port.outputs.values())
    pins = [wire for wire, _ in (*(wire for port in top.ports for wire in port.inputs.values()), *outputs)] + list(
        scratchpad.pins
    )
    connected = ", ".join([".clk(clk)", ".rst(rst)", *(f".{pin}({pin})" for pin in (*(port.port for port in ports), *pins))])
    dump = f'$dumpfile("{wave}"); $dumpvars(0, dut);' if wave else ""
    arrays, prints = "\n  ".join([*memory.parts, *roms]), "\n      ".join([*watches, *memory.prints])
    ends = "\n        ".join(["$fclose(file);", *scratchpad.ends])
    begin, steps = "\n    ".join(memory.begin), "\n      ".join([*memory.steps, *scratchpad.steps])
    return f"""module {TESTBENCH};
  reg clk = 0, rst = 1;
  integer cycle = 0, last = 0, resets = 0, file;
  {wires}
  {top.name} dut ({connected});
  {arrays}
  initial begin
    file = $fopen("trace.txt", "w");
    {dump}
    {begin}
  end
  always #5 clk = !clk;
  always @(posedge clk) begin
    if (!rst) begin
      {prints}
      if ({memory.busy}) last = cycle;
      if (cycle > last + {quiet} || cycle > {limit}) begin
        {ends}
        $finish;
      end
      cycle = cycle + 1;
    end
  end
  always @(negedge clk) begin
    resets = resets + 1;
    if (resets == 3) rst = 0;
    if (!rst) begin
      {steps}
    end
  end
endmodule
"""


def read_trace(circuit: Circuit, testbench: Testbench, path: Path, limit: int) -> Evaluation:
    """Return the run of a testbench's trace `path`. Raises `HardwareError` if the circuit still ran at the limit."""
    result = Evaluation(
        tokens={place: [] for place in testbench.streams},
        given={place: [] for place in testbench.streams},
        fired={unit.node.name: [] for unit in circuit.units},
        requests={(node, kind): [] for node, kind in testbench.ports if node},
    )
    last = -1
    with path.open() as lines:
        for line in lines:
            kind, at, *rest = line.split()
            cycle = int(at)
            match kind:
                case "F":
                    result.fired[testbench.processes[int(rest[0])]].append(cycle)
                    last = max(last, cycle)
                case "A":
                    last = max(last, cycle + 1)
                case "Q" if testbench.ports[int(rest[0])] not in result.requests:
                    pass  # of a port that stores results
                case "Q":
                    result.requests[testbench.ports[int(rest[0])]].append((cycle, int(rest[1])))
                case "L":
                    place = testbench.streams[int(rest[0])]
                    result.tokens[place][-1] = _word(circuit, place, cycle, rest[1])
                case _:
                    place = testbench.streams[int(rest[0])]
                    result.given[place].append(cycle)
                    result.tokens[place].append(_word(circuit, place, cycle, rest[1]))
    if last >= limit:
        raise HardwareError(f"the circuit of `{circuit.graph.name}` still runs after {limit:,} cycles")
    result.cycles = last + 1
    result.waiting = waiting_nodes(circuit, result)
    return result


def _word(circuit: Circuit, place: tuple[str, str], cycle: int, word: str) -> int:
    try:
        return int(word, 16)
    except ValueError:
        raise HardwareError(
            f"output `{place[1]}` of node `{place[0]}` has the undefined bits `{word}` in cycle {cycle:,} of the circuit"
        ) from None
