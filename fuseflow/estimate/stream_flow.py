"""The flow of a stream: how many tokens it has, counted or expected."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import reduce
from math import expm1
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from fuseflow.costs.stream_shapes import ExpectedStream
from fuseflow.estimate.counted.stream_trie import CountedStream

Number = float
"""A count. It is a whole number where it is exact. Many counts may be one array of numbers, which computes like one number."""
Truth: TypeAlias = bool | npt.NDArray[np.bool_]
"""Whether something holds: for one number, or for each of an array."""


def as_number(array: npt.NDArray[Any]) -> Number:
    """Return an array with the static type `Number`: arithmetic on it works like arithmetic on one number."""
    return cast(Number, array)


def largest(numbers: Iterable[Number]) -> Number:
    """Return the largest of some numbers; of arrays, element by element."""
    several = list(numbers)
    if any(isinstance(number, np.ndarray) for number in several):
        return reduce(np.maximum, several)
    return max(several)


def least(numbers: Iterable[Number]) -> Number:
    """Return the least of some numbers; of arrays, element by element."""
    several = list(numbers)
    if any(isinstance(number, np.ndarray) for number in several):
        return reduce(np.minimum, several)
    return min(several)


def choose(holds: Truth, number: Number, otherwise: Number) -> Number:
    """Return `number` where `holds`, else `otherwise`; of arrays, element by element."""
    if isinstance(holds, np.ndarray):
        chosen: Number = np.where(holds, number, otherwise)  # type: ignore[assignment]
        return chosen
    return number if holds else otherwise


@dataclass(frozen=True, slots=True)
class Flow:
    """The size of a stream.

    `lists` is the number of lists at each depth, outermost first, and `filled` the number of lists that are not empty. `elements`
    is the number of innermost elements, of which `absent` are `N`. `read` is how many coordinates are read from memory by a scan
    that makes these lists, or by a locate that keeps its level.
    """

    lists: tuple[Number, ...] = ()
    filled: tuple[Number, ...] = ()
    elements: Number = 1
    absent: Number = 0
    read: Number = 0

    @property
    def depth(self) -> int:
        """The number of depths at which the stream has lists."""
        return len(self.lists)

    @property
    def inner(self) -> Number:
        """The number of innermost lists."""
        return self.lists[-1] if self.lists else 0

    @property
    def inner_filled(self) -> Number:
        """The number of innermost lists that are not empty."""
        return self.filled[-1] if self.filled else 0

    @property
    def stops(self) -> Number:
        """The number of stop tokens: one ends each innermost list, and one each empty list further out."""
        return self.inner + self.empty(1, self.depth - 1)

    @property
    def tokens(self) -> Number:
        """The number of all tokens, with the one that ends the stream."""
        return self.elements + self.stops + 1

    def mapped(self, change: Callable[[Number], Number]) -> Flow:
        """Return the flow with each of its numbers changed."""
        lists, filled = tuple(map(change, self.lists)), tuple(map(change, self.filled))
        return Flow(lists, filled, change(self.elements), change(self.absent), change(self.read))

    def at(self, place: int) -> Flow:
        """Return the flow of one of many streams, given one whose numbers are arrays over them. A number that is no array holds for all."""

        def own(number: Number) -> Number:
            return float(number[place]) if isinstance(number, np.ndarray) else number

        return self.mapped(own)

    def empty(self, first: int, last: int) -> Number:
        """Return the number of empty lists at the depths from `first` to `last`."""
        return sum(self.lists[first - 1 : last]) - sum(self.filled[first - 1 : last])


def counted_flow(stream: CountedStream, read: int) -> Flow:
    """Return the flow of a stream that was counted, and for which `read` coordinates are read."""
    if stream.nest is None:
        return Flow(absent=stream.absent)
    chain = stream.nest.chain
    return Flow(tuple(x.lists for x in chain), tuple(x.filled for x in chain), stream.nest.elements, stream.absent, read)


def expected_flow(shape: ExpectedStream, read: Number) -> Flow:
    """Return the flow of an expected stream, for which `read` coordinates are read. As many lists are expected to be empty as if elements
    fell on lists at random."""
    if not shape.counts:
        return Flow(absent=1 - shape.present)
    lists = (1.0, *shape.counts[:-1])
    filled = tuple(_expected_filled(number, elements) for number, elements in zip(lists, shape.counts, strict=True))
    return Flow(lists, filled, shape.elements, shape.elements * (1 - shape.present), read)


def expected_from_counted(stream: CountedStream) -> ExpectedStream:
    """Return a counted stream in the form of the statistical model."""
    if stream.nest is None:
        return ExpectedStream(present=1.0 - stream.absent)
    counts = tuple(float(x.elements) for x in stream.nest.chain)
    present = 1 - stream.absent / counts[-1] if counts[-1] else 1.0
    return ExpectedStream(counts, stream.nest.level.size, present)


def _expected_filled(lists: Number, elements: Number) -> Number:
    if elements >= lists * 8 or lists <= 1:  # fewer than a share of e^-8 are empty
        return min(lists, elements)
    return float(lists * -expm1(-elements / lists))
