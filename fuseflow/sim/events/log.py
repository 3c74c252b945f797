"""The event log: a simulator's report of a run, firing by firing. It has the cause of each firing, the tokens that are pushed and
popped, and the answers of the memory. Every simulator reports the same events, but each may pack several firings into one row in its
own way."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from fuseflow.machine.comal import ENDING_OPS
from fuseflow.machine.machine import Machine
from fuseflow.memory.memory_interface import Controller
from fuseflow.memory.statistics import MemoryPort
from fuseflow.samml import nodes as n

START, OWN, TOKEN, SLOT, MEMORY, INSIDE = range(6)
"""The causes are, in this order: nothing, in cycle 0; the last firing of the same process; a token; a slot of a full FIFO; an
answer of the memory; another process of the same node. If several events decided the cycle, the first of this list counts, so a
node that fires as often as it can waits for no other."""


Ints: TypeAlias = npt.NDArray[np.int64]

TRACK, TIME, COUNT, STEP, CAUSE, SOURCE, BACK, DETAIL, DUE = range(9)
"""The columns of an event. A row means `count` firings of a track that are `step` cycles apart. The first happens in cycle `time`
because of `cause` (above), an event of the track `source` in cycle `back`; each of the others waits for the firing
before. `detail` is the position of the edge in `edges` if the cause is a token or a slot, the port if it is an answer, and -1
inside a node. `due` is the cycle in which the first firing would have happened if every slot that it fills had been free: it is
before `time` if only a slot was missing."""
EDGE, CYCLE, TOKENS, CYCLES = range(4)
"""The columns of tokens that are pushed or popped. A row means `tokens` tokens on an edge from a cycle on: one in each cycle, or
all in that cycle if `cycles` is 1."""

NEVER = 1 << 60


@dataclass(frozen=True, slots=True)
class Track:
    """A track is a sequence of firings: of a node, or of one of its processes if it has several at the same time (`role`). A
    `helper` makes requests to the memory, and its firings do not count as firings of the node. A `relay` has no firings; its
    events are stops that wait for the values before them (of tiles, on machines with `rules: comal`)."""

    node: str
    role: str = ""
    helper: bool = False
    relay: bool = False

    @property
    def name(self) -> str:
        return f"{self.node} {self.role}".rstrip()


@dataclass(frozen=True, slots=True)
class Topology:
    """The tracks, edges and ports that take part in a run."""

    tracks: tuple[Track, ...]
    edges: tuple[n.Edge, ...]
    ports: tuple[MemoryPort, ...]


@dataclass(frozen=True, slots=True)
class CycleSpan:
    """The cycles from `start` to `end` - 1."""

    start: int = 0
    end: int = NEVER


@dataclass(frozen=True, slots=True)
class LastEvent:
    """The last event of a run: a firing of `track` in `cycle`, or, if it has a `port`, the answer to the request of `track` in
    cycle `request_cycle`. The run takes `tail` cycles more."""

    track: int
    cycle: int
    tail: int
    port: int = -1
    request_cycle: int = -1

    @property
    def cycles(self) -> int:
        return self.cycle + self.tail


def last_event(
    lasts: Mapping[int, int], ops: Sequence[str], machine: Machine, controller: Controller | None, senders: Callable[[int], int]
) -> LastEvent:
    """Return the last event of a run. `lasts` has the cycle of the last firing of each track but helpers, `ops` the operation of
    each track's node, and `senders` returns the track that makes the requests of a port."""
    comal = machine.rules == "comal"
    tails = {track: int(ops[track] in ENDING_OPS) if comal else 1 for track in lasts}
    track = max(lasts, key=lambda track: lasts[track] + tails[track])
    acknowledged = -1 if controller is None or comal else controller.acknowledged()
    if controller is None or acknowledged <= lasts[track]:
        storing = 0 if controller is None else controller.store(lasts[track] + tails[track])
        return LastEvent(track, lasts[track], tails[track] + storing)
    memory: Any = controller.memory
    port = int(np.argmax(memory.ports["last"]))
    request = memory.issue_cycle(port, int(memory.ports[port]["issued"]) - 1)
    return LastEvent(senders(port), acknowledged, 1 + controller.store(acknowledged + 1), port, request)


class Sink:
    """A sink receives the events of a run. The rows of one track, or of one edge and direction, come in the order of time; rows
    of different tracks or edges come in any order. A sink that does not override a method has no use for what it receives."""

    tokens: bool
    """Whether the sink also receives tokens and answers of the memory."""
    span: CycleSpan
    """The cycles whose firings the sink receives. It receives all tokens before the end of this span."""

    topology: Topology

    def open(self, topology: Topology) -> None:
        self.topology = topology

    def events(self, rows: Ints) -> None: ...

    def pushes(self, rows: Ints) -> None: ...

    def pops(self, rows: Ints) -> None: ...

    def answers(self, port: Ints, cycle: Ints, size: Ints, write: Ints) -> None: ...


def process_tracks(helpers: list[bool], names: list[str]) -> tuple[Track, ...]:
    """Return a track for each process, in graph order. `names` holds the name of each process's node, and `helpers` whether the
    process is a helper."""
    tracks = []
    for k, (name, helper) in enumerate(zip(names, helpers, strict=True)):
        own = [j for j, other in enumerate(names) if other == name and not helpers[j]]
        role = f"asks {sum(o == name and h for o, h in zip(names[:k], helpers[:k], strict=True)) + 1}" if helper else ""
        if not helper and len(own) > 1:
            role = "in" if k == own[0] else "out"
        tracks.append(Track(name, role, helper))
    return tuple(tracks)


class Bins:
    """Counts of `things` series of events by cycle, in at most `size` bins from cycle `start` on. The `width` of all bins doubles
    when a later cycle does not fit."""

    def __init__(self, things: int, start: int, size: int) -> None:
        assert size % 2 == 0
        self.start, self.size, self.width = start, size, 1
        self.counts: Ints = np.zeros((things, size), np.int64)

    def add(self, thing: Ints, cycle: Ints, count: Ints, step: Ints) -> None:
        """For each row, add `count` events of the series `thing`, `step` cycles apart, from `cycle` on, which is not before `start`."""
        if not len(cycle):
            return
        first = cycle - self.start
        last = first + (count - 1) * step
        self._widen(int(last.max()))
        low, high = first // self.width, last // self.width
        bins = np.arange(int((high - low).sum()) + len(first))  # of each entry all that it reaches into
        spans = high - low + 1
        entry = np.repeat(np.arange(len(first)), spans)
        bins = bins - np.repeat(np.cumsum(spans) - spans, spans) + low[entry]
        until = np.minimum(((bins + 1) * self.width - first[entry] + step[entry] - 1) // step[entry], count[entry])
        since = np.maximum((bins * self.width - first[entry] + step[entry] - 1) // step[entry], 0)
        np.add.at(self.counts, (thing[entry], bins), until - since)

    def put(self, thing: Ints, cycle: Ints, count: Ints) -> None:
        """For each row of the arrays, add `count` events of the series `thing` in one cycle."""
        if len(cycle):
            first = cycle - self.start
            self._widen(int(first.max()))
            np.add.at(self.counts, (thing, first // self.width), count)

    def _widen(self, last: int) -> None:
        while last >= self.size * self.width:
            halves = self.counts.reshape(len(self.counts), -1, 2).sum(axis=2)
            self.counts = np.concatenate([halves, np.zeros_like(halves)], axis=1)
            self.width *= 2
