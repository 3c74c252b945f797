"""The critical path of a run leads from its last event back to cycle 0, from each event to the event that it waited for last.

The steps of the path are exact and add up to the cycles of the run. If the firings of a run do not fit into memory, the run is
repeated for each window of cycles, from the last to the first, and only the firings of one window are kept at a time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from fuseflow.memory.statistics import MemoryPort
from fuseflow.samml.nodes import Edge
from fuseflow.sim.events import log
from fuseflow.sim.events.fifo_loops import FifoLoops, StepKind, StepLabel, StepTotals
from fuseflow.sim.events.log import Bins, CycleSpan, Ints, LastEvent, Sink, Topology

Replay: TypeAlias = Callable[[Callable[[], Sink]], tuple[Sink, LastEvent]]
"""A function that runs a graph, the same way each time, and reports the run to a sink that it makes."""

STEP_KINDS: dict[int, StepKind] = {
    log.OWN: "work",
    log.INSIDE: "work",
    log.TOKEN: "latency",
    log.SLOT: "full",
    log.MEMORY: "memory",
}

EVENT_LIMIT = 1 << 21
"""The number of events that are kept at a time. An event takes 72 bytes."""
BINS = 4096


@dataclass(frozen=True, slots=True)
class PathStep:
    """The cycles of the critical path that are due to one node.

    Cycles of kind `work` lie between one of its firings and the next, and cycles of kind `latency` between a firing and the cycle
    from which its tokens are visible. Cycles of kind `full` are due to the depth of the FIFO `edge`, from which the node reads:
    they pass until a slot is free that the node emptied, or they are cycles of a loop through the FIFO (see `fifo_loops.py`).
    Cycles of kind `memory` lie between a request and its answer, at `port`. `times` is how often that happened, and 0 for `work`.
    """

    node: str
    kind: StepKind
    cycles: int
    times: int
    edge: Edge | None = None
    port: MemoryPort | None = None


@dataclass(frozen=True, slots=True)
class CriticalPath:
    """The critical path of a run. Its `steps` are merged by node, kind, FIFO and port, the longest first. `windows` is the number
    of runs that were needed to find the path."""

    cycles: int
    steps: tuple[PathStep, ...]
    windows: int


class FiringSink(Sink):
    """A sink that keeps all firings of a span of cycles, unless they are more than `limit`."""

    tokens = False

    def __init__(self, span: CycleSpan, limit: int) -> None:
        self.span, self.limit, self.count = span, limit, 0
        self.rows: list[Ints] = []
        self.density = Bins(1, span.start, BINS)

    @property
    def complete(self) -> bool:
        return self.count <= self.limit

    def events(self, rows: Ints) -> None:
        self.count += len(rows)
        cycle = np.maximum(rows[:, log.TIME], self.span.start)
        self.density.put(np.zeros(len(rows), np.int64), cycle, np.ones(len(rows), np.int64))
        if self.complete:
            self.rows.append(rows)
        else:
            self.rows.clear()

    def by_track(self) -> list[Ints]:
        """Return the events of each track, ordered by time."""
        rows = np.concatenate(self.rows) if self.rows else np.zeros((0, log.DUE + 1), np.int64)
        rows = rows[np.argsort(rows[:, log.TRACK], kind="stable")]
        self.rows.clear()
        return np.split(rows, np.searchsorted(rows[:, log.TRACK], np.arange(1, len(self.topology.tracks))))

    def window_before(self, end: int) -> int:
        """Return the start of a window of cycles that ends at `end` and has about half of `limit` events, but at least one bin."""
        bins = (end - 1 - self.span.start) // self.density.width + 1
        behind = np.cumsum(self.density.counts[0, :bins][::-1])
        fitting = int(np.searchsorted(behind, self.limit // 2, side="right"))
        return self.span.start + (bins - max(fitting, 1)) * self.density.width


def critical_path(run: Replay, limit: int = EVENT_LIMIT) -> CriticalPath:
    """Return the critical path of the run that `run` repeats, keeping at most `limit` events at a time."""
    survey, ending = _record(run, CycleSpan(), limit)
    window, windows = survey, 1
    walk = _Walk(survey.topology, ending)
    end = walk.cycle + 1
    while True:
        if window.complete:
            if walk.follow(window.by_track(), window.span.start):
                return CriticalPath(ending.cycles, walk.steps(), windows)
            end = window.span.start if walk.loops.departures else walk.cycle + 1
        start = (survey if window.complete else window).window_before(end)
        window, _ = _record(run, CycleSpan(start, end), limit)
        windows += 1


def _record(run: Replay, span: CycleSpan, limit: int) -> tuple[FiringSink, LastEvent]:
    sink, ending = run(lambda: FiringSink(span, limit))
    assert isinstance(sink, FiringSink)
    return sink, ending


class _Walk:
    """A walk along the critical path, back to cycle 0. The walk is at the firing of `track` in `cycle`, and has added up all
    later steps."""

    def __init__(self, topology: Topology, ending: LastEvent) -> None:
        self.topology, self.totals = topology, StepTotals()
        self.loops = FifoLoops(self.totals)
        self.track, self.cycle = ending.track, ending.cycle
        self.within = False  # of a run of firings at which the walk arrived in a later window
        if ending.port < 0:
            self.totals.add(StepLabel(ending.track, "work"), ending.tail, 0)
        else:
            self.cycle = ending.request_cycle
            self.totals.add(StepLabel(ending.track, "memory", port=ending.port), ending.cycles - ending.request_cycle, 1)

    def follow(self, events: list[Ints], start: int) -> bool:
        """Follow the causes to a firing before cycle `start`, and return whether cycle 0 was reached. `events` has each track's rows."""
        self.loops.open(events, start)
        times = [np.ascontiguousarray(rows[:, log.TIME]) for rows in events]
        while self.cycle >= start:
            i = int(times[self.track].searchsorted(self.cycle, side="right")) - 1
            _, first, count, step, cause, source, back, detail, _ = events[self.track][i].tolist()
            assert i >= 0 and (self.cycle - first) % step == 0 and self.cycle <= first + (count - 1) * step, (
                "not a cycle of a firing"
            )
            waits_elsewhere = cause in (log.START, log.TOKEN, log.MEMORY)
            if not self.within:
                self.loops.arrive(self.track, waits_elsewhere)
            elif waits_elsewhere:
                self.loops.end_chain()
            self.within = False
            self._step(StepLabel(self.track, "work"), first, self.cycle, 0)
            if cause == log.START:
                self._step(StepLabel(self.track, "work"), 0, first, 0)  # until the first turn at a port
                return True
            self.cycle = first
            if first < start:  # begun in the window before
                self.within = True
                break
            edge, port = detail if cause == log.SLOT else -1, detail if cause == log.MEMORY else -1
            label = StepLabel(source, STEP_KINDS[cause], edge, port)
            if edge >= 0:
                self.loops.leave(self.track, label)
            self._step(label, back, first, int(label.kind != "work" and not self.topology.tracks[self.track].relay))
            self.track, self.cycle = source, back
        self.loops.close()
        return False

    def _step(self, label: StepLabel, low: int, high: int, times: int) -> None:
        if low < high:
            self.totals.add(label, high - low, times)
            self.loops.step(label, low, high)

    def steps(self) -> tuple[PathStep, ...]:
        """Return the steps of the path, merged, the longest first."""
        merged: dict[tuple[str, StepKind, int, int], list[int]] = defaultdict(lambda: [0, 0])
        for label, cycles in self.totals.cycles.items():
            step = merged[self.topology.tracks[label.track].node, label.kind, label.edge, label.port]
            step[0] += cycles
            step[1] += self.totals.times[label]
        path_steps = [
            PathStep(
                node, kind, cycles, times,
                None if edge < 0 else self.topology.edges[edge], None if port < 0 else self.topology.ports[port],
            )
            for (node, kind, edge, port), (cycles, times) in merged.items() if cycles
        ]  # fmt: skip
        return tuple(sorted(path_steps, key=lambda s: (-s.cycles, s.node, s.kind, str(s.edge), str(s.port))))
