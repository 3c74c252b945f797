"""How often every primitive fires, in closed form: from the sizes of fibers alone, by the rules of docs/develop/firings.md.

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


@dataclass(frozen=True)
class Firings:
    """The firings of a node by the rules of machines, which docs/develop/firings.md has under these names."""

    dataflow: int
    comal: int


def pointwise(stream: Stream) -> Firings:
    """Root, locate, load, alu, join of equal sides: one for every token."""
    return Firings(stream.tokens, stream.tokens)


def scan(out: Stream) -> Firings:
    """One for every token given. One more for an empty fiber before its stop, but not on comal."""
    return Firings(out.tokens + out.empty, out.tokens)


def repeat(signal: Stream) -> Firings:
    """One for every token of the signal, and one for an empty fiber before its stop; on comal two processes, with one a token."""
    return Firings(signal.tokens + signal.empty, 2 * signal.tokens)


def reduce(into: Stream, out: Stream) -> Firings:
    """One for every token; where a stop ends a fiber and goes on, it needs a firing of its own behind the fiber's value, but not on
    comal."""
    return Firings(into.tokens + out.stops - out.bare, into.tokens)


def accumulate(into: Stream, out: Stream, reduced: Stream, *between: Stream, childless: int = 0) -> Firings:
    """Filling and emitting; `childless`: coordinates with nothing below them, which a firing of their own takes. On comal one for every
    token of the values, for every end of a list of a stream between, and for every stop of the reduced coordinates."""
    ends = sum(stream.stops - stream.bare for stream in between)
    return Firings(into.tokens + out.tokens + childless, into.tokens - reduced.bare + ends + reduced.stops)


def write_level(stream: Stream) -> Firings:
    """One for every token; on comal a stop behind a stop takes none."""
    return Firings(stream.tokens, stream.tokens - stream.bare)


def write_values(stream: Stream) -> Firings:
    """One for every token; on comal a stop takes none."""
    return Firings(stream.tokens, stream.values + 1)
