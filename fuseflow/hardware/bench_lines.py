"""The lines of arrays that have arrived at the ports of a circuit, in a testbench: an element is undefined until the memory has
answered its line.

So a circuit that ends with the right tokens has read its tensors through its ports alone. Data outside the memory, such as the
ends of runs of equal coordinates, are defined from the start.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from fuseflow.hardware.bench_memory import accepted
from fuseflow.hardware.circuit import Circuit
from fuseflow.hardware.memory_run import MemoryRun
from fuseflow.hardware.top import TopPort
from fuseflow.hardware.top_ports import ADDRESS_BITS, MemoryTopPort
from fuseflow.memory.settings import TimedMemory
from fuseflow.samml import nodes as n

PLACES = {"values": ("val", 0), "crds": ("crd", 0), "low": ("pos", 0), "high": ("pos", 1)}
"""For each array of a node, the kind of its array in memory, and the index there of its first element."""


@dataclass(frozen=True, slots=True)
class ArrivingArray:
    """An array whose lines arrive one by one: the parameters of its module, and the wire with a bit for each arrived line."""

    parameters: str
    wire: str


class ArrayLines:
    """The arrays that memory ports of a circuit read, and testbench code that tracks which of their lines have arrived."""

    def __init__(self, circuit: Circuit, ports: Iterable[MemoryTopPort], run: MemoryRun) -> None:
        self.circuit, self.run = circuit, run
        self.ports = {(port.node, port.kind): port for port in ports if not port.write}
        self.nodes = circuit.graph.by_name

    @property
    def line(self) -> int:
        """The bytes of a line."""
        assert isinstance(self.circuit.machine.memory, TimedMemory)
        return self.circuit.machine.memory.line

    def of(self, port: TopPort) -> ArrivingArray | None:
        """Return the array behind a port of the top module, or None if the memory does not hold it in the form that the node
        reads."""
        kind, first = PLACES.get(port.name, ("", 0))
        reads = self.ports.get((port.node, kind))
        if reads is None or not self._is_listed(self.nodes[port.node]):
            return None
        bits = self.run.ports[port.node, kind].place.bits
        parameters = f".E({bits}), .F({first}), .L({8 * self.line}), .C({self._count(reads)})"
        return ArrivingArray(parameters, f"arrived_{reads.name}")

    def parts(self) -> Iterator[str]:
        """Yield the lines of SystemVerilog that follow the requests and answers of each port that reads."""
        for port in self.ports.values():
            count, shift = self._count(port), self.line.bit_length() - 1
            address, offset = port.outputs["address"][0], f"offset_{port.name}"
            yield f"wire [{count - 1}:0] arrived_{port.name};"
            yield f"wire [{ADDRESS_BITS - 1}:0] {offset} = {address} - {port.inputs['base'][0]};"
            pins = {"clk": "clk", "rst": "rst", "valid": accepted(port), "offset": offset}
            pins |= {"tag": f"{port.outputs['id'][0]}[{port.tag - 1}:0]", "answer_valid": port.inputs["answer_valid"][0]}
            pins |= {"answer_tag": f"{port.inputs['answer_id'][0]}[{port.tag - 1}:0]", "arrived": f"arrived_{port.name}"}
            connected = ", ".join(f".{pin}({wire})" for pin, wire in pins.items())
            parameters = f".N({count}), .T({port.tag}), .S({shift}), .A({ADDRESS_BITS})"
            yield f"ff_arrivals #({parameters}) a_{port.name} ({connected});"

    def _count(self, port: MemoryTopPort) -> int:
        """Return the number of lines of the array that a port reads."""
        return max(-(-self.run.ports[port.node, port.kind].place.length // self.line), 1)

    def _is_listed(self, node: n.Node) -> bool:
        """Return whether a node reads coordinates that are stored in memory. A bitmap stores them as bits."""
        if not isinstance(node, n.Scan | n.Locate):
            return True
        decl = self.circuit.graph.declared[node.tensor]
        return decl.format.levels[node.level].reads(decl.size(node.level)).entries is not None
