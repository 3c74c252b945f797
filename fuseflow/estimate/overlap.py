"""What statistics say of two tensors together: how often coordinates that one stores are found in the other, and how much is below them.

A row that many edges lead to is read many times. Where such rows are longer than others, the mean row says too little: what counts is the
mean over the edges, sum(in degree * out degree) / sum(in degree).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from fuseflow.estimate.counted.memo import CountMemo
from fuseflow.estimate.counted.nests import sum_by_group, take
from fuseflow.estimate.counted.patterns import Pattern
from fuseflow.estimate.expected.stream_shapes import LookupRate, TensorLevel


@dataclass(frozen=True, slots=True)
class MeasuredOverlap:
    """Measured when asked for: two numbers of two tensors."""

    patterns: Mapping[str, Pattern]
    memo: CountMemo

    def reached(self, drawn: TensorLevel, level: TensorLevel) -> LookupRate | None:
        """Raises nothing; None for what has no pattern, and below the second level."""
        (source, p), (tensor, q) = drawn, level
        if q != 1 or source not in self.patterns or tensor not in self.patterns:
            return None
        return self.memo.once(
            ("reached", p),
            (self.patterns[source], self.patterns[tensor]),
            lambda: measure_lookup_rate(self.patterns[source], p, self.patterns[tensor]),
        )


def measure_lookup_rate(source: Pattern, level: int, tensor: Pattern) -> LookupRate | None:
    """Of coordinates as often as they are in `level` of `source`, in level 0 of `tensor`."""
    if len(tensor.levels) < 2:
        return None
    times = np.ones(1, dtype=np.int64)
    for upper, links, lower in zip(source.levels[:level], source.below, source.levels[1:], strict=False):
        each = np.repeat(times, upper.lengths)
        times = sum_by_group(np.zeros(len(each), dtype=np.int64) if links is None else links, each, lower.fibers)
    found = source.levels[level]
    often = np.bincount(found.crd, weights=np.repeat(times, found.lengths), minlength=found.size)
    rows = tensor.levels[0]
    if rows.size != found.size or not often.any():
        return None
    crd = np.flatnonzero(often)
    at = rows.find(np.zeros(len(crd), dtype=np.int64), crd)
    hit = at >= 0
    below = tensor.below[0]
    fiber = np.zeros(len(at), dtype=np.int64) if below is None else take(below, at, 0)
    lengths = tensor.levels[1].lengths[fiber]
    weights = often[crd]
    total = float(weights[hit].sum())
    return LookupRate(total / float(weights.sum()), float(weights[hit] @ lengths[hit]) / total if total else 0.0)


@dataclass(frozen=True, slots=True)
class AssumedOverlap:
    """As stated: `rates` by pair of names; by name the `neighbours`, what a row of a tensor stores on average over its stored columns, and
    the `means` over its rows. What is not stated is as `measured`."""

    rates: Mapping[tuple[str, str], float] = field(default_factory=dict)
    neighbours: Mapping[str, float] = field(default_factory=dict)
    means: Mapping[str, float] = field(default_factory=dict)
    measured: MeasuredOverlap | None = None

    def reached(self, drawn: TensorLevel, level: TensorLevel) -> LookupRate | None:
        (source, _), (tensor, q) = drawn, level
        if q != 1:
            return None
        rate = self.rates.get((source, tensor), self.rates.get((tensor, source)))
        fanout = self.neighbours.get(tensor) if source == tensor else self.means.get(tensor)
        if fanout is None or (rate is None and source != tensor):
            return self.measured.reached(drawn, level) if self.measured else None
        return LookupRate(1.0 if rate is None else rate, fanout)
