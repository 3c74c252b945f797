"""Histograms over time, with bins of equal length whose number is bounded."""

from __future__ import annotations

import numpy as np

from fuseflow.sim.events.log import Ints


class Bins:
    """Counts of `things` series of events by cycle, in at most `size` bins from cycle `start` on. The `width` of all bins doubles
    when a later cycle does not fit."""

    def __init__(self, things: int, start: int, size: int) -> None:
        assert size % 2 == 0
        self.start, self.size, self.width = start, size, 1
        self.counts: Ints = np.zeros((things, size), np.int64)

    def add(self, thing: Ints, cycle: Ints, count: Ints, step: Ints) -> None:
        """For each row of the arrays, add `count` events of the series `thing`, `step` cycles apart from `cycle` on. No cycle may
        be before `start`."""
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
