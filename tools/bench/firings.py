"""How often every primitive fires, in closed form: from the sizes of fibers alone, by the rules of docs/streams.md.

A stream is known by its counts. `below` gives the stream of one more level from the size of every fiber, so a graph's firings follow from
the nonzeros of its tensors without any simulator.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Sizes = npt.NDArray[np.integer]


@dataclass(frozen=True)
class Stream:
    """`empty`: innermost fibers without a value. `bare`: stops behind another stop (or at the start), so that they end no value."""

    values: int
    stops: int = 0
    empty: int = 0
    bare: int = 0

    @property
    def tokens(self) -> int:
        return self.values + self.stops + 1


ROOT = Stream(1)


def below(outer: Stream, sizes: Sizes) -> Stream:
    """The stream one level deeper: below every value of `outer` a fiber of so many values. A fiber's stop takes along the stop behind
    its value, so only bare stops add to one stop a fiber."""
    assert len(sizes) == outer.values
    empty = int((sizes == 0).sum())
    return Stream(int(sizes.sum()), outer.values + outer.bare, empty, empty + outer.bare)


def each(outer: Stream, size: int) -> Stream:
    """The same for fibers of one size."""
    return below(outer, np.full(outer.values, size))


def pointwise(stream: Stream) -> int:
    """Root, locate, load, alu, write: one for every token."""
    return stream.tokens


def scan(out: Stream) -> int:
    """Also repeat, where `out` is the signal: one for every token given, one for an empty fiber before its stop."""
    return out.tokens + out.empty


def reduce(into: Stream, out: Stream) -> int:
    """One for every token; where a stop ends a fiber and goes on, it needs a firing of its own behind the fiber's value."""
    return into.tokens + out.stops - out.bare


def accumulate(into: Stream, out: Stream, childless: int = 0) -> int:
    """Filling and emitting; `childless`: coordinates with nothing below them, which a firing of their own takes."""
    return into.tokens + out.tokens + childless
