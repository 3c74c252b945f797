"""The ports of a node at the memory: its requests, and its waits for answers. There is one port for each array of a node.

A node that reads is two processes. The asker reads the inputs and requests at most one line a cycle. Consecutive elements in one
line are one request, and request n waits for the answer to request n - K. The asker emits the numbers of requests to the
responder on a link that holds the elements of K lines. The responder waits for the answer and emits the node's output. Where a
whole array is read in order, a separate process fetches its lines ahead: line n is requested when line n - D is first needed, and
none before the array is loaded into the scratchpad. A preloaded array has separate ports, which read the whole array from the start
on, and its readers wait for their lines. A node that writes continues once a line is sent.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeAlias

from fuseflow.memory.layout import AddressRange, ArrayName
from fuseflow.memory.memory_interface import Controller
from fuseflow.samml.nodes import Node
from fuseflow.samml.writers import LanePart
from fuseflow.sim.reference.timed_process import Process, Steps, Wait


class Answer:
    """A condition that is true once the answer to request number `request` at a port is known."""

    __slots__ = ("port", "request")

    def __init__(self, port: RequestPort, request: int) -> None:
        self.port, self.request = port, request

    def __bool__(self) -> bool:
        return self.cycle >= 0

    @property
    def on(self) -> Process:
        """The process that made the request."""
        return self.port.sender

    @property
    def cycle(self) -> int:
        return self.port.controller.memory.answer_cycle(self.port.number, self.request)


class PreloadAnswer:
    """A condition that is true once a line of a preloaded array, and all lines before it, have come."""

    __slots__ = ("answers",)

    def __init__(self, port: PreloadPort, line: int) -> None:
        count = len(port.banks)
        self.answers = [Answer(bank, (line - b) // count) for b, bank in enumerate(port.banks[: line + 1])]

    def __bool__(self) -> bool:
        return all(self.answers)

    @property
    def on(self) -> Process:
        """The process that made the first of the unanswered requests."""
        return next(answer.on for answer in self.answers if not answer)

    @property
    def cycle(self) -> int:
        return max(answer.cycle for answer in self.answers)


class Touch:
    """A condition that is true once a line of an array that is fetched ahead has been needed."""

    __slots__ = ("line", "port")

    def __init__(self, port: PrefetchPort, line: int) -> None:
        self.port, self.line = port, line

    def __bool__(self) -> bool:
        return self.line < len(self.port.touched)

    @property
    def on(self) -> Process:
        """The process that needs the line."""
        return self.port.asker


def await_answer(port: ReadPort, request: int | None) -> Generator[Wait, None, int]:
    """Wait for the answer to a request at a port. Returns the cycle of the answer, or 0 if there is no request."""
    if request is None:
        return 0
    answer = port.answer(request)
    while not answer:
        yield answer
    return answer.cycle


def await_loaded(loads: PreloadPort | None) -> Generator[Wait, None, int]:
    """Wait for all lines that are loaded into the scratchpad, and return the cycle of the last, or 0 if there is none."""
    return 0 if loads is None else (yield from await_answer(loads, loads.banks[0].lines - 1))


def fetching_process(node: Node) -> Process:
    """Return a process that requests lines without an input."""
    process = Process(node, (), (), 1)
    process.helper = True
    return process


def is_dropped(process: Process) -> bool:
    """Return whether a process of a network that is stuck fetches lines that nothing will need: those of elements that no token names at
    the end of an array, such as the padding of a level n:m."""
    return isinstance(process.waits, Touch) and process.waits.on.waits is None


class RequestPort:
    """A port requests lines of an array at `place`, in order, with a bounded number of unanswered requests. The process `sender`
    makes the requests. `first` is the number of the array's first line, and `lines` their number."""

    sender: Process

    write = False
    waits = False  # whether its waits for answers count as those of the node

    def __init__(self, controller: Controller, place: AddressRange, node: Node, array: ArrayName) -> None:
        self.controller, self.place, self.array = controller, place, array
        self.number = controller.join(node.name, array, self.write)
        self.line_bytes = line = controller.line_of(array)
        self.line_bits = 8 * line
        self.first, self.lines = place.base // line, -(-place.length // line)
        self.issued = 0

    def answer(self, request: int) -> Answer:
        """Return a condition that is true once a request is answered."""
        return Answer(self, request)

    def send(self, p: Process, line: int, visible: int, free: int = 0) -> Generator[Wait, None, int]:
        """Fire `p` to request a line, once the answers allow it, and return the cycle. `visible` and `free` are as in `Process.fire`."""
        credit = self.issued - self.controller.outstanding
        if credit >= 0:
            answer = Answer(self, credit)
            while not answer:
                yield answer
            if self.waits:
                p.answered(max(visible, p.ready), answer.cycle)
            free = max(free, answer.cycle)
        t = p.fire(visible, free)
        self.controller.memory.issue(self.number, line * self.line_bytes, self.line_bytes, self.write, t)
        self.issued += 1
        return t


