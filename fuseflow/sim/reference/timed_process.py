"""Time: FIFOs whose tokens and slots carry cycles, and the firings of a process. The rules of time are in this file only.

A process is a generator. It inspects the heads of its input FIFOs, and calls `fire` (or `close`) for the cycle of its next
firing. It takes and pushes tokens at that cycle, and yields a missing head or slot to wait for it. The cycle of a firing follows
from

    T(n) = max(T(n-1) + II, the visible cycle of every inspected token, the cycle from which every needed slot is free)

and never from the order in which processes run.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Any, Protocol, TypeAlias

from fuseflow.errors import SimulationError
from fuseflow.memory.layout import ArrayKind
from fuseflow.samml.hops import Turn
from fuseflow.samml.nodes import Edge, Node
from fuseflow.samml.tokens import D, Stop

Item: TypeAlias = tuple[Any, int]
"""A token and the cycle from which it is visible. Between the processes of an accumulator a workspace is in the token's place."""


class Fifo(deque[Item]):
    """A FIFO holds the tokens on their way to one reader. It is unbounded, and its `edge` is None inside a node.

    `pops` are the cycles in which the last P tokens were taken, where P is the most tokens that the FIFO ever held at once. If
    the token P places before a new one was taken before the new one was produced, its slot is free. Otherwise P grows by 1.
    """

    __slots__ = ("edge", "latency", "pops", "slots", "writer")

    delay = 0  # cycles from when the writer says that a token is visible until this reader sees it
    writer: Process
    slots: Slots | None

    def __init__(self, edge: Edge | None = None, items: Iterable[Item] = ()) -> None:
        super().__init__(items)
        self.edge = edge
        self.slots = None
        self.latency = 1  # from the firing that produced a token until this reader sees it
        self.pops = deque((-1,))

    def take(self, t: int) -> None:
        """Remove the head in cycle `t`."""
        pops = self.pops
        if pops[0] < self.popleft()[1] - self.latency:
            pops.popleft()
        pops.append(t)

    @property
    def peak(self) -> int:
        """The most slots that were in use at once. A slot is in use from the firing that fills it until the cycle of the pop."""
        return len(self.pops)


class BoundedFifo(Fifo):
    """A FIFO of `depth` slots. The producing firing fills a slot, and the slot is free in the cycle after the token is taken."""

    __slots__ = ()

    slots: Slots

    def __init__(self, edge: Edge | None, depth: int) -> None:
        super().__init__(edge)
        self.slots = Slots(depth, edge)

    def take(self, t: int) -> None:
        pops = self.pops
        if pops[0] < self.popleft()[1] - self.latency:
            pops.popleft()
        pops.append(t)
        self.slots.append(t + 1)


class DelayedFifo(Fifo):
    """An unbounded FIFO behind broadcasts or hops: each token is visible `delay` cycles later than in a `Fifo`."""

    __slots__ = ("delay",)

    def __init__(self, edge: Edge, delay: int) -> None:
        super().__init__(edge)
        self.delay = delay

    def append(self, item: Item) -> None:
        token, visible = item
        super().append((token, visible + self.delay))


class LinkFifo(BoundedFifo):
    """A bounded FIFO behind hops: each token is visible `delay` cycles later than in a `BoundedFifo`, and its slot is free `back`
    cycles later. The hops have `added` slots. A slot is in use until it is free."""

    __slots__ = ("back", "delay")

    def __init__(self, edge: Edge, depth: int, delay: int, added: int, back: int) -> None:
        super().__init__(edge, depth)
        self.slots = Slots(depth, edge, added, back)
        self.delay, self.back = delay, back

    def append(self, item: Item) -> None:
        token, visible = item
        super().append((token, visible + self.delay))

    def take(self, t: int) -> None:
        pops, free = self.pops, t + self.back
        if pops[0] < self.popleft()[1] - self.latency:
            pops.popleft()
        pops.append(free)
        self.slots.append(free + 1)


class Slots(deque[int]):
    """The free slots of a FIFO: the cycles from which they can be filled, in order. Another `unused` slots were never filled.

    `depth` are the slots at the reader, before which hops have `added` slots. A slot is free `1 + back` cycles after its token is
    taken."""

    __slots__ = ("back", "depth", "edge", "reader", "unused")

    reader: Process

    def __init__(self, depth: int, edge: Edge | None = None, added: int = 0, back: int = 0) -> None:
        super().__init__()
        self.depth, self.unused = depth, depth + added
        self.edge, self.back = edge, back

    def fill(self) -> None:
        if self.unused:
            self.unused -= 1
        else:
            self.popleft()

    def grow(self) -> None:
        """Add a slot that is free from cycle 0 on."""
        self.depth += 1
        self.append(0)


