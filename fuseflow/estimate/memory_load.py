"""The speed of a memory, its load by the nodes of a graph, and how long that takes: the bytes of all lines, rows that are opened anew,
and lines that many lanes want at once.

The constants were chosen on runs on `rda` (evaluation/estimate_runs.py). `tests/estimate/test_memory_load.py` compares them with the
memory model alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, exp, gcd
from typing import Literal, NamedTuple, TypeAlias, assert_never

from fuseflow.estimate.graph_counts import GraphCounts
from fuseflow.estimate.memory_pace import MemoryPace, memory_pace
from fuseflow.estimate.port_lines import ArrayPlace, PortLines, read_lines
from fuseflow.estimate.stream_flow import Number
from fuseflow.machine.machine import Machine
from fuseflow.memory.memory_interface import TRANSFER_PORTS
from fuseflow.memory.settings import IdealMemory
from fuseflow.samml import nodes as n
from fuseflow.samml.writers import LanePart

CROWD = 64
"""From this many ports on, the queues of the channels lose time among them."""
SCATTERED = 1.1
"""How many times as long as lines in order the lines take that lanes ask for without order: some meet in one bank group."""
ALTERNATING = 0.85
"""The share of the time for other lines that is added to the time for the lines of a small array."""
FIRST_LINE = 0.75
"""The share of the lanes that ask for one line for whose answers the busiest lane waits."""
STARVED_WRITES = (2.2, 0.7)
"""A write is answered after a * e^(b r) cycles: a in an idle memory, and r lines are read in a cycle from eight channels of HBM2. In other
memories r is the rate at which as many lines are under way in a channel, since a channel writes where no reads wait. The rate counts
b = 2.2 on one lane, and 0.7 where the lanes write themselves: then more writes wait, and the lanes that wait for their answers read
nothing."""
STARVED_ANSWER = 37.0
"""The cycles from a request to its answer in HBM2, on which these rates were chosen."""
STARVED_BEHIND = (2.4, 5.0)
"""How much the rate counts behind lanes that read, where all lines lie in rows that are open, and where each opens a row: then it waits
longer in its channel. Runs of the memory alone have 1.5 where writes lie in other banks than reads, 2 to 4 where they lie in the same, and
5 to 7 where each read opens a row. On 54 products with compressed results in lanes, 1.6, 2.4 and 3.2 were tried."""
LONGEST_WRITE = 40_000.0
"""The most cycles for which a write waits."""


def memory_answers(node: n.Primitive, declared: Mapping[str, n.TensorDecl]) -> int:
    """Return how many answers of the memory an element waits for on its way through a node, one after the other."""
    if isinstance(node, n.TensorUser) and (not node.asks_memory(declared) or declared[node.tensor].scratchpad):
        return 0  # a scratchpad answers soon
    match node:
        case n.Load() | n.WriteValues() | n.WriteLaneValues():
            return 1
        case n.Scan():
            arrays = declared[node.tensor].stored_arrays(node.level)
            return any(array.scanned for array in arrays) + any(array.entry for array in arrays)
        case n.Locate():
            return int(any(array.told for array in declared[node.tensor].stored_arrays(node.level)))
        case n.WriteLevel() | n.WriteLaneLevel():
            return 0
        case n.Root() | n.Range() | n.Join() | n.Align() | n.Repeat() | n.Pointwise() | n.Reduce() | n.Accumulate() | n.Permute():
            return 0
        case n.Drop() | n.Select() | n.Flatten() | n.SplitLevel() | n.Fork() | n.Merge():
            return 0
        case unknown:
            assert_never(unknown)


class ArrayLoad(NamedTuple):
    """The requests for one array by ports that are the same but for the lane: one of them (`port`), and how many `ports` there are.
    `stage` is the number of their stage.

    All ports fetch `lines`, and the busiest one fetches `most`, and finds `hits` in its reuse buffer. `jumps` are the lines of all
    that lie in another row than the line before. `alike` is how many of the ports want the same line at the same time, and
    `array_lines` the lines of the array.
    """

    stage: int
    port: PortLines
    ports: int
    lines: Number
    most: Number
    jumps: Number
    hits: Number = 0
    alike: float = 1.0
    array_lines: int = 0

    @property
    def asked(self) -> Number:
        """The lines that the busiest port asks for, with the lines in its reuse buffer."""
        return self.most + self.hits

    def of_array(self, size: int, line: int) -> ArrayLoad:
        """Return the requests, given the bytes of the array and of a line. Lanes that look up the same, or share the lines of a fiber,
        want the same line at once."""
        same = self.ports / min(self.ports, max(1, self.port.divided))
        alike = same * (min(self.port.dealt, line // 4) if self.port.dealt > 1 else 1)
        return self._replace(alike=alike, array_lines=-(-size // line))


@dataclass(frozen=True, slots=True)
class MemoryLoad:
    """The load of the memory by a graph: its reads by stage and array, the lines that lie in another row than the line before,
    the lines that it writes, and the most lines of one writer. `in_lanes` says that this writer has the part of one lane.
    `awaited` are the lines of preloads for all of which a node waits, and `elsewhere` the lines that are written to other arrays
    than the first: the first one begins behind the arrays that are read, in the same row.
    """

    reads: tuple[ArrayLoad, ...]
    jumps: Number
    written: Number
    most_written: Number
    in_lanes: bool = False
    awaited: Number = 0
    elsewhere: Number = 0

    @property
    def lines_read(self) -> Number:
        return sum(read.lines for read in self.reads)

    @classmethod
    def of(
        cls,
        ports: Iterable[PortLines],
        stages: Mapping[str, int],
        array_bytes: Mapping[ArrayPlace, int],
        written: Iterable[WrittenLines],
        pace: MemoryPace,
    ) -> MemoryLoad:
        """Add up the requests of ports, given the stage of each node, the bytes of the arrays that are read, in the order in
        which they lie in the memory, and the lines that are written to each array.
        """
        groups: dict[tuple[int, str], list[PortLines]] = {}
        for port in ports:
            groups.setdefault((stages[port.node], port.kind), []).append(port)
        together = [
            ArrayLoad(
                stage,
                group[0],
                len(group),
                sum(p.lines for p in group),
                max(p.lines for p in group),
                sum(p.jumps for p in group),
                max(p.hits for p in group),
            )
            for (stage, _), group in groups.items()
        ]
        return cls.of_lanes(together, array_bytes, written, pace)

    @classmethod
    def of_lanes(
        cls,
        ports: Sequence[ArrayLoad],
        array_bytes: Mapping[ArrayPlace, int],
        written: Iterable[WrittenLines],
        pace: MemoryPace,
    ) -> MemoryLoad:
        """Add up the requests of ports, given all lanes together. The other arguments are as in `of`."""
        reads = tuple(each.of_array(array_bytes.get(each.port.array, 0), pace.line) for each in ports)
        jumps = sum(each.jumps for each in ports) * _other_row(ports, array_bytes, pace)
        out = tuple(written)
        most = max(out, key=lambda each: each.lines, default=WrittenLines(0))
        awaited = sum(each.lines for each in ports if each.port.awaited)
        first, *others = [each.lines * each.writers for each in out] or [0]
        return cls(reads, jumps, first + sum(others), most.lines, most.writers > 1, awaited, sum(others))


@dataclass(frozen=True, slots=True)
class WrittenLines:
    """The lines of an array that each of its `writers` writes. Lanes that share lines write them several times."""

    lines: Number
    writers: int = 1

    @classmethod
    def of(cls, bytes_: Number, part: LanePart | None, bits: int, line: int) -> WrittenLines:
        """Return the lines of an array of `bytes_` bytes with elements of `bits` bits. `part` has the positions of one lane, if
        lanes write it: runs that begin anywhere in a line."""
        lines = -(-bytes_ // line)
        if part is None:
            return cls(lines)
        run = max(1.0, part.run * bits / 8)
        in_line = gcd(max(1, round(run)), line)
        each = bytes_ / part.lanes / run * max(1.0, (run + line - in_line) / line)
        return cls(min(lines, each), part.lanes)


def _other_row(ports: Iterable[ArrayLoad], array_bytes: Mapping[ArrayPlace, int], pace: MemoryPace) -> float:
    """Return how likely a bank has another row open than the row of the next request. Lines within as many bytes as all open rows
    have do not close each other's rows. So it is how likely two requests are in different pieces of this size."""
    lines: dict[ArrayPlace, Number] = {}
    for each in ports:
        lines[each.port.array] = lines.get(each.port.array, 0) + each.lines
    size = pace.open_bytes * pace.channels
    pieces: dict[int, float] = {}
    start = 0
    for array, length in array_bytes.items():
        for piece in range(start // size, (start + max(1, length) - 1) // size + 1):
            inside = min(start + length, (piece + 1) * size) - max(start, piece * size)
            pieces[piece] = pieces.get(piece, 0.0) + lines.get(array, 0) * inside / max(1, length)
        start += -(-length // pace.line) * pace.line
    total = sum(pieces.values())
    return 1 - sum((number / total) ** 2 for number in pieces.values()) if total else 0.0


def transfer_cycles(load: MemoryLoad, lines: Number, pace: MemoryPace) -> float:
    """Return the cycles in which the memory moves `lines`, and opens rows for the jumps of the load."""
    return lines * pace.line / (pace.peak * pace.in_order) + load.jumps * pace.row_cycles / pace.channels


def line_latency(load: MemoryLoad, read: ArrayLoad, pace: MemoryPace) -> float:
    """Return the mean cycles for which a token waits for its line, beyond one cycle. A bank has another row open as often as the lines of
    the load jump; else it is closed until the first line of a row comes, and has the row open then."""
    other = min(1.0, load.jumps / max(1, load.lines_read))
    banks = pace.groups * pace.banks * pace.channels
    rows = banks * -(-read.array_lines * pace.line // (pace.open_bytes * pace.channels))
    closed = (1 - other) * min(1.0, min(read.array_lines, rows) / max(1, read.lines))
    return pace.latency - (1 - other - closed) * pace.row_open + other * pace.row_other


def preload_cycles(load: MemoryLoad, pace: MemoryPace) -> float:
    """Return the cycles for which nodes wait until the arrays that they look up are preloaded."""
    return load.awaited * pace.line / (pace.peak * pace.in_order)


def shared_line_cycles(load: MemoryLoad, pace: MemoryPace) -> float:
    """Return the most cycles that any array takes that many lanes read at once, or that has few lines.

    A line lies in one bank group, so an array of few lines keeps few groups busy. The rate for many lanes was fitted to runs: it
    includes the time that queues lose among `CROWD` busy ports or more. It was seen where these want the same lines, but that is
    not the reason: 256 ports that read the same lines take about as long as 256 that read others (9,117 and 10,070 cycles).
    """
    standing = pace.refresh.lines * pace.refresh.cycles / pace.refresh.period if pace.refresh else 0.0
    cycles = pace.group_cycles * pace.line / 64 / (1 - standing)
    longest = 0.0
    for read in load.reads:
        if read.alike > 1.5 and read.ports >= CROWD:
            at_once = min(pace.groups, 1 + pace.window / read.alike) * pace.channels
            longest = max(longest, read.lines * cycles / at_once)
        if 0 < read.array_lines < pace.groups * pace.channels:
            longest = max(longest, read.lines * cycles / ceil(read.array_lines))
    return longest


def uneven_lane_cycles(load: MemoryLoad, cycles: Number, transfer: float) -> float:
    """Return the cycles of lanes that write by themselves, so that none waits for another one; 0 for other graphs. The busiest
    one works for `cycles`, and the memory moves all lines that are not preloaded in `transfer` cycles.

    As long as the memory is what they wait for, all lanes go on equally slowly. The busiest one goes on alone at its own speed
    when the others are done, which are taken to have even numbers of lines around the mean.
    """
    most = max(load.reads, key=lambda read: read.lines, default=None)
    if not load.in_lanes or most is None or not most.lines:
        return 0.0
    mean, moved = float(cycles * most.lines / (most.ports * most.most)), SCATTERED * transfer
    return moved + (cycles - mean) * mean / moved if moved > mean else 0.0


def first_line_cycles(load: MemoryLoad, pace: MemoryPace) -> float:
    """Return the cycles for which a lane waits for its first line, where lanes that write by themselves begin side by side: neighbours ask
    for elements of 4 bytes of one line, and a bank group answers them one after the other."""
    first = min((read for read in load.reads if read.ports > 1), key=lambda read: read.stage, default=None)
    if not load.in_lanes or first is None:
        return 0.0
    return FIRST_LINE * pace.group_cycles * (min(first.ports, pace.line // 4) - 1)


def alternating_cycles(load: MemoryLoad, pace: MemoryPace, transfer: float, workspace: int) -> float:
    """Return the cycles of lanes that write by themselves and, row after row, ask for the few lines of one small array, such as a
    bias. While they wait for these lines they ask for little else. `workspace` is the first stage that is one. 0 for other
    graphs."""
    few = pace.groups * pace.channels
    again = tuple(read for read in load.reads if read.stage > workspace and read.array_lines < min(few, read.most))
    later = shared_line_cycles(replace(load, reads=again), pace)
    other = 1 - sum(read.lines for read in again) / max(1, load.lines_read + load.written)
    return later + ALTERNATING * other * transfer if load.in_lanes and later else 0.0


Writer: TypeAlias = Literal["behind lanes", "alone", "in lanes"]
"""A writer behind lanes that read, the writer of a graph without lanes, or one of the writers of all lanes."""


def write_wait(load: MemoryLoad, cycles: Number, pace: MemoryPace, writer: Writer) -> float:
    """Return the cycles after which a write is answered, where all lines are read in `cycles`; 0 in a memory without banks."""
    alone, lanes = STARVED_WRITES
    is_open, opened = STARVED_BEHIND
    behind = is_open + (opened - is_open) * min(1.0, load.jumps / max(1, load.lines_read))
    weight = {"behind lanes": behind, "alone": alone, "in lanes": lanes}[writer]
    rate = weight * load.lines_read / max(1, cycles) * 8 / pace.channels * (pace.answer / STARVED_ANSWER)
    return min(LONGEST_WRITE, pace.write * exp(min(20.0, rate)))


@dataclass(frozen=True, slots=True)
class ScratchpadLoad:
    """The load of a scratchpad: the `words` that nodes read and write there, the bytes that are `loaded` from the memory, and the
    bytes that are `stored` in it. `beside` are the bytes that are moved for other tiles while the graph runs."""

    read: Number = 0
    written: Number = 0
    loaded: Number = 0
    stored: Number = 0
    beside: Number = 0

    @classmethod
    def of(cls, counts: GraphCounts, machine: Machine) -> ScratchpadLoad:
        """Return the load by a counted graph; none on a machine without a scratchpad, or with a memory that answers at once."""
        graph, scratchpad = counts.graph, machine.scratchpad
        if scratchpad is None or isinstance(machine.memory, IdealMemory) or not any(t.scratchpad for t in graph.tensors):
            return cls()
        word, declared = scratchpad.bytes_a_cycle, graph.declared
        ports = read_lines(graph, counts.flows, word, counts.array_bytes, {}, on_chip=True)
        written = [row for row in counts.traffic if row.direction == "write" and declared[row.tensor].scratchpad]
        moved = (size for (name, *_), size in counts.array_bytes.items() if declared[name].scratchpad == "moved")
        return cls(
            sum(port.lines for port in ports),
            sum(-(-row.bytes // word) for row in written),
            sum(moved),
            sum(row.bytes for row in written if declared[row.tensor].scratchpad == "moved"),
            sum(size for (name, *_), size in counts.array_bytes.items() if declared[name].scratchpad in ("ahead", "behind")),
        )

    def accesses(self, machine: Machine) -> Number:
        """Return the cycles in which the scratchpad can serve all accesses."""
        return 0 if machine.scratchpad is None else (self.read + self.written) / machine.scratchpad.words_a_cycle

    def transfers(self, machine: Machine) -> float:
        """Return the cycles in which bytes are loaded before the graph begins, and stored when it has ended."""
        return sum(self._cycles(bytes_, machine) for bytes_ in (self.loaded, self.stored) if bytes_)

    def around(self, machine: Machine) -> float:
        """Return the cycles in which the first of several tiles is loaded and the last is stored."""
        return self._cycles(self.beside, machine) if self.beside else 0.0

    def _cycles(self, bytes_: Number, machine: Machine) -> float:
        pace = memory_pace(machine)
        rate = min(pace.peak * pace.in_order, TRANSFER_PORTS * pace.line)
        return float(bytes_ / rate + pace.latency)
