"""A testbench for the circuit of a graph: it has the arrays, and prints every token and every firing with its cycle.

A line `G cycle number word` is a token, and `F cycle number` a firing. `L cycle number word` replaces the last token of a stream,
which was emitted before it was computed. The numbers count the streams and the processes that the testbench watches. `Q cycle
port address` is a request of a port at the memory, and `A cycle` an answer that is visible in the next cycle. The testbench reads
inside the circuit by hierarchical names, so the circuit has no ports for that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from fuseflow.errors import HardwareError
from fuseflow.hardware.arrays import circuit_arrays
from fuseflow.hardware.bench_lines import ArrayLines
from fuseflow.hardware.bench_memory import BenchMemory, MemoryServer, bench_memory
from fuseflow.hardware.circuit import Circuit
from fuseflow.hardware.evaluate import Evaluation, waiting_nodes
from fuseflow.hardware.memory_run import MemoryRun
from fuseflow.hardware.netlist import LATE
from fuseflow.hardware.tools import TESTBENCH
from fuseflow.hardware.top import Top, TopPort
from fuseflow.tensors import Tensor


@dataclass(frozen=True, slots=True)
class Testbench:
    """The text of a testbench, the arrays that it reads by the names of their files, and all that it watches: streams by node and
    output, for each process its node, and for each port at the memory its node and the kind of its array. `server` answers
    requests if the memory is not part of the testbench."""

    text: str
    files: Mapping[str, str]
    streams: tuple[tuple[str, str], ...]
    processes: tuple[str, ...]
    ports: tuple[tuple[str, str], ...]
    server: MemoryServer | None


def make_testbench(
    circuit: Circuit, top: Top, tensors: Mapping[str, Tensor], limit: int, wave: str = "", stalls: int | None = None
) -> Testbench:
    """Return a testbench that stops when nothing has fired for as long as anything can be on its way, or after `limit` cycles.
    With `wave` it writes the waveform to that file, and with `stalls`, a seed, its memory is not always ready."""
    words = circuit_arrays(circuit, tensors)
    roms, files = [], {}
    run = MemoryRun(circuit, tensors)
    lines = ArrayLines(circuit, top.ports, run)
    for port in top.arrays:
        array = words[port.node, port.name]
        files[f"{port.port}.hex"] = "".join(f"{word:x}\n" for word in array or [0])
        roms.append(_rom(port, top, max(len(array), 1), lines))
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
    quiet = 2 + max(unit.latency + max(map(unit.module.interval_of, unit.module.processes)) for unit in circuit.units)
    ports = tuple((port.node, port.kind) for port in top.ports)
    text = _text(top, roms, watches, quiet, limit, wave, memory)
    return Testbench(text, files, tuple(streams), tuple(processes), ports, memory.server)


def _rom(port: TopPort, top: Top, count: int, lines: ArrayLines) -> str:
    """Return the SystemVerilog instance of the array of a port, with `count` words. At a memory that takes time, an element is
    defined once its line has arrived."""
    address = next(other for other in top.addresses if (other.node, other.name) == (port.node, port.name))
    parameters = f'.W({port.width}), .A({address.width}), .N({count}), .FILE("{port.port}.hex")'
    pins = f".address({address.port}), .data({port.port})"
    arriving = lines.of(port)
    if arriving is None:
        return f"ff_rom #({parameters}) r_{port.port} ({pins});"
    return f"ff_line_rom #({parameters}, {arriving.parameters}) r_{port.port} ({pins}, .arrived({arriving.wire}));"


def _text(top: Top, roms: Iterable[str], watches: Iterable[str], quiet: int, limit: int, wave: str, memory: BenchMemory) -> str:
    ports = (*top.arrays, *top.addresses, *top.written)
    wires = "\n  ".join(f"wire [{port.width - 1}:0] {port.port};" for port in ports)
    pins = [wire for port in top.ports for wire, _ in (*port.inputs.values(), *port.outputs.values())]
    connected = ", ".join([".clk(clk)", ".rst(rst)", *(f".{pin}({pin})" for pin in (*(port.port for port in ports), *pins))])
    dump = f'$dumpfile("{wave}"); $dumpvars(0, dut);' if wave else ""
    arrays, prints = "\n  ".join([*memory.parts, *roms]), "\n      ".join([*watches, *memory.prints])
    begin, steps = "\n    ".join(memory.begin), "\n      ".join(memory.steps)
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
        $fclose(file);
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
    """Return the run whose trace a testbench wrote to the file `path`. Raises `HardwareError` if the circuit was still running at
    the limit."""
    result = Evaluation(
        tokens={place: [] for place in testbench.streams},
        given={place: [] for place in testbench.streams},
        fired={unit.node.name: [] for unit in circuit.units},
        requests={place: [] for place in testbench.ports},
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