class DemandPort(RequestPort):
    """A port that reads lines on demand, as its asker needs them."""

    line = -1  # the last that was requested

    def ask(self, p: Process, low: int, high: int, visible: int, free: int) -> Generator[Wait, None, tuple[int, int]]:
        """Fire `p` to request the bits from `low` to before `high` of the array. Returns the cycle of the last firing, and the
        number of the request with the last bit."""
        base = 8 * self.place.base
        first, last = (base + low) // self.line_bits, (base + high - 1) // self.line_bits
        first += first == self.line
        if first > last:
            return p.fire(visible, free), self.issued - 1
        t = 0
        for line in range(first, last + 1):
            t = yield from self.send(p, line, visible, free)
        self.line = last
        return t, self.issued - 1


class PrefetchPort(RequestPort):
    """A port that reads a whole array in order, ahead of the `asker`. `touched` holds the cycle in which each line was first needed."""

    asker: Process

    def __init__(self, controller: Controller, place: AddressRange, node: Node, array: ArrayName) -> None:
        super().__init__(controller, place, node, array)
        self.touched: list[int] = []

    def ask(self, p: Process, low: int, high: int, visible: int, free: int) -> Generator[Wait, None, tuple[int, int]]:
        """Fire `p`, which needs the bits from `low` to before `high` of the array. Returns the cycle of the firing, and the
        number of the request with the last bit."""
        t, last = p.fire(visible, free), (high - 1) // self.line_bits
        while len(self.touched) <= last:
            self.touched.append(t)
        return t, last
        yield  # a generator, as in `DemandPort`

    def fetch(self, node: Node, loads: PreloadPort | None) -> Process:
        """Return the process that requests all lines ahead of their use, once `loads` has read all of its lines."""
        process = self.sender = fetching_process(node)
        process.steps = self._steps(process, loads)
        return process

    def _steps(self, p: Process, loads: PreloadPort | None) -> Steps:
        loaded = yield from await_loaded(loads)
        for line in range(self.lines):
            free, needed = 0, line - self.controller.prefetch
            if needed >= 0:
                touch = Touch(self, needed)
                while not touch:
                    yield touch
                free = self.touched[needed] + 1
            yield from self.send(p, self.first + line, 0 if line else loaded, free)


class StorePort(RequestPort):
    """A port that writes lines from the scratchpad to the memory."""

    write = True


class PreloadPort:
    """P ports that read a whole array once, in order, for all nodes that read it. Port n mod P requests line n as soon as it may.
    A line counts as read once all lines before it are, too."""

    def __init__(
        self,
        controller: Controller,
        place: AddressRange,
        node: Node,
        array: ArrayName,
        count: int,
        kind: type[RequestPort] = RequestPort,
    ) -> None:
        self.place, self.array = place, array
        self.banks = [kind(controller, place, node, array) for _ in range(count)]

    def ask(self, p: Process, low: int, high: int, visible: int, free: int) -> Generator[Wait, None, tuple[int, int]]:
        """Fire `p`, which needs the bits from `low` to before `high`. Returns the cycle, and the line with the last bit."""
        return p.fire(visible, free), (high - 1) // self.banks[0].line_bits
        yield  # a generator, as in `DemandPort`

    def answer(self, line: int) -> PreloadAnswer:
        """Return a condition that is true once a line, and all lines before it, have come."""
        return PreloadAnswer(self, line)

    def fetch(self, node: Node) -> list[Process]:
        """Return the processes that read the array, one for each port."""
        for number, bank in enumerate(self.banks):
            bank.sender = fetching_process(node)
            bank.sender.steps = self._steps(bank, number)
        return [bank.sender for bank in self.banks]

    def _steps(self, bank: RequestPort, number: int) -> Steps:
        for line in range(number, bank.lines, len(self.banks)):
            yield from bank.send(bank.sender, bank.first + line, 0)


ReadPort: TypeAlias = DemandPort | PrefetchPort | PreloadPort


class WritePort(RequestPort):
    """A port that writes an array from its start, or a lane's `part` of it. `filled` is the place of the next bit. A line is sent in
    the firing that fills it, or in the firing after which the lane continues in another line."""

    write = waits = True

    def __init__(
        self,
        controller: Controller,
        place: AddressRange,
        node: Node,
        array: ArrayName,
        filled: int = 0,
        part: LanePart | None = None,
    ) -> None:
        super().__init__(controller, place, node, array)
        self.part, self.filled = part, filled if part is None else part.first * place.bits
        self.left = 0 if part is None else part.run  # elements of the run that the lane writes
        self.begun = part is None and filled % self.line_bits > 0

    def put(self, p: Process, size: int, visible: int) -> Generator[Wait, None, int]:
        """Fire `p` to write `size` bits: once for each line that they fill or leave, or once. Returns the last cycle."""
        end = self.filled + size
        if end > 8 * self.place.length:
            raise p.error(f"writes more than the {self.place.length:,} bytes that the memory has for it")
        first, last = self.filled // self.line_bits, (end - 1) // self.line_bits
        self.filled = end
        if self.part is not None:
            self.left -= 1
            if not self.left:
                self.filled, self.left = end + self.part.gap * self.place.bits, self.part.run
        self.begun = last == self.filled // self.line_bits
        t = -1
        for line in range(first, last + (not self.begun)):
            t = yield from self.send(p, self.first + line, visible)
        return p.fire(visible) if t < 0 else t

    def flush(self, p: Process, visible: int) -> Generator[Wait, None, None]:
        """Fire `p` to write the last line, if it was begun."""
        if self.begun:
            yield from self.send(p, self.first + self.filled // self.line_bits, visible)