class Output:
    """A stream as its writer sees it. Every reader has a separate FIFO, in `fifos`."""

    __slots__ = ("appends", "count", "fifos", "latency", "slots")

    def __init__(self, latency: int, fifos: Sequence[Fifo] = ()) -> None:
        self.latency, self.fifos = latency, tuple(fifos)
        self.slots = tuple(f.slots for f in fifos if f.slots is not None)
        self.appends: tuple[Callable[[Item], None], ...] = tuple(f.append for f in fifos)
        self.count = 0
        for fifo in fifos:
            fifo.latency = latency + fifo.delay

    def record(self) -> list[Item]:
        """Return a list to which every later token of the stream is added, with the cycle from which it is visible."""
        items: list[Item] = []
        self.appends = (*self.appends, items.append)
        return items

    def push(self, token: Any, t: int) -> None:
        """Produce `token` in the firing at cycle `t`."""
        item = (token, t + self.latency)
        self.count += 1
        for append in self.appends:
            append(item)


class BoundedOutput(Output):
    """A stream that has a bounded reader."""

    __slots__ = ()

    def push(self, token: Any, t: int) -> None:
        for slots in self.slots:
            slots.fill()
        super().push(token, t)


class LaggedOutput(Output):
    """A stream whose values become visible `lag` cycles later than its stops would. A stop becomes visible no earlier than the value
    before it."""

    __slots__ = ("lag", "last")

    def __init__(self, fifos: Sequence[Fifo], lag: int) -> None:
        super().__init__(1, fifos)
        self.lag = lag
        self.last = 0  # when the last value is given

    def push(self, token: Any, t: int) -> None:
        if token is D or token.__class__ is Stop:
            super().push(token, max(t, self.last))
        else:
            self.last = t + self.lag
            super().push(token, self.last)


def make_output(latency: int, fifos: Sequence[Fifo] = ()) -> Output:
    """Return the output of a stream with these readers, bounded if one of them is."""
    return (BoundedOutput if any(f.slots is not None for f in fifos) else Output)(latency, fifos)


class Backlog:
    """A condition that is true while no reader of the outputs is `limit` tokens behind. It is not part of the model: it bounds
    the memory of the simulator."""

    __slots__ = ("fifos", "limit")

    def __init__(self, outputs: Sequence[Output], limit: int) -> None:
        self.fifos, self.limit = [f for o in outputs for f in o.fifos], limit

    def __bool__(self) -> bool:
        return all(len(f) < self.limit for f in self.fifos)


class Condition(Protocol):
    """A condition that a process may wait for. It is true when a process need not wait any longer."""

    def __bool__(self) -> bool: ...


Wait: TypeAlias = Fifo | Slots | Condition
"""The thing that a process waits for: it is true, in a Boolean context, once the process need not wait."""
Steps: TypeAlias = Generator[Wait, None, None]


