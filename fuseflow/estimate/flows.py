"""How many tokens a stream has, counted or expected."""

from __future__ import annotations

from dataclasses import dataclass
from math import expm1

from fuseflow.estimate.counted.nests import CountedStream
from fuseflow.estimate.expected.stream_shapes import ExpectedStream

Number = float
"""A count: whole where it is exact."""


@dataclass(frozen=True, slots=True)
class Flow:
    """Of each depth, outermost first, the number of lists, and of those that are not empty; the innermost elements, how many of them are
    `N`, and how many coordinates reading these lists from a tensor asks for."""

    lists: tuple[Number, ...] = ()
    filled: tuple[Number, ...] = ()
    elements: Number = 1
    absent: Number = 0
    read: Number = 0

    @property
    def depth(self) -> int:
        return len(self.lists)

    @property
    def inner(self) -> Number:
        """Innermost lists."""
        return self.lists[-1] if self.lists else 0

    @property
    def inner_filled(self) -> Number:
        return self.filled[-1] if self.filled else 0

    @property
    def stops(self) -> Number:
        """One at the end of each innermost list, and of each empty one further out."""
        return self.inner + self.empty(1, self.depth - 1)

    @property
    def tokens(self) -> Number:
        return self.elements + self.stops + 1

    def empty(self, first: int, last: int) -> Number:
        """Empty lists of these depths."""
        return sum(self.lists[first - 1 : last]) - sum(self.filled[first - 1 : last])


def counted_flow(stream: CountedStream) -> Flow:
    if stream.nest is None:
        return Flow(absent=stream.absent)
    chain, level = stream.nest.chain, stream.nest.level
    read = stream.nest.elements if level.words is None else int(stream.nest.times @ level.words)
    return Flow(tuple(x.lists for x in chain), tuple(x.filled for x in chain), stream.nest.elements, stream.absent, read)


def expected_flow(shape: ExpectedStream) -> Flow:
    """A list is empty as often as if its elements were thrown on all lists."""
    if not shape.counts:
        return Flow(absent=1 - shape.present)
    lists = (1.0, *shape.counts[:-1])
    filled = tuple(_expected_filled(number, below) for number, below in zip(lists, shape.counts, strict=True))
    return Flow(lists, filled, shape.elements, shape.elements * (1 - shape.present), shape.elements)


def expected_from_counted(stream: CountedStream) -> ExpectedStream:
    """What the statistical model takes of a stream that was counted."""
    if stream.nest is None:
        return ExpectedStream(present=1.0 - stream.absent)
    counts = tuple(float(x.elements) for x in stream.nest.chain)
    present = 1 - stream.absent / counts[-1] if counts[-1] else 1.0
    return ExpectedStream(counts, stream.nest.level.size, present)


def _expected_filled(lists: Number, elements: Number) -> Number:
    if elements >= lists * 8 or lists <= 1:  # a share of e^-8 is empty
        return min(lists, elements)
    return float(lists * -expm1(-elements / lists))
