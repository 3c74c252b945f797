"""The memory of a testbench: the model behind the ports of a circuit, and the trace of the ports. A scratchpad is in the circuit.

A memory of a fixed latency is SystemVerilog. Any other memory is the model of the simulators, in the process that started the
testbench. The testbench writes its requests to its standard output, a line `R port cycle address` for each. The testbench runs
for a window of the model's look-ahead, writes `W cycle` at its end, and reads from its standard input which answers become
visible in the next window. No answer becomes visible earlier, so all cycles are those of the simulators.

With stalls, ports are not ready in some cycles, for a few at a time. No simulator has such a memory: then cycles differ, and
tokens are the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import IO

from fuseflow.hardware.axi_ports import ADDRESS_BITS, MemoryTopPort
from fuseflow.hardware.memory_run import MemoryRun, PortRun
from fuseflow.hardware.rtl_simulators import Serve
from fuseflow.memory.settings import FixedMemory, MemorySettings, TimedMemory

READY = "readies"
"""The name of the wires or registers of a testbench with a bit for each port: whether the memory is ready."""


@dataclass(frozen=True, slots=True)
class BenchMemory:
    """The memory of a testbench as SystemVerilog text: declarations and instances (`parts`), statements at the begin and in every
    cycle, printed lines, and the condition that a request has no answer yet. `serve` answers requests if the memory is another process."""

    parts: tuple[str, ...] = ()
    begin: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()
    prints: tuple[str, ...] = ()
    busy: str = "0"
    serve: Serve | None = None


def bench_memory(ports: Iterable[MemoryTopPort], settings: MemorySettings, run: MemoryRun, stalls: int | None) -> BenchMemory:
    """Return the memory behind the ports of a circuit. The memory is always ready, or with `stalls`, the seed of a random
    sequence, stalls in some cycles."""
    ports = tuple(ports)
    if not ports:
        return BenchMemory()
    assert isinstance(settings, TimedMemory)
    asking = tuple(port for port in ports if not port.on_chip)
    parts = list[str]()
    for port in ports:
        for pin, (wire, bits) in {**port.given, **port.outputs}.items():
            source = f" = dut.p_{port.name.removeprefix('n_')}.{pin}" if port.on_chip and pin not in port.inputs else ""
            parts.append(f"wire [{bits - 1}:0] {wire}{source};")
        if not port.stores:
            base = run.ports[port.node, port.kind].place.base
            parts += [f"assign {port.given['base'][0]} = {ADDRESS_BITS}'d{base};"]
        if not port.on_chip:
            parts += [f"assign {port.given['ready'][0]} = {READY}[{port.number}];"]
    more, stalling = _stalls(len(ports), stalls)
    parts += more
    prints = list[str]()
    for port in ports:
        prints.append(f'if ({accepted(port)}) $fwrite(file, "Q %0d {port.number} %0d\\n", cycle, {port.outputs["address"][0]});')
        prints.append(f'if ({port.given["answer_valid"][0]}) $fwrite(file, "A %0d\\n", cycle);')
    busy = " | ".join(f"(dut.p_{port.name.removeprefix('n_')}.slots != {settings.outstanding})" for port in ports)
    if isinstance(settings, FixedMemory):
        for port in asking:
            pins = {"clk": "clk", "rst": "rst", "valid": accepted(port), "id": port.outputs["id"][0]}
            pins |= {"answer_valid": port.inputs["answer_valid"][0], "answer_id": port.inputs["answer_id"][0]}
            connected = ", ".join(f".{pin}({wire})" for pin, wire in pins.items())
            latency = settings.latency + 2 * run.model.ways.get(port.node, 0)
            parts.append(f"ff_fixed_memory #(.L({latency}), .I({port.id})) m_{port.name} ({connected});")
        return BenchMemory(tuple(parts), (), stalling, tuple(prints), busy)
    more, begin, steps = _served(asking, len(ports), run.memory_lookahead)
    return BenchMemory((*parts, *more), begin, (*stalling, *steps), tuple(prints), busy, partial(_serve, run))


def _stalls(count: int, stalls: int | None) -> tuple[list[str], tuple[str, ...]]:
    """Return the declarations of the wires that say which of `count` ports are ready, and the statements of every cycle. With the
    seed `stalls` a port changes in about one of four cycles."""
    if stalls is None:
        return [f"wire [{count - 1}:0] {READY} = {{{count}{{1'b1}}}};"], ()
    parts = [f"reg [{count - 1}:0] {READY} = 0;", f"reg [31:0] chance = {stalls & 0xFFFFFFFF};", "integer stalled;"]
    steps = (
        f"for (stalled = 0; stalled < {count}; stalled = stalled + 1) begin",
        "  chance = chance * 1664525 + 1013904223;",
        f"  if (chance[31:30] == 0) {READY}[stalled] = !{READY}[stalled];",
        "end",
    )
    return parts, steps


def accepted(port: MemoryTopPort) -> str:
    """Return the SystemVerilog condition that the memory takes a request of a port. The scratchpad always does."""
    return port.outputs["valid"][0] if port.on_chip else f"{port.outputs['valid'][0]} & {READY}[{port.number}]"


def _served(ports: Sequence[MemoryTopPort], count: int, window: int) -> tuple[list[str], tuple[str, ...], tuple[str, ...]]:
    """Return the declarations, the begin and the steps of a testbench whose memory runs in another process, for `ports` of `count`
    ports. There, `due` has for each port and cycle of a window whether answers become visible, and `tags` the tag of the last."""
    tag = ports[0].tag if ports else 1
    parts = [
        "integer asked, answered, start = 0, number, slot, port;",
        f"reg [{count - 1}:0] answer_valids = 0;",
        f"reg [{count * tag - 1}:0] answer_tags;",
        f"reg due [0:{count * window - 1}];",
        f"reg [{tag - 1}:0] tags [0:{count * window - 1}];",
        f"reg [{tag - 1}:0] answer_tag;",
    ]
    for port in ports:
        parts.append(f"assign {port.inputs['answer_valid'][0]} = answer_valids[{port.number}];")
        parts.append(f"assign {port.inputs['answer_id'][0]} = answer_tags[{port.number * tag} +: {tag}];")
    begin = (
        'asked = $fopen("/dev/stdout", "w");',
        'answered = $fopen("/dev/stdin", "r");',
        f"for (slot = 0; slot < {count * window}; slot = slot + 1) due[slot] = 0;",
    )
    steps = [
        f'if ({accepted(port)}) $fwrite(asked, "R {port.number} %0d %0d\\n", cycle, {port.outputs["address"][0]});'
        for port in ports
    ]
    steps += [
        f"if (answered != 0 && cycle + 1 == start + {window}) begin",  # Verilator 5.006 does not see that $fscanf reads `answered`
        '  $fwrite(asked, "W %0d\\n", cycle + 1);',
        "  $fflush(asked);",
        "  start = cycle + 1;",
        '  if ($fscanf(answered, "%d", number) != 1) $finish;',
        "  while (number > 0) begin",
        '    if ($fscanf(answered, "%d %d", slot, answer_tag) != 2) $finish;',
        "    due[slot] = 1;",
        "    tags[slot] = answer_tag;",
        "    number = number - 1;",
        "  end",
        "end",
        f"for (port = 0; port < {count}; port = port + 1) begin",
        f"  slot = port * {window} + cycle + 1 - start;",
        "  answer_valids[port] = due[slot];",
        f"  answer_tags[port * {tag} +: {tag}] = tags[slot];",
        "  due[slot] = 0;",
        "end",
    ]
    return parts, begin, tuple(steps)


def _serve(run: MemoryRun, requests: IO[str], answers: IO[str]) -> None:
    """Answer the requests that a testbench writes with the memory model of the simulators, until the testbench ends. Lines that the
    SystemVerilog simulator prints are skipped."""
    for line in requests:
        kind, *numbers = line.split()
        if kind == "R" and len(numbers) == 3:
            port, cycle, address = map(int, numbers)
            run.ask(run.by_number[port], address, cycle)
        elif kind == "W" and len(numbers) == 1:
            start = int(numbers[0])
            run.advance(start)
            due = [answer for port_run in run.by_number for answer in _due(run, port_run, start)]
            answers.write("".join(f"{text}\n" for text in (str(len(due)), *due)))
            answers.flush()


def _due(run: MemoryRun, port: PortRun, start: int) -> Iterator[str]:
    """Yield the answers of a port that become visible in the window from cycle `start` on, as text: for each cycle its index in
    `due`, and the tag of the last answer."""
    while port.visible and port.visible[0] < start + run.memory_lookahead:
        cycle = port.visible[0]
        last = port.answers(cycle) - 1
        yield f"{port.number * run.memory_lookahead + cycle - start} {last % (1 << run.tag)}"