class Process:
    """A process is one sequence of firings with its FIFOs: a whole node, or a piece of a node that fires on its own."""

    __slots__ = (
        "after", "bounded", "closings", "elements", "firings", "first", "helper", "inputs", "interval", "journal", "most_held", "node",
        "outputs", "pause", "ready", "starved", "steps", "turn", "waited", "waits",
    )  # fmt: skip

    steps: Steps
    journal: Any  # what notes its firings, in a traced run
    turn: Turn  # of a `TurnProcess`

    def __init__(self, node: Node, inputs: Sequence[Fifo], outputs: Sequence[Output], interval: int) -> None:
        self.node, self.inputs, self.outputs, self.interval = node, tuple(inputs), tuple(outputs), interval
        self.bounded = any(o.slots for o in outputs)
        self.firings = self.closings = self.starved = 0
        self.waited = 0  # cycles in which only an answer of the memory was missing
        self.first = -1
        self.after = 0  # the cycle after the last firing
        self.pause = 1  # the interval after a stop
        self.ready = 0  # the first cycle that the initiation interval allows
        self.waits: Wait | None = None  # None: can run, or has ended
        self.helper = False  # requests data for another process: its firings are not the node's
        self.most_held: int | None = None  # the most entries in a workspace, if it has any
        self.elements: dict[ArrayKind, int] = {}  # elements requested from memory, by array: pos, crd, val

    def fire(self, visible: int, free: int = 0) -> int:
        """Fire on a value, and return the cycle of the firing.

        `visible` is the cycle from which all tokens that the firing inspects are visible, or 0 if it inspects none. Until then
        the process is starved. `free` is the cycle from which the slots that the firing fills are free.
        """
        t = self.ready
        if visible > self.after:
            self.starved += visible - self.after
            if visible > t:
                t = visible
        if free > t:
            t = free
        if not self.firings:
            self.first = t
        self.firings += 1
        self.after = t + 1
        self.ready = t + self.interval
        return t

    def close(self, visible: int, free: int = 0) -> int:
        """Fire on a stop or `D`, and return the cycle. The next firing may follow `pause` cycles later. Arguments as in
        `fire`."""
        t = self.fire(visible, free)
        self.closings += 1
        self.ready = t + self.pause
        return t

    def answered(self, visible: int, answer: int) -> int:
        """Return the cycle from which a token is visible (`visible`) and its answer is, too (`answer`), and count the cycles of
        waiting. Call this once for each firing that waits."""
        waiting_from = max(visible, self.after)
        if answer > waiting_from:
            self.waited += answer - waiting_from
        return max(visible, answer)

    @property
    def occupied(self) -> int:
        """The least number of cycles that the firings of the process take."""
        return self.values * self.interval + self.closings * self.pause

    @property
    def last(self) -> int:
        """The cycle of the last firing, or -1 before the first."""
        return self.after - 1

    @property
    def blocked(self) -> int:
        """The cycles up to the last firing in which the process did not fire and was not starved."""
        return self.after - self.firings - self.starved

    @property
    def values(self) -> int:
        """The number of firings on values."""
        return self.firings - self.closings

    def take(self, fifo: Fifo, expected: Any, t: int) -> None:
        """Remove the head of a FIFO in cycle `t`. Raise `SimulationError` if it is not the token `expected`."""
        head = fifo[0][0]
        if head != expected:
            raise self.misaligned(head, expected)
        fifo.take(t)

    def refused(self) -> SimulationError:
        return self.error("got the empty token `N`, which it refuses: put an `alu copy` with the implicit value before it")

    def outside(self) -> SimulationError:
        return self.error(f"a reference is outside its tensor after {self.firings} firings")

    def misaligned(self, *tokens: Any) -> SimulationError:
        return self.error(f"its inputs differ in structure: {' against '.join(map(str, tokens))} after {self.firings} firings")

    def error(self, message: str) -> SimulationError:
        return SimulationError(f"node `{self.node.name}` ({self.node.op}): {message}")


class TurnProcess(Process):
    """A process of a node that shares a port to the memory. It fires on values in its turn only."""

    __slots__ = ()

    def fire(self, visible: int, free: int = 0) -> int:
        t = self.turn.next(max(self.ready, visible, free))
        return super().fire(visible if self.firings else t, t)

    def close(self, visible: int, free: int = 0) -> int:
        t = super().fire(visible, free)
        self.closings += 1
        self.ready = t + self.pause
        return t


def await_tokens(visible: int, fifos: Iterable[Fifo]) -> Generator[Wait, None, int]:
    """Wait for a token in each FIFO. Returns the cycle from which all are visible, at least `visible`."""
    for fifo in fifos:
        while not fifo:
            yield fifo
        if fifo[0][1] > visible:
            visible = fifo[0][1]
    return visible


def look_behind(visible: int, fifo: Fifo) -> Generator[Wait, None, int]:
    """Wait for the token after the head of a FIFO. Returns the cycle by which that token is visible, at least `visible`."""
    head = fifo.popleft()
    visible = yield from await_tokens(visible, (fifo,))
    fifo.appendleft(head)
    return visible


def await_slots(*outputs: Output) -> Generator[Wait, None, int]:
    """Wait for a slot at every bounded reader. Returns the cycle from which all are free, or 0 if all were never filled."""
    free = 0
    for stream in outputs:
        for slots in stream.slots:
            if not slots.unused:
                while not slots:
                    yield slots
                if slots[0] > free:
                    free = slots[0]
    return free
