"""The timeline of a run: when each node fires, how full each FIFO is, and how many bytes the memory moves. A run with too many
firings is shown in windows of equal length."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from fuseflow.memory.ports import HIT
from fuseflow.sim.events import log
from fuseflow.sim.events.log import Bins, CycleSpan, Ints, Sink, Topology

WINDOWS = 2048
"""The largest number of windows."""
DETAIL = 150_000
"""The most rows of firings, and of tokens, that are reported one by one. A timeline with more is shown in windows."""
MARKS = 300_000
"""The largest number of windows of all nodes and FIFOs together, except that each always has 64."""


@dataclass(frozen=True, slots=True)
class Burst:
    """A burst is `firings` firings of a track that are `step` cycles apart. In a timeline of windows it is all firings of a window,
    which is `cycles` long."""

    start: int
    cycles: int
    firings: int
    step: int


class Timeline(Sink):
    """A sink that keeps the timeline of a span of a run."""

    tokens = True

    def __init__(self, span: CycleSpan, share: int = 1, detail: int = DETAIL) -> None:
        """Make an empty timeline of the cycles `span`. It is one of `share` timelines that share the budget of `detail` rows."""
        self.span, self.share, self.detail = span, share, detail // share
        self.cycles = log.NEVER  # of the run, once it is over
        self.count = 0
        self.rows: list[Ints] = []
        self.flows: list[Ints] = []  # of tokens: edge, cycle, change

    def open(self, topology: Topology) -> None:
        super().open(topology)
        self.relays = np.array([track.relay for track in topology.tracks])
        rows = 2 * len(topology.tracks) + 2 * len(topology.edges)
        bins_per_row = MARKS // self.share // max(rows, 1)
        size = min(WINDOWS, max(64, 1 << max(bins_per_row, 1).bit_length() - 1))
        self.busy = Bins(len(topology.tracks), self.span.start, size)
        self.pushed_tokens = Bins(len(topology.edges), self.span.start, size)
        self.popped_tokens = Bins(len(topology.edges), self.span.start, size)
        self.moved_bytes = Bins(2, self.span.start, size)  # read, written
        self.before: Ints = np.zeros(len(topology.edges), np.int64)  # tokens on each edge when the span begins

    @property
    def exact(self) -> bool:
        """Whether the timeline has single firings and tokens, and not windows."""
        return self.count <= self.detail

    def events(self, rows: Ints) -> None:
        """Keep the firings of `rows` that are in the span, and drop the others."""
        rows = rows[~self.relays[rows[:, log.TRACK]]]
        first, step = rows[:, log.TIME], rows[:, log.STEP]
        low = np.maximum(-(-(self.span.start - first) // step), 0)
        high = np.minimum(-(-(self.span.end - first) // step), rows[:, log.COUNT])
        rows, low, high = (x[low < high] for x in (rows, low, high))
        if not len(rows):
            return
        cut = np.stack([rows[:, log.TRACK], rows[:, log.TIME] + low * rows[:, log.STEP], high - low, rows[:, log.STEP]], axis=1)
        self.busy.add(*cut.T)
        self._note(self.rows, cut, len(cut))

    def pushes(self, rows: Ints) -> None:
        self._flow(rows, self.pushed_tokens, 1)

    def pops(self, rows: Ints) -> None:
        self._flow(rows, self.popped_tokens, -1)

    def _flow(self, rows: Ints, bins: Bins, sign: int) -> None:
        """Keep the pushed (`sign` 1) or popped (-1) tokens of `rows` that are in the span. The tokens of a row move one a cycle
        or all at once."""
        rate = np.where(rows[:, log.CYCLES] > 1, 1, rows[:, log.TOKENS])  # tokens a cycle
        before = np.clip(self.span.start - rows[:, log.CYCLE], 0, rows[:, log.CYCLES])
        until = np.clip(self.span.end - rows[:, log.CYCLE], 0, rows[:, log.CYCLES])
        np.add.at(self.before, rows[:, log.EDGE], sign * rate * before)
        kept = before < until
        edge, first, count, rate = rows[kept, log.EDGE], (rows[:, log.CYCLE] + before)[kept], (until - before)[kept], rate[kept]
        many = count > 1
        bins.add(edge[many], first[many], count[many], np.ones(int(many.sum()), np.int64))
        bins.put(edge[~many], first[~many], rate[~many])
        self._note(self.flows, np.stack([edge, first, count, sign * rate], axis=1), int((count * np.abs(rate)).sum()))

    def _note(self, kept: list[Ints], rows: Ints, count: int) -> None:
        self.count += count
        if self.exact:
            kept.append(rows)
        else:
            self.rows.clear()
            self.flows.clear()

    def answers(self, port: Ints, cycle: Ints, size: Ints, write: Ints) -> None:
        kept = (cycle >= self.span.start) & (cycle < self.span.end) & (write != HIT)  # a hit moves nothing
        self.moved_bytes.put(write[kept], cycle[kept], size[kept])

    @property
    def window(self) -> int:
        """The length of a window in cycles, the same for firings, tokens and bytes."""
        return max(bins.width for bins in (self.busy, self.pushed_tokens, self.popped_tokens, self.moved_bytes))

    @property
    def end(self) -> int:
        """The cycle after the last one of the timeline."""
        return min(self.span.end, self.cycles)

    def bursts(self) -> Iterator[tuple[int, Burst]]:
        """Yield the bursts of each track, ordered by time: firings that follow each other at an even pace, or windows with firings."""
        if self.exact:
            yield from _bursts(self.rows)
            return
        width = self.window
        for track, counts in enumerate(_in_windows(self.busy, width)):
            for bin in np.flatnonzero(counts).tolist():
                start = self.span.start + bin * width
                cycles = min(width, max(self.end - start, 1))
                yield track, Burst(start, cycles, int(counts[bin]), 0)

    def levels(self) -> Iterator[tuple[int, Ints, Ints]]:
        """Yield for each edge its number, the cycles in which the number of tokens in its FIFO changes, and the numbers from then
        on. A token has its slot from the firing that pushes it up to the cycle in which it is popped. With windows, the numbers
        are those at the end of each window."""
        if self.exact:
            yield from self._exact_levels()
            return
        width = self.window
        pushed, popped = _in_windows(self.pushed_tokens, width), _in_windows(self.popped_tokens, width)
        for edge in range(len(self.topology.edges)):
            level = self.before[edge] + np.cumsum(pushed[edge] - popped[edge])
            cycles = np.minimum(self.span.start + np.arange(1, len(level) + 1) * width - 1, self.end)
            yield edge, *_changes(cycles, level)

    def _exact_levels(self) -> Iterator[tuple[int, Ints, Ints]]:
        rows = np.concatenate(self.flows) if self.flows else np.zeros((0, 4), np.int64)
        index = np.repeat(np.arange(len(rows)), rows[:, 2])
        cycle = rows[index, 1] + np.arange(len(index)) - np.repeat(np.cumsum(rows[:, 2]) - rows[:, 2], rows[:, 2])
        edge, change = rows[index, 0], rows[index, 3]
        cycle = cycle + (change < 0)  # a slot is in use in the cycle in which its token is taken
        for number in range(len(self.topology.edges)):
            selected = edge == number
            cycles, positions = np.unique(np.concatenate([[self.span.start], cycle[selected]]), return_inverse=True)
            changes = np.zeros(len(cycles), np.int64)
            np.add.at(changes, positions[1:], change[selected])
            yield number, *_changes(cycles, self.before[number] + np.cumsum(changes))

    def rates(self) -> Iterator[tuple[str, int, Ints]]:
        """Yield two rows: "read" and "written", each with the width of the windows in cycles and the bytes that the memory moved
        in each window."""
        for name, counts in zip(("read", "written"), self.moved_bytes.counts, strict=True):
            yield name, self.moved_bytes.width, counts


def _bursts(kept: list[Ints]) -> Iterator[tuple[int, Burst]]:
    rows = np.concatenate(kept) if kept else np.zeros((0, 4), np.int64)
    rows = rows[np.argsort(rows[:, 0], kind="stable")]
    open_: tuple[int, Burst] | None = None
    for track, first, count, step in rows.tolist():
        step = 1 if count == 1 else step
        if open_ is not None and open_[0] == track:
            last = open_[1]
            if last.start + last.cycles == first and last.step == step == 1:
                open_ = track, Burst(last.start, last.cycles + count, last.firings + count, 1)
                continue
        if open_ is not None:
            yield open_
        open_ = track, Burst(first, (count - 1) * step + 1, count, step)
    if open_ is not None:
        yield open_


def _in_windows(bins: Bins, width: int) -> Ints:
    """Return the counts of bins in windows of `width` cycles, which may be wider than the bins."""
    factor = width // bins.width
    counts = bins.counts
    sums: Ints = counts.reshape(len(counts), -1, factor).sum(axis=2) if factor > 1 else counts
    return sums


def _changes(cycles: Ints, levels: Ints) -> tuple[Ints, Ints]:
    """Return the cycles and levels without entries whose level equals the level before."""
    kept = np.ones(len(levels), bool)
    kept[1:] = levels[1:] != levels[:-1]
    return cycles[kept], levels[kept]
