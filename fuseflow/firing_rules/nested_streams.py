"""Streams of different depth that are read together: which coordinates and stops of the outer streams belong to a token of the
innermost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fuseflow.firing_rules.expressions import Expr, all_of, const, count_bits, mux
from fuseflow.firing_rules.rules import Head, Module, seen_above


@dataclass(frozen=True, slots=True)
class Opening:
    """The coordinates of the levels `first` to `levels` - 1, which one firing takes while `first` coordinates are open."""

    first: int
    levels: int
    when: Expr
    heads: tuple[Head, ...]
    sets: dict[str, Expr | int]

    @property
    def label(self) -> str:
        return f"{self.first}-{self.levels}"

    @property
    def expects(self) -> Expr:
        """The condition that all these tokens are coordinates."""
        return all_of(~head.control for head in self.heads)


@dataclass(frozen=True, slots=True)
class Ending:
    """The stops of outer streams that an inner stop takes if it ends lists in `ended` of the streams. `still_open` coordinates
    are open afterwards, and `expects` is the condition that these streams have matching stops."""

    ended: int
    when: Expr
    heads: tuple[Head, ...]
    still_open: Expr
    expects: Expr


class EnclosingStreams:
    """The coordinate streams around an inner stream, outermost first, each one level shallower than the next.

    The register `open` counts the open coordinates, from the outermost on, and `crd0`, `crd1` and so on hold them. A coordinate
    is taken in the firing of its first inner value. A coordinate with an empty list below is taken by a separate firing, before
    the inner stop.
    """

    def __init__(self, m: Module, heads: Sequence[Head]) -> None:
        self.heads, self.depth = tuple(heads), len(heads)
        self.open = m.register("open", count_bits(self.depth + 1))
        self.held = [m.register(f"crd{k}", head.width) for k, head in enumerate(heads)]

    def openings(self) -> Iterator[Opening]:
        """Yield, for each number of open coordinates, the coordinates that a firing on an inner value takes."""
        for first in range(self.depth + 1):
            yield self._opening(first, self.depth, self.open.is_(first))

    def childless(self, inner: Head) -> Iterator[Opening]:
        """Yield the coordinates that a firing takes before an inner stop that ends an empty list below a coordinate not taken."""
        for levels in range(1, self.depth + 1):
            for first in range(levels):
                when = inner.is_stop & inner.low.is_(self.depth - levels) & self.open.is_(first)
                yield self._opening(first, levels, when)

    def is_childless(self, inner: Head) -> Expr:
        """Return the condition that the next inner token is a stop of an empty list below a coordinate that was not taken."""
        wide = inner.low.width + 1
        return inner.is_stop & (self.open.fit(wide) + inner.low.fit(wide) < self.depth)

    def _opening(self, first: int, levels: int, when: Expr) -> Opening:
        sets: dict[str, Expr | int] = {f"crd{k}": self.heads[k].payload for k in range(first, levels)}
        return Opening(first, levels, when, self.heads[first:levels], {**sets, "open": levels})

    def coordinates(self, opening: Opening) -> list[Expr]:
        """Return the coordinates of all levels in a firing on an inner value that takes `opening`."""
        return [
            head.payload if k >= opening.first else held for k, (head, held) in enumerate(zip(self.heads, self.held, strict=True))
        ]

    def current(self) -> list[Expr]:
        """Return the coordinates of all levels in a firing on an inner value, for any number of open ones."""
        return [mux(self.open <= k, head.payload, held) for k, (head, held) in enumerate(zip(self.heads, self.held, strict=True))]

    def endings(self, inner: Head) -> Iterator[Ending]:
        """Yield, for each number of outer streams in which an inner stop ends a list, the stops of these streams."""
        for ended in range(self.depth + 1):
            last = ended == self.depth
            when = inner.is_stop & (~(inner.high < ended) if last else inner.high.is_(ended))
            still_open = const(max(self.depth - 1 - ended, 0), self.open.width)
            heads = self.heads[self.depth - ended :]
            stops = [seen_above(inner.low, inner.high, ended - k) for k in range(ended)]
            same = all_of(head.holds_stop(*levels) for head, levels in zip(heads, stops, strict=True))
            yield Ending(ended, when, heads, mux(self.open < still_open, self.open, still_open), same)

    @property
    def are_done(self) -> Expr:
        """The condition that the next tokens of all outer streams are `D`."""
        return all_of(head.is_done for head in self.heads)


def nested_stop(m: Module, outs: Sequence[str], low: Expr, high: Expr, level: int) -> dict[str, Expr]:
    """Return the tokens of a stop for the innermost streams, and for the outer streams in which a stop up to `level` ends a list. `outs`
    are outputs of coordinates, outermost first, and one that is aligned with the innermost."""
    above = {out: max(len(outs) - 2 - k, 0) for k, out in enumerate(outs)}
    return {out: m.stop(out, *seen_above(low, high, levels)) for out, levels in above.items() if level >= levels}
