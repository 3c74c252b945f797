"""The memory behind a running circuit: the model of the simulators, with the requests of the circuit's ports.

A port counts the visible answers. Requests are answered in their order, so the count tells which requests are answered.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from fuseflow.firing_rules.expressions import count_bits
from fuseflow.hardware.arrays import array_of
from fuseflow.hardware.circuit import Circuit
from fuseflow.memory.layout import AddressRange
from fuseflow.memory.memory_interface import LOADED, MOVED, Controller
from fuseflow.samml.auxiliary_tensors import auxiliary_tensors
from fuseflow.tensors import Tensor

NONE = -1
"""The number of a port that has nothing to ask for, and is none of the memory's."""
Request: TypeAlias = tuple[int, int]
"""A request: its cycle, and the address of its line."""


@dataclass(slots=True)
class PortRun:
    """A port while its circuit runs. `site` is the number of its node, and `visible` has the cycles of known answers that were
    not counted yet. `line` is the bytes of a request. `known` counts the answers whose cycles are known, and `seen` the answers that
    are visible to the node."""

    number: int
    site: int
    place: AddressRange
    write: bool
    outstanding: int
    line: int
    requests: list[Request] = field(default_factory=list)
    visible: deque[int] = field(default_factory=deque)
    known: int = 0
    seen: int = 0

    def answers(self, cycle: int) -> int:
        """Return the number of answers so far that are visible in a cycle. Cycles must not decrease from call to call."""
        while self.visible and self.visible[0] <= cycle:
            self.visible.popleft()
            self.seen += 1
        return self.seen

    @property
    def has_room(self) -> bool:
        return len(self.requests) - self.seen < self.outstanding


class MemoryRun:
    """The memory of one run of a circuit, and its ports by node and kind of array. The ports `storing` store results from the
    scratchpad at the end. A circuit whose memory answers at once has no ports."""

    def __init__(self, circuit: Circuit, tensors: Mapping[str, Tensor]) -> None:
        self.controller, self.ports, self.last = circuit.machine.controller(), dict[tuple[str, str], PortRun](), -1
        self.storing = list[PortRun]()
        if self.controller is not None:
            self._open(self.controller, circuit, {**auxiliary_tensors(circuit.graph), **tensors})
        self.by_number = [port for port in (*self.ports.values(), *self.storing) if port.number != NONE]

    def _open(self, controller: Controller, circuit: Circuit, tensors: Mapping[str, Tensor]) -> None:
        places = controller.lay_out(circuit.graph, tensors)
        for site, unit in enumerate(circuit.units):
            for kind, port in unit.module.ports.items():
                array = array_of(unit, kind)
                if array not in places:  # tensors of no bytes are moved, without a port
                    self.ports[unit.node.name, kind] = PortRun(NONE, site, AddressRange(0, 0, 8), port.write, 1, controller.line)
                    continue
                number, line = controller.join(unit.node.name, array, port.write), controller.line_of(array)
                self.ports[unit.node.name, kind] = PortRun(number, site, places[array], port.write, controller.outstanding, line)
        controller.open()
        for number in controller.storing:
            place = AddressRange(controller.places[controller.stored[0]].base, 0, 8)
            self.storing.append(PortRun(number, len(circuit.units), place, True, controller.outstanding, controller.line))

    def is_loaded(self, cycle: int) -> bool:
        """Return whether everything is there in a cycle that is loaded into the scratchpad."""
        ports = [port for (_, kind), port in self.ports.items() if kind.startswith(MOVED[LOADED])]
        return sum(port.answers(cycle) for port in ports) >= sum(-(-port.place.length // port.line) for port in ports[:1])

    @property
    def model(self) -> Controller:
        """The memory, of a circuit that has ports."""
        assert self.controller is not None
        return self.controller

    @property
    def lookahead(self) -> int:
        """The least number of cycles after which an answer becomes visible."""
        return self.model.memory.lookahead

    @property
    def memory_lookahead(self) -> int:
        """The least number of cycles after which an answer of the memory becomes visible, and none of the scratchpad."""
        from fuseflow.memory.scratchpad import ModelWithScratchpad  # loads the compiler

        model = self.model.memory.model
        return model.behind.lookahead if isinstance(model, ModelWithScratchpad) else model.lookahead

    @property
    def tag(self) -> int:
        """The bits of a tag, which distinguishes the unanswered requests of a port."""
        return count_bits(self.model.outstanding)

    def address(self, port: PortRun, line: int) -> int:
        """Return the address of a line of the array of a port."""
        return port.place.base + line * port.line

    def ask(self, port: PortRun, address: int, cycle: int) -> None:
        """Make a request of a port for the line at an address, in a cycle."""
        self.model.memory.issue(port.number, address, port.line, port.write, cycle)
        port.requests.append((cycle, address))

    def advance(self, cycle: int) -> None:
        """Advance the memory to a cycle. All earlier requests must have been made."""
        self.model.memory.advance(cycle)
        for _ in self.answers():
            pass

    def goes_on(self, until: int | None) -> bool:
        """Advance the memory by a window, if a request is unanswered and no request can come before the window ends, and return
        whether it advanced. `until` is the cycle in which the circuit may fire next, or None."""
        if self.controller is None:
            return False
        end = self.controller.window_end()
        return end is not None and (until is None or until >= end) and self.controller.advance()

    def store(self, end: int) -> int:
        """Store the results that lie in the scratchpad and belong into the memory, from cycle `end` on, and return the cycles."""
        return 0 if self.controller is None else self.controller.store(end)

    def answers(self) -> Iterator[tuple[int, int]]:
        """Yield the answers that became known since the last call: the number of the node, and the cycle when it is visible."""
        memory = self.model.memory
        for port, answered in zip(self.by_number, memory.ports["answered"].tolist(), strict=True):
            for request in range(port.known, answered):
                visible = memory.answer_cycle(port.number, request)
                port.visible.append(visible)
                self.last = max(self.last, visible)
                yield port.site, visible
            port.known = answered
