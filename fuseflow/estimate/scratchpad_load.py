"""The load of a scratchpad by a graph: the words that are read and written there, and the bytes that are moved between it and the
memory before and after the graph runs."""

from __future__ import annotations

from dataclasses import dataclass

from fuseflow.estimate.graph_counts import GraphCounts
from fuseflow.estimate.memory_pace import memory_pace
from fuseflow.estimate.port_lines import read_lines
from fuseflow.estimate.stream_flow import Number
from fuseflow.machine.machine import Machine
from fuseflow.memory.memory_interface import TRANSFER_PORTS
from fuseflow.memory.settings import IdealMemory


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
