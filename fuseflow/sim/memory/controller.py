"""The memory of one run as a simulator uses it: which ports it has, how far they look ahead, and when it goes on.

Loads no compiler: `make` does, when the ports are known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from fuseflow.samml import nodes as n
from fuseflow.sim.memory.layout import AddressRange, ArrayName, lay_out
from fuseflow.sim.memory.statistics import MemoryPort, MemoryStatistics
from fuseflow.tensors import Tensor


class MemoryDevice(Protocol):
    """What simulators need of `fuseflow.sim.memory.memory.Memory`."""

    ports: Any
    state: Any
    model: Any

    @property
    def cycle(self) -> int: ...

    @property
    def lookahead(self) -> int: ...

    def issue(self, port: int, address: int, size: int, write: bool, cycle: int) -> int: ...

    def answer_cycle(self, port: int, request: int) -> int: ...

    def advance(self, cycle: int) -> None: ...

    def drain(self) -> None: ...

    def be_patient(self) -> None: ...

    def port(self, k: int) -> int: ...

    def make_room(self, port: int) -> None: ...

    def report(self, ports: Sequence[MemoryPort], places: Mapping[ArrayName, AddressRange]) -> MemoryStatistics: ...


@dataclass(slots=True)
class Controller:
    """The memory of a run, which `make` makes for so many ports. Ports join while the network is built; it opens when all are known.

    `line`: bytes of a request. `outstanding`: requests of a port without an answer, at most (K). `prefetch`: lines fetched ahead (D; 0: none).
    `capacity`: bytes. `window`: cycles that the memory goes on at a time; all up to the model's look-ahead give the same.
    """

    make: Callable[[int], MemoryDevice]
    line: int = 64
    outstanding: int = 32
    prefetch: int = 8
    capacity: int = 1 << 34
    window: int = 0
    ports: list[MemoryPort] = field(default_factory=list)
    places: dict[ArrayName, AddressRange] = field(default_factory=dict)
    memory: MemoryDevice = field(init=False)

    def lay_out(self, graph: n.Graph, tensors: Mapping[str, Tensor]) -> dict[ArrayName, AddressRange]:
        """Place the arrays of a graph. Raises `SimulationError` if they are too large."""
        self.places = lay_out(graph, tensors, self.capacity, self.line)
        return self.places

    def open(self) -> None:
        self.memory = self.make(len(self.ports))

    def join(self, node: str, array: ArrayName, write: bool) -> int:
        """The number of a new port of a node, for one array."""
        tensor, _, kind = array
        self.ports.append(MemoryPort(node, tensor, kind, "write" if write else "read"))
        return len(self.ports) - 1

    def elements_in_flight(self, width: int) -> int:
        """How many elements of so many bytes a port holds for its node: those of all lines that may be on their way."""
        return self.outstanding * max(self.line // width, 1)

    @property
    def step(self) -> int:
        """Cycles that the memory goes on at a time."""
        return self.window or self.memory.lookahead

    def advance(self) -> bool:
        """No process can go on without an answer: let the memory go on. False if nothing is asked for.

        What is asked for later depends on an answer that is not known yet, and that is seen `lookahead` cycles later at the earliest.
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
        """The cycle of the last answer, after everything was asked for."""
        self.memory.drain()
        return int(self.memory.ports["last"].max(initial=-1))

    def statistics(self) -> MemoryStatistics:
        """Of a run that came to its end."""
        return self.memory.report(self.ports, self.places)


ControllerFactory: TypeAlias = Callable[[], Controller | None]
"""Gives every run the controller of a new memory; None where memory answers at once."""


def sequential_readers(graph: n.Graph) -> set[str]:
    """Names of the scans and loads that read all of their array in order: their references come, all and as they are, from the scan of the
    level above, up to the root."""
    names: set[str] = set()
    producers = graph.by_name
    for node in graph.nodes:
        if isinstance(node, n.Scan | n.Load):
            above = producers[node.inputs[0].node]
            level = node.level if isinstance(node, n.Scan) else len(graph.declared[node.tensor].format.levels)
            first = isinstance(above, n.Root) and level == 0
            below = isinstance(above, n.Scan) and above.name in names and above.tensor == node.tensor and above.level == level - 1
            if first or below:
                names.add(node.name)
    return names
