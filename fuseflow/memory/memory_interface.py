"""The controller connects a simulator to the memory of one run: which ports the memory has, how many lines they fetch ahead, and
when the memory advances.

This module loads no compiler: `make` does, when the ports are known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

from fuseflow.errors import MachineError
from fuseflow.memory.buffer_assignment import PortName, buffered_ports
from fuseflow.memory.layout import AddressRange, ArrayName, lay_out, place_on_chip, stored_arrays, transfer_range
from fuseflow.memory.scratchpad_settings import Scratchpad
from fuseflow.memory.statistics import MemoryPort, MemoryStatistics
from fuseflow.samml import nodes as n
from fuseflow.samml.nodes import Transfer
from fuseflow.tensors import Tensor

if TYPE_CHECKING:
    from fuseflow.memory.memory import Memory


LOADED: ArrayName = ("", -1, "val")
"""The name of all lines that are loaded into the scratchpad before a graph begins."""
AHEAD: ArrayName = ("", -1, "crd")
"""The name of all lines that are loaded into the scratchpad for the next graph."""
BEHIND: ArrayName = ("", -1, "pos")
"""The name of all lines that are stored from the scratchpad for the last graph."""
STORED: ArrayName = ("", 0, "val")
"""The name of all lines that are stored from the scratchpad when a graph has ended."""
MOVED: Mapping[ArrayName, Transfer] = MappingProxyType({LOADED: "moved", AHEAD: "ahead", BEHIND: "behind"})
TRANSFER_PORTS = 8
"""The ports between the memory and the scratchpad of any machine, each of which asks for one line in a cycle. Eight channels of HBM2 move
fewer lines, and HBM3 and HBM4 more."""


@dataclass(slots=True)
class Controller:
    """The controller of the memory of one run. Ports join while the network is built. When all are known the controller opens:
    `make` returns a memory with the given number of ports.

    `line` is the number of bytes of a request. `outstanding` is the largest number of unanswered requests of a port (K in
    docs/explanation/memory.md), and `prefetch` the number of lines that are fetched ahead, or 0 for none (D). `capacity` is the size of the
    memory in bytes. `window` is the number of cycles by which the memory advances at a time (0: the look-ahead of the model); all
    windows up to the look-ahead have the same results. `buffers` are the lines of the reuse buffers of ports. `scratchpad` are the
    settings of the scratchpad of the machine, if it has one, and `on_chip` has the arrays that lie in it. `stored` are the arrays of
    results that are stored from there at the end, by the ports `storing`, and `writers` the ports that write each of them there.
    `ways` has the cycles of a request to the port, and of its answer back, by node.
    """

    make: Callable[[int], Memory]
    line: int = 64
    outstanding: int = 32
    prefetch: int = 8
    capacity: int = 1 << 34
    window: int = 0
    ports: list[MemoryPort] = field(default_factory=list)
    buffers: Mapping[PortName, int] = field(default_factory=dict)
    places: dict[ArrayName, AddressRange] = field(default_factory=dict)
    scratchpad: Scratchpad | None = None
    on_chip: dict[ArrayName, AddressRange] = field(default_factory=dict)
    stored: tuple[ArrayName, ...] = ()
    writers: dict[ArrayName, list[int]] = field(default_factory=dict)
    storing: list[int] = field(default_factory=list)
    ways: Mapping[str, int] = field(default_factory=dict)
    memory: Memory = field(init=False)

    def lay_out(self, graph: n.Graph, tensors: Mapping[str, Tensor]) -> dict[ArrayName, AddressRange]:
        """Assign an address range to every array of a graph, and reuse buffers to ports, and return the ranges. An array that lies
        in the scratchpad has its range there. The names in `MOVED` have the ranges of lines that are moved. Raises
        `SimulationError` if the arrays are too large, and `MachineError` for a buffer that is smaller than a line, and for a
        tensor in a scratchpad on a machine without one."""
        self.places = lay_out(graph, tensors, self.capacity, self.line)
        self.buffers = buffered_ports(graph, self.line)
        self.ways = {name: hops.port for name, hops in graph.node_hops}
        placed = [tensor for tensor in graph.tensors if tensor.scratchpad]
        if not placed:
            return self.places
        if self.scratchpad is None:
            raise MachineError(
                f"`{placed[0].name}` is placed in the scratchpad, and the machine has none",
                hint="give it one: `--set scratchpad=1MB`, or leave the tensor in the memory",
            )
        self.on_chip = place_on_chip(graph, tensors, self.scratchpad)
        self.stored = stored_arrays(graph)
        moved = {name: transfer_range(graph, self.places, transfer) for name, transfer in MOVED.items()}
        return {**self.places, **self.on_chip, **{name: lines for name, lines in moved.items() if lines is not None}}

    def open(self) -> None:
        self.storing = [self.join("", STORED, write=True) for _ in range(TRANSFER_PORTS if self.stored else 0)]
        self.memory = self.make(len(self.ports))
        if self.on_chip:
            from fuseflow.memory.scratchpad import MemoryWithScratchpad  # loads the compiler

            assert self.scratchpad is not None
            flags = [port.on_chip for port in self.ports]
            self.memory = MemoryWithScratchpad(self.memory.model, self.scratchpad, flags)
        if self.ways:
            self.memory.ports["way"] = [0 if port.on_chip else self.ways.get(port.node, 0) for port in self.ports]
        for number, port in enumerate(self.ports):
            if port.buffer:
                self.memory.add_buffer(number, port.buffer)

    def join(self, node: str, array: ArrayName, write: bool) -> int:
        """Add a port of a node for one array, and return its number."""
        tensor, _, kind = array
        lines = 0 if write else self.buffers.get((node, array), 0)
        self.ports.append(MemoryPort(node, tensor, kind, "write" if write else "read", lines, array in self.on_chip))
        if write and array in self.stored:
            self.writers.setdefault(array, []).append(len(self.ports) - 1)
        return len(self.ports) - 1

    def line_of(self, array: ArrayName) -> int:
        """Return the bytes of a request for an array: of a line, or of a word of the scratchpad."""
        return self.scratchpad.bytes_a_cycle if self.scratchpad is not None and array in self.on_chip else self.line

    def elements_in_flight(self, bits: int, array: ArrayName) -> int:
        """Return how many elements of `bits` bits of an array a port may have requested ahead: all those in the lines that may be
        unanswered."""
        return self.outstanding * max(8 * self.line_of(array) // bits, 1)

    @property
    def step(self) -> int:
        """The number of cycles by which the memory advances at a time."""
        return self.window or self.memory.lookahead

    def window_end(self) -> int | None:
        """Return the cycle to which the memory may advance next, or None if no request is unanswered."""
        state = self.memory.ports
        if (state["answered"] >= state["issued"]).all():
            return None
        start = self.memory.cycle
        if (state["answered"] >= state["sent"]).all():
            start = max(start, int(state["due"].min()))  # the memory idles until then
        return start + self.step

    def advance(self) -> bool:
        """Advance the memory by a step, when no process can fire without an answer. Returns False if no request is unanswered.

        All later requests depend on an answer that is not known yet, and this answer becomes visible after `lookahead` cycles at
        the earliest.
        """
        end = self.window_end()
        if end is not None:
            self.memory.advance(end)
        return end is not None

    def acknowledged(self) -> int:
        """Answer all requests, after the last was made, and return the cycle of the last answer, or -1 if there was no request."""
        if self.on_chip:  # only windows end as early as the answers
            while self.advance():
                pass
        self.memory.drain()
        return int(self.memory.ports["last"].max(initial=-1))

    def store(self, start: int) -> int:
        """Store the results that lie in the scratchpad and belong into the memory, from cycle `start` on, when the run has ended.
        Return the cycles that this takes, until the last acknowledgement."""
        addresses = [base for array in self.stored for base in self._written_lines(array)]
        times = dict.fromkeys(self.storing, start - 1)  # of the last request
        waiting = {port: addresses[k::TRANSFER_PORTS] for k, port in enumerate(self.storing)}
        sent = dict.fromkeys(self.storing, 0)
        while any(sent[port] < len(lines) for port, lines in waiting.items()):
            for port, lines in waiting.items():
                while sent[port] < len(lines):
                    credit = sent[port] - self.outstanding
                    free = self.memory.answer_cycle(port, credit) if credit >= 0 else 0
                    if free < 0:
                        break
                    times[port] = max(times[port] + 1, free)
                    self.memory.issue(port, lines[sent[port]], self.line, True, times[port])
                    sent[port] += 1
            self.advance()
        return max(0, 1 + self.acknowledged() - start) if addresses else 0

    def _written_lines(self, array: ArrayName) -> range:
        """Return the addresses of the lines of an array that was written in the scratchpad."""
        size = min(sum(int(self.memory.ports[k]["bytes"]) for k in self.writers.get(array, ())), self.on_chip[array].length)
        return range(self.places[array].base, self.places[array].base + size, self.line)

    def statistics(self) -> MemoryStatistics:
        """Return the statistics of the memory, after the end of the run."""
        made = self.memory.report(self.ports, self.places)
        if not self.on_chip or self.scratchpad is None:
            return made
        return replace(made, on_chip=self.on_chip, words_a_cycle=self.scratchpad.words_a_cycle)


ControllerFactory: TypeAlias = Callable[[], Controller | None]
"""A function that returns the controller of a new memory for a run, or None if the memory answers at once."""
