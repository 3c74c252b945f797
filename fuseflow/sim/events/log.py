"""What simulators tell of a run, firing by firing: each with what it waited for, the tokens on their way, the answers of the memory.
The same from every simulator, but for how firings are put together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from fuseflow.samml import nodes as n
from fuseflow.sim.memory.statistics import MemoryPort

Ints: TypeAlias = npt.NDArray[np.int64]

TRACK, TIME, COUNT, STEP, CAUSE, SOURCE, BACK, DETAIL = range(8)
"""The columns of an event: `count` firings of a track, `step` cycles apart, the first in cycle `time` because of `cause` (`causes.py`): of
what the track `source` did in cycle `back`. The others wait for the one before. `detail`: of a token or slot the place of its edge in
`edges`, of an answer its port; -1 inside a node."""
EDGE, CYCLE, TOKENS, CYCLES = range(4)
"""The columns of tokens given or taken: so many on an edge from a cycle on, one a cycle, or all in that cycle (`cycles` is 1)."""

NEVER = 1 << 60


@dataclass(frozen=True, slots=True)
class Track:
    """A sequence of firings: a node, or what a node does at the same time (`role`). `helper`: it asks the memory, and its firings are not
    the node's. `relay`: no firings at all, but stops that wait for the values before them (of tiles, on comal)."""

    node: str
    role: str = ""
    helper: bool = False
    relay: bool = False

    @property
    def name(self) -> str:
        return f"{self.node} {self.role}".rstrip()


@dataclass(frozen=True, slots=True)
class Topology:
    """Who takes part in a run."""

    tracks: tuple[Track, ...]
    edges: tuple[n.Edge, ...]
    ports: tuple[MemoryPort, ...]


@dataclass(frozen=True, slots=True)
class CycleSpan:
    """Cycles from `start` on, before `end`."""

    start: int = 0
    end: int = NEVER


@dataclass(frozen=True, slots=True)
class LastEvent:
    """The last thing that happened: a firing of `track` in `cycle`, or, of a `port`, the answer to what `track` asked in cycle `request_cycle`.
    The run takes `tail` cycles more."""

    track: int
    cycle: int
    tail: int
    port: int = -1
    request_cycle: int = -1

    @property
    def cycles(self) -> int:
        return self.cycle + self.tail


class Sink(Protocol):
    """What listens to a run. Rows of one track, or of one edge and direction, come in order of time; those of others at any time."""

    tokens: bool
    """Whether it wants to hear of tokens and answers, too."""
    span: CycleSpan
    """Of the firings that it wants to hear of; of tokens all before its end."""

    def open(self, topology: Topology) -> None: ...

    def events(self, rows: Ints) -> None: ...

    def pushes(self, rows: Ints) -> None: ...

    def pops(self, rows: Ints) -> None: ...

    def answers(self, port: Ints, cycle: Ints, size: Ints, write: Ints) -> None: ...


def process_tracks(helpers: list[bool], names: list[str]) -> tuple[Track, ...]:
    """The tracks of processes in graph order: of each the node, and whether it is a helper."""
    tracks = []
    for k, (name, helper) in enumerate(zip(names, helpers, strict=True)):
        own = [j for j, other in enumerate(names) if other == name and not helpers[j]]
        role = f"asks {sum(o == name and h for o, h in zip(names[:k], helpers[:k], strict=True)) + 1}" if helper else ""
        if not helper and len(own) > 1:
            role = "in" if k == own[0] else "out"
        tracks.append(Track(name, role, helper))
    return tuple(tracks)
