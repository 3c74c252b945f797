"""The critical path of a run leads from its last event back to cycle 0, from each event to the one that it waited for last.

The steps of the path are exact and add up to the cycles of the run. If the firings of a run do not fit into memory, it is run again,
window after window from the end on, and only the firings of one window are kept at a time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from fuseflow.samml.nodes import Edge
from fuseflow.sim.events.bins import Bins
from fuseflow.sim.events.causes import INSIDE, MEMORY, OWN, SLOT, START, TOKEN
from fuseflow.sim.events.log import TIME, TRACK, CycleSpan, Ints, LastEvent, Sink, Topology
from fuseflow.sim.memory.statistics import MemoryPort

StepKind: TypeAlias = Literal["work", "latency", "full", "memory"]
Replay: TypeAlias = Callable[[Callable[[], Sink]], tuple[Sink, LastEvent]]
"""A function that runs a graph, the same way each time, and reports the run to a sink that it makes."""

STEP_KINDS: dict[int, StepKind] = {OWN: "work", INSIDE: "work", TOKEN: "latency", SLOT: "full", MEMORY: "memory"}

EVENT_LIMIT = 1 << 21
"""The number of events that are kept at a time. An event takes 64 bytes."""
BINS = 4096


@dataclass(frozen=True, slots=True)
class PathStep:
    """The cycles of the path that are due to one node.

    The cycles of kind `work` lie between one of its firings and the next, and those of kind `latency` between a firing and the cycle
    from which its tokens are visible. Those of kind `full` pass until a slot is free from which the node took a token; `edge` is the
    FIFO. Those of kind `memory` lie between a request and its answer, at `port`. `times` is how often that happened, and 0 for work.
    """

    node: str
    kind: StepKind
    cycles: int
    times: int
    edge: Edge | None = None
    port: MemoryPort | None = None


@dataclass(frozen=True, slots=True)
class CriticalPath:
    """The critical path of a run. Its `steps` are merged by node, kind, FIFO and port, the longest first. `windows` is the number of
    runs that it took to find it."""

    cycles: int
    steps: tuple[PathStep, ...]
    windows: int


class FiringSink:
    """A sink that keeps all firings of a span of cycles, unless they are more than `limit`."""

    tokens = False
    topology: Topology

    def __init__(self, span: CycleSpan, limit: int) -> None:
        self.span, self.limit, self.count = span, limit, 0
        self.rows: list[Ints] = []
        self.density = Bins(1, span.start, BINS)

    @property
    def complete(self) -> bool:
        return self.count <= self.limit

    def open(self, topology: Topology) -> None:
        self.topology = topology

    def events(self, rows: Ints) -> None:
        self.count += len(rows)
        cycle = np.maximum(rows[:, TIME], self.span.start)
        self.density.put(np.zeros(len(rows), np.int64), cycle, np.ones(len(rows), np.int64))
        if self.complete:
            self.rows.append(rows)
        else:
            self.rows.clear()

    def pushes(self, rows: Ints) -> None: ...

    def pops(self, rows: Ints) -> None: ...

    def answers(self, port: Ints, cycle: Ints, size: Ints, write: Ints) -> None: ...

    def by_track(self) -> list[Ints]:
        """Return the events of each track, ordered by time."""
        rows = np.concatenate(self.rows) if self.rows else np.zeros((0, 8), np.int64)
        rows = rows[np.argsort(rows[:, TRACK], kind="stable")]
        self.rows.clear()
        return np.split(rows, np.searchsorted(rows[:, TRACK], np.arange(1, len(self.topology.tracks))))

    def window_before(self, end: int) -> int:
        """Return the start of a window that ends at `end` and holds about half as many events as are allowed. The window is at least one
        bin long."""
        bins = (end - 1 - self.span.start) // self.density.width + 1
        behind = np.cumsum(self.density.counts[0, :bins][::-1])
        fitting = int(np.searchsorted(behind, self.limit // 2, side="right"))
        return self.span.start + (bins - max(fitting, 1)) * self.density.width


StepTotals: TypeAlias = dict[tuple[int, StepKind, int, int], list[int]]
"""The cycles of a step and how often it happened, by track, kind, edge and port."""


def critical_path(run: Replay, limit: int = EVENT_LIMIT) -> CriticalPath:
    """Return the critical path of the run that `run` repeats, keeping at most `limit` events at a time."""
    totals: StepTotals = defaultdict(lambda: [0, 0])
    survey, ending = _record(run, CycleSpan(), limit)
    window, windows = survey, 1
    position = _last(ending, totals)
    while True:
        if window.complete:
            earlier = _walk(window.by_track(), survey.topology, position, window.span.start, totals)
            if earlier is None:
                return CriticalPath(ending.cycles, _merged(survey.topology, totals), windows)
            position = earlier
        end = position[1] + 1
        start = (survey if window.complete else window).window_before(end)
        window, _ = _record(run, CycleSpan(start, end), limit)
        windows += 1


def _record(run: Replay, span: CycleSpan, limit: int) -> tuple[FiringSink, LastEvent]:
    sink, ending = run(lambda: FiringSink(span, limit))
    assert isinstance(sink, FiringSink)
    return sink, ending


def _last(ending: LastEvent, totals: StepTotals) -> tuple[int, int]:
    """Add what happened after the last firing to the totals, and return the track and the cycle of that firing."""
    if ending.port < 0:
        _add(totals, ending.track, "work", ending.tail)
        return ending.track, ending.cycle
    _add(totals, ending.track, "memory", ending.cycles - ending.request_cycle, port=ending.port)
    return ending.track, ending.request_cycle


def _add(
    totals: StepTotals, track: int, kind: StepKind, cycles: int, edge: int = -1, port: int = -1, relayed: bool = False
) -> None:
    if cycles:
        step = totals[track, kind, edge, port]
        step[0] += cycles
        step[1] += kind != "work" and not relayed


def _walk(
    events: list[Ints], topology: Topology, position: tuple[int, int], start: int, totals: StepTotals
) -> tuple[int, int] | None:
    """Follow the causes back from a firing to one before cycle `start`, and return its track and cycle. The result is None if cycle 0
    was reached."""
    times = [np.ascontiguousarray(rows[:, TIME]) for rows in events]
    track, cycle = position
    while cycle >= start:
        i = int(times[track].searchsorted(cycle, side="right")) - 1
        _, first, count, step, cause, source, back, detail = events[track][i].tolist()
        assert i >= 0 and (cycle - first) % step == 0 and cycle <= first + (count - 1) * step, "not a cycle of a firing"
        _add(totals, track, "work", cycle - first)
        if cause == START:
            assert first == 0
            return None
        if first < start:  # begun in the window before
            return track, first
        edge, port = detail if cause == SLOT else -1, detail if cause == MEMORY else -1
        _add(totals, source, STEP_KINDS[cause], first - back, edge, port, relayed=topology.tracks[track].relay)
        track, cycle = source, back
    return track, cycle


def _merged(topology: Topology, totals: StepTotals) -> tuple[PathStep, ...]:
    steps: dict[tuple[str, StepKind, int, int], list[int]] = defaultdict(lambda: [0, 0])
    for (track, kind, edge, port), (cycles, times) in totals.items():
        step = steps[topology.tracks[track].node, kind, edge, port]
        step[0] += cycles
        step[1] += times
    path_steps = [
        PathStep(
            node, kind, cycles, times,
            None if edge < 0 else topology.edges[edge], None if port < 0 else topology.ports[port],
        )
        for (node, kind, edge, port), (cycles, times) in steps.items()
    ]  # fmt: skip
    return tuple(sorted(path_steps, key=lambda s: (-s.cycles, s.node, s.kind, str(s.edge), str(s.port))))
