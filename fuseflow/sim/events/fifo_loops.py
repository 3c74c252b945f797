"""FIFO loops: the stretches of a critical path that go around a full FIFO.

A firing that waits for a slot leads the path to the reader that freed the slot. If the path comes back from there to an earlier
firing of the same track, it went around a loop: the track emitted the tokens for which the reader waited, so the track was
delayed by the FIFO and not by a slow reader. In some cycles of the loop the track had everything it needed except a slot. A
deeper FIFO takes these cycles away, so they count for the FIFO, and not for the path's steps. A path that does not come back
followed a slow reader, and nothing is counted. Nor is it counted if the path comes back to the reader first: the reader then
waited for its own earlier firings, and not for the writer.

If several full FIFOs follow each other, so that the reader of one waits for a slot of the next, the last one is the one that is
too shallow. An inner loop is counted before a loop around it.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from fuseflow.sim.events.log import CAUSE, DETAIL, DUE, NEVER, SLOT, TIME, Ints

StepKind: TypeAlias = Literal["work", "latency", "full", "memory"]


class StepLabel(NamedTuple):
    """The cause of the cycles of a step: a track, the kind of the step, the number of an edge if the cause is a FIFO, and a port
    of the memory if it is an answer."""

    track: int
    kind: StepKind
    edge: int = -1
    port: int = -1


class StepTotals:
    """Totals over the steps of a path, by label: their cycles, and how often such a step occurred."""

    def __init__(self) -> None:
        self.cycles: dict[StepLabel, int] = defaultdict(int)
        self.times: dict[StepLabel, int] = defaultdict(int)

    def add(self, label: StepLabel, cycles: int, times: int) -> None:
        self.cycles[label] += cycles
        self.times[label] += times

    def move(self, cycles: int, label: StepLabel, other: StepLabel) -> None:
        """Move a number of cycles from one label to the `other` label."""
        self.cycles[label] -= cycles
        self.cycles[other] += cycles


Claims: TypeAlias = "dict[tuple[Departure, int], int]"
"""Numbers of cycles, by the departure to whose loop they would belong, and the number of their label."""


@dataclass(slots=True, eq=False)
class Departure:
    """A firing of `track` from which the path left through a full FIFO. `label` names the FIFO that is too shallow. The path's
    steps from number `begin` on follow the departure. `claims` are the claims of steps of earlier windows that follow this
    departure and no later one. `due` is the cycle from which the track waited for a slot before its first firing after the
    window."""

    track: int
    label: StepLabel
    begin: int
    due: int = NEVER
    claims: Claims = field(default_factory=dict)


class FifoLoops:
    """The open departures of a path that is followed backwards, window by window, and its steps since the first departure."""

    def __init__(self, totals: StepTotals) -> None:
        self.totals = totals
        self.departures: list[Departure] = []
        self.chained: list[Departure] = []  # those that may still wait for the FIFO behind theirs
        self.labels: list[StepLabel] = []
        self.numbers: dict[StepLabel, int] = {}
        self.steps: list[tuple[int, int, int]] = []  # of each the number of its label, its first cycle and the one after its last
        self.cut: tuple[StepLabel, int, int] | None = None  # the part of the last step that is before the window

    def open(self, events: list[Ints], start: int) -> None:
        """Begin a window that starts in cycle `start`. `events` has the rows of events of each track in the window."""
        self.events, self.start = events, start
        self.held: dict[int, _HeldCycles] = {}
        if self.cut is not None:
            label, low, high = self.cut
            self.cut = None
            self.step(label, low, high)

    def step(self, label: StepLabel, low: int, high: int) -> None:
        """Add a step of the path, from cycle `low` up to `high`."""
        if self.departures and low < high:
            number = self.numbers.setdefault(label, len(self.numbers))
            if number == len(self.labels):
                self.labels.append(label)
            if low < self.start:
                self.cut = label, low, min(high, self.start)
            self.steps.append((number, max(low, self.start), max(high, self.start)))

    def leave(self, track: int, label: StepLabel) -> None:
        """Note that the path leaves a track through a full FIFO to the FIFO's reader. `label` is the label of that step."""
        for departure in self.chained:
            departure.label = label
        departure = Departure(track, label, len(self.steps))
        self.departures.append(departure)
        self.chained.append(departure)

    def arrive(self, track: int, waits_elsewhere: bool) -> None:
        """Note that the path comes to a firing of a track. `waits_elsewhere` says that the firing waits neither for a slot nor
        for its own node, so no full FIFO after it delays it."""
        for departure in [d for d in self.departures if d.label.track == track and d not in self.chained]:
            self._forget(departure)
        if waits_elsewhere:
            self.end_chain()
        for k, departure in enumerate(self.departures):
            if departure.track == track:
                self._close(k)
                return

    def end_chain(self) -> None:
        """Note that the path is at a firing that no full FIFO delays."""
        self.chained.clear()

    def _close(self, k: int) -> None:
        """Count the cycles of the loop back to departure number `k` for its FIFO, and drop the departures of the loop."""
        loop = self.departures[k]
        cycles = self._claims(k, loop.begin, len(self.steps))
        for inner in self.departures[k:]:
            for (owner, number), count in inner.claims.items():
                if owner is loop:
                    cycles[number] = cycles.get(number, 0) + count
        for number, count in cycles.items():
            self.totals.move(count, self.labels[number], loop.label)
        self.chained = [departure for departure in self.chained if departure not in self.departures[k:]]
        del self.steps[loop.begin :]
        del self.departures[k:]

    def _forget(self, departure: Departure) -> None:
        """Remove a departure that is no loop. Its steps may still belong to loops of earlier departures."""
        k = self.departures.index(departure)
        if k:
            before = self.departures[k - 1].claims
            for (owner, number), count in departure.claims.items():
                if owner is not departure:
                    before[owner, number] = before.get((owner, number), 0) + count
        del self.departures[k]
        if not self.departures:
            self.steps.clear()

    def close(self) -> None:
        """End a window: turn the steps so far into claims of the open departures."""
        begins = [departure.begin for departure in self.departures]
        for departure, end in zip(self.departures, [*begins, len(self.steps)][1:], strict=True):
            for k, outer in enumerate(self.departures):
                for number, count in self._claims(k, departure.begin, end).items():
                    departure.claims[outer, number] = departure.claims.get((outer, number), 0) + count
                if outer is departure:
                    break
        for departure in self.departures:
            departure.due = self._held(departure).due_after(self.start)
            departure.begin = 0
        self.steps.clear()

    def _claims(self, k: int, begin: int, end: int) -> dict[int, int]:
        """Return, by the number of the label, the cycles of the steps `begin` to `end` in which the track of departure `k` waited
        for a slot."""
        if begin == end:
            return {}
        number, low, high = np.array(self.steps[begin:end], np.int64).T
        held = self._held(self.departures[k])
        cycles = np.bincount(number, held.before(high) - held.before(low)).astype(np.int64)
        return {int(label): int(cycles[label]) for label in np.flatnonzero(cycles)}

    def _held(self, departure: Departure) -> _HeldCycles:
        if departure.track not in self.held:
            self.held[departure.track] = _HeldCycles(self.events[departure.track], departure.due)
        return self.held[departure.track]


class _HeldCycles:
    """The cycles in which a track waited for a slot and for nothing else, from its events `rows`. `due` is the cycle in which the
    last wait begins, if that wait ends after the window."""

    def __init__(self, rows: Ints, due: int) -> None:
        waits = rows[(rows[:, CAUSE] == SLOT) & (rows[:, DETAIL] >= 0)]
        self.due = np.append(waits[:, DUE], due)
        self.time = waits[:, TIME]
        self.total = np.append(0, np.cumsum(waits[:, TIME] - waits[:, DUE]))

    def before(self, cycle: Ints) -> Ints:
        """Return, for each given cycle, the number of earlier cycles in which the track waited for a slot."""
        wait = np.searchsorted(self.time, cycle, side="right")
        count: Ints = self.total[wait] + np.maximum(cycle - self.due[wait], 0)
        return count

    def due_after(self, cycle: int) -> int:
        """Return the cycle in which the first wait begins that ends in `cycle` or later."""
        return int(self.due[np.searchsorted(self.time, cycle, side="left")])
