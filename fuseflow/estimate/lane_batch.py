"""Candidates for the lanes of a graph, many at once: their lanes lie one behind the other on an axis, so that one array has
numbers of all.

    candidates            i=2, h=2             i=3, h=2
    axis of ("i",)        i0 i1                i0 i1 i2
    axis of ("i", "h")    i0h0 i0h1 i1h0 i1h1  i0h0 i0h1 i1h0 i1h1 i2h0 i2h1

Candidates with equal numbers of lanes of some indices share these lanes on the axis of the indices.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from math import prod
from typing import Any, NamedTuple

import numpy as np

from fuseflow.estimate.counted.memo import Uncountable
from fuseflow.estimate.counted.stream_trie import Ints
from fuseflow.estimate.stream_flow import Flow, Number, as_number


class LaneAxis(NamedTuple):
    """An axis of the lanes of some indices. `numbers` are the distinct numbers of lanes that candidates have, `starts` where the
    lanes of each begin, `size` is the length of the axis, and `of_candidate` has for each candidate which of the `numbers` it
    has."""

    numbers: tuple[tuple[int, ...], ...]
    starts: Ints
    size: int
    of_candidate: Ints


@dataclass(slots=True, eq=False)
class LaneBatch:
    """Candidates, each with its number of lanes of every index."""

    indices: tuple[str, ...]
    candidates: tuple[tuple[int, ...], ...]
    _axes: dict[tuple[str, ...], LaneAxis] = field(default_factory=dict)
    _spreads: dict[tuple[tuple[str, ...], tuple[str, ...]], Ints] = field(default_factory=dict)

    def counts(self) -> dict[str, Ints]:
        """Return the number of lanes of each index, as an array over the candidates."""
        by_index = np.array(self.candidates, dtype=np.int64).reshape(len(self.candidates), len(self.indices)).T
        return dict(zip(self.indices, by_index, strict=True))

    def axis(self, indices: tuple[str, ...]) -> LaneAxis:
        """Return the axis of the lanes of these indices, outermost first."""
        if indices not in self._axes:
            places = [self.indices.index(index) for index in indices]
            chosen = [tuple(lanes[place] for place in places) for lanes in self.candidates]
            number = {lanes: at for at, lanes in enumerate(dict.fromkeys(chosen))}
            ends = np.cumsum([prod(lanes) for lanes in number])
            starts = np.append(0, ends[:-1])
            self._axes[indices] = LaneAxis(tuple(number), starts, int(ends[-1]), np.array([number[lanes] for lanes in chosen]))
        return self._axes[indices]

    def spread(self, flow: Flow, of: tuple[str, ...], to: tuple[str, ...]) -> Flow:
        """Return the flow of a stream on the axis of `to`, given its flow on the axis of fewer indices `of`."""
        if of == to:
            return flow
        if (of, to) not in self._spreads:
            self._spreads[of, to] = self._places(of, to)
        at = self._spreads[of, to]

        def moved(numbers: Number) -> Number:
            return as_number(numbers[at]) if isinstance(numbers, np.ndarray) else numbers

        return flow.mapped(moved)

    def _places(self, of: tuple[str, ...], to: tuple[str, ...]) -> Ints:
        """Return, for each lane on the axis of `to`, the lane on the axis of `of` that it is inside of."""
        fewer, more = self.axis(of), self.axis(to)
        start = dict(zip(fewer.numbers, fewer.starts, strict=True))
        places = []
        for lanes in more.numbers:
            own = tuple(count for index, count in zip(to, lanes, strict=True) if index in of)
            shape = tuple(count if index in of else 1 for index, count in zip(to, lanes, strict=True))
            within = np.arange(prod(own)).reshape(shape)
            places.append((start[own] + np.broadcast_to(within, lanes)).ravel())
        return np.concatenate(places)

    def most(self, numbers: Number, indices: tuple[str, ...]) -> Number:
        """Return for each candidate the largest of the numbers of its lanes, which are on the axis of `indices`; one number for
        all stays as it is."""
        if not isinstance(numbers, np.ndarray):
            return numbers
        axis = self.axis(indices)
        return as_number(np.maximum.reduceat(numbers, axis.starts)[axis.of_candidate].astype(np.float64))

    def total(self, numbers: Number, indices: tuple[str, ...]) -> Number:
        """Return for each candidate the sum of the numbers of its lanes, which are on the axis of `indices`."""
        axis = self.axis(indices)
        return as_number(np.add.reduceat(np.broadcast_to(numbers, axis.size), axis.starts)[axis.of_candidate])

    def axis_of(self, numbers: Number, axes: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
        """Return the smallest of `axes` with as many lanes as there are numbers; a single number is on the first. Raises
        `Uncountable` if a larger one with as many lacks one of its indices: then the numbers may be on either. If it has them all,
        its further indices have one lane each."""
        known = list(dict.fromkeys(axes))
        if not isinstance(numbers, np.ndarray):
            return known[0]
        fitting = sorted((axis for axis in known if self.axis(axis).size == numbers.size), key=len)
        if not fitting or any(not set(fewer) <= set(more) for fewer, more in pairwise(fitting)):
            raise Uncountable
        return fitting[0]

    def busiest(self, flow: Flow, indices: tuple[str, ...]) -> Flow:
        """Return the flow of a stream in its busiest lane for each candidate: each number is the largest of all lanes."""

        return flow.mapped(partial(self.most, indices=indices))

    def each(self, numbers: Number) -> list[Any]:
        """Return a list of one number for each candidate."""
        numbers_of_all: list[Any] = np.broadcast_to(numbers, len(self.candidates)).tolist()
        return numbers_of_all
