"""The controller connects a simulator to the memory of one run: which ports the memory has, how many lines they fetch ahead, and
when the memory advances.

This module loads no compiler: `make` does, when the ports are known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from fuseflow.memory.buffer_assignment import PortName, buffered_ports
from fuseflow.memory.layout import AddressRange, ArrayName, lay_out
from fuseflow.memory.statistics import MemoryPort, MemoryStatistics
from fuseflow.samml import nodes as n
from fuseflow.tensors import Tensor

if TYPE_CHECKING:
    from fuseflow.memory.memory import Memory


@dataclass(slots=True)
class Controller:
    """The controller of the memory of one run. Ports join while the network is built. When all are known the controller opens:
    `make` returns a memory with the given number of ports.

    `line` is the number of bytes of a request. `outstanding` is the largest number of unanswered requests of a port (K in
    docs/memory.md), and `prefetch` the number of lines that are fetched ahead, or 0 for none (D). `capacity` is the size of the
    memory in bytes. `window` is the number of cycles by which the memory advances at a time (0: the look-ahead of the model); all
    windows up to the look-ahead have the same results. `buffers` are the lines of the reuse buffers of ports.
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
    memory: Memory = field(init=False)

    def lay_out(self, graph: n.Graph, tensors: Mapping[str, Tensor]) -> dict[ArrayName, AddressRange]:
        """Assign an address range to every array of a graph, and reuse buffers to ports, and return the ranges. Raises
        `SimulationError` if the arrays are too large, and `MachineError` for a buffer that is smaller than a line."""
        self.places = lay_out(graph, tensors, self.capacity, self.line)
        self.buffers = buffered_ports(graph, self.line)
        return self.places

    def open(self) -> None:
        self.memory = self.make(len(self.ports))
        for number, port in enumerate(self.ports):
            if port.buffer:
                self.memory.add_buffer(number, port.buffer)

    def join(self, node: str, array: ArrayName, write: bool) -> int:
        """Add a port of a node for one array, and return its number."""
        tensor, _, kind = array
        lines = 0 if write else self.buffers.get((node, array), 0)
        self.ports.append(MemoryPort(node, tensor, kind, "write" if write else "read", lines))
        return len(self.ports) - 1

    def elements_in_flight(self, bits: int) -> int:
        """Return how many elements of `bits` bits a port may have requested ahead: all those in the lines that may be unanswered."""
        return self.outstanding * max(8 * self.line // bits, 1)

    @property
    def step(self) -> int:
        """The number of cycles by which the memory advances at a time."""
        return self.window or self.memory.lookahead

    def advance(self) -> bool:
        """Advance the memory by a step, when no process can fire without an answer. Returns False if no request is unanswered.

        All later requests depend on an answer that is not known yet, and this answer becomes visible after `lookahead` cycles at
        the earliest.
        """
        state = self.memory.ports
        if (state["answered"] >= state["issued"]).all():
            return False
        start = self.memory.cycle
        if (state["answered"] >= state["sent"]).all():
            start = max(start, int(state["due"].min()))  # the memory idles until then
        self.memory.advance(start + self.step)
        return True

    def acknowledged(self) -> int:
        """Answer all requests, after the last was made, and return the cycle of the last answer, or -1 if there was no request."""
        self.memory.drain()
        return int(self.memory.ports["last"].max(initial=-1))

    def statistics(self) -> MemoryStatistics:
        """Return the statistics of the memory, after the end of the run."""
        return self.memory.report(self.ports, self.places)


ControllerFactory: TypeAlias = Callable[[], Controller | None]
"""A function that returns the controller of a new memory for a run, or None if the memory answers at once."""
