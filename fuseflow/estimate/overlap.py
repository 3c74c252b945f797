"""The overlap of two tensors: how often the coordinates of one are stored in the other, and how many elements are below these.

A row of a graph that many edges lead to is read many times. If such rows are longer than others, the mean length of a row is too small an
estimate. What counts is the mean over the edges: sum(in degree * out degree) / sum(in degree).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from fuseflow.costs.stream_shapes import LookupRate, TensorLevel
from fuseflow.estimate.counted.memo import CountMemo
from fuseflow.estimate.counted.patterns import Pattern
from fuseflow.estimate.counted.stream_trie import sum_by_group, take


@dataclass(frozen=True, slots=True)
class TensorOverlap:
    """The overlap of pairs of tensors: as a user stated it, or else measured on their patterns when it is needed.

    `rates` are stated by pair of names. `neighbours` is by name the number of entries that a row stores on average over the stored
    columns, and `means` the number on average over the rows.
    """

    patterns: Mapping[str, Pattern]
    memo: CountMemo
    rates: Mapping[tuple[str, str], float]
    neighbours: Mapping[str, float]
    means: Mapping[str, float]

    def lookup_rate(self, source_level: TensorLevel, level: TensorLevel) -> LookupRate | None:
        """Return the rate as `Overlap.lookup_rate` does. None if nothing is stated and a tensor has no pattern, and for any `level`
        but the second of its tensor."""
        (source, p), (tensor, q) = source_level, level
        if q != 1:
            return None
        rate = self.rates.get((source, tensor), self.rates.get((tensor, source)))
        fanout = self.neighbours.get(tensor) if source == tensor else self.means.get(tensor)
        if fanout is not None and (rate is not None or source == tensor):
            return LookupRate(1.0 if rate is None else rate, fanout)
        if source not in self.patterns or tensor not in self.patterns:
            return None
        one, other = self.patterns[source], self.patterns[tensor]
        return self.memo.once(("reached", p), (one, other), lambda: measure_lookup_rate(one, p, other))


def measure_lookup_rate(source: Pattern, level: int, tensor: Pattern) -> LookupRate | None:
    """Return how many coordinates, as often as they occur in `level` of `source`, are found in level 0 of `tensor`, and how many
    elements are below each of those on average. None if the levels differ in size, or if nothing can be looked up."""
    if len(tensor.levels) < 2:
        return None
    times = np.ones(1, dtype=np.int64)
    for upper, links, lower in zip(source.levels[:level], source.below, source.levels[1:], strict=False):
        element_times = np.repeat(times, upper.lengths)
        times = sum_by_group(
            np.zeros(len(element_times), dtype=np.int64) if links is None else links, element_times, lower.fibers
        )
    fibers = source.levels[level]
    weights_by_coordinate = np.bincount(fibers.crd, weights=np.repeat(times, fibers.lengths), minlength=fibers.size)
    rows = tensor.levels[0]
    if rows.size != fibers.size or not weights_by_coordinate.any():
        return None
    crd = np.flatnonzero(weights_by_coordinate)
    at = rows.find(np.zeros(len(crd), dtype=np.int64), crd)
    hit = at >= 0
    below = tensor.below[0]
    fiber = np.zeros(len(at), dtype=np.int64) if below is None else take(below, at, 0)
    lengths = take(tensor.levels[1].lengths, fiber, 0)
    weights = weights_by_coordinate[crd]
    total = float(weights[hit].sum())
    return LookupRate(total / float(weights.sum()), float(weights[hit] @ lengths[hit]) / total if total else 0.0)
