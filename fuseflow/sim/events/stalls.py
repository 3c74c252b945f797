"""The stalls of a run over time: for each window of cycles, the number of cycles in which a node worked, or waited for each
cause."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from fuseflow.sim.events import log
from fuseflow.sim.events.log import Bins, CycleSpan, Ints, Sink, Topology

WINDOWS = 96
"""The largest number of windows."""

STATES = ("busy", "starved", "memory", "blocked")
"""The states of a node in a cycle: it works, or it waits for a token, for an answer of the memory, or for anything else, such as
room in a FIFO or another process of the same node."""
_STATE_OF_CAUSE = {log.START: 1, log.OWN: 0, log.INSIDE: 3, log.TOKEN: 1, log.MEMORY: 2, log.SLOT: 3}


@dataclass(frozen=True, slots=True)
class Stalls:
    """The stalls of a run in windows of `window` cycles.

    `nodes` has, for each node, the cycles in each state (the rows, as in `STATES`) and window (the columns). The cycles of
    several processes of a node are added up; `processes` has their number.
    """

    window: int
    nodes: Mapping[str, Ints]
    processes: Mapping[str, int]


class StallSink(Sink):
    """A sink that counts, for every track, the cycles in each state in each window. The cycles between two firings count for the
    cause of the later one."""

    tokens = False

    def __init__(self) -> None:
        self.span = CycleSpan()

    def open(self, topology: Topology) -> None:
        super().open(topology)
        tracks = len(topology.tracks)
        self.bins = Bins(len(STATES) * tracks, 0, WINDOWS)
        self.free: Ints = np.zeros(tracks, np.int64)  # the cycle after the last firing of each track
        self.state: Ints = np.array([_STATE_OF_CAUSE[cause] for cause in range(len(_STATE_OF_CAUSE))])

    def events(self, rows: Ints) -> None:
        rows = rows[np.argsort(rows[:, log.TRACK], kind="stable")]
        if not len(rows):
            return
        track, first = rows[:, log.TRACK], rows[:, log.TIME]
        ends = first + (rows[:, log.COUNT] - 1) * rows[:, log.STEP] + 1
        before = np.concatenate([[0], ends[:-1]])
        leading = np.concatenate([[True], track[1:] != track[:-1]])
        before[leading] = self.free[track[leading]]
        waited = first - before
        waits = waited > 0
        self._count(track[waits], self.state[rows[waits, log.CAUSE]], before[waits], waited[waits])
        self._count(track, np.zeros(len(rows), np.int64), first, ends - first)
        last = np.concatenate([track[1:] != track[:-1], [True]])
        self.free[track[last]] = ends[last]

    def _count(self, track: Ints, state: Ints, start: Ints, cycles: Ints) -> None:
        self.bins.add(track * len(STATES) + state, start, cycles, np.ones(len(track), np.int64))

    def stalls(self, cycles: int) -> Stalls:
        """Return the stalls of a run of `cycles` cycles, without those of helper tracks, which request lines for a node."""
        used = -(-cycles // self.bins.width)
        counts = self.bins.counts.reshape(len(self.topology.tracks), len(STATES), -1)[:, :, :used]
        nodes: dict[str, Ints] = {}
        processes: dict[str, int] = {}
        for track, own in zip(self.topology.tracks, counts, strict=True):
            if not track.helper and not track.relay:
                nodes[track.node] = nodes[track.node] + own if track.node in nodes else own
                processes[track.node] = processes.get(track.node, 0) + 1
        return Stalls(self.bins.width, nodes, processes)
