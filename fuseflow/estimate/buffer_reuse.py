"""The saving of a reuse buffer at a port: the share of its lines that are requested again while they are still in the buffer.

The loops around a look-up decide. In `for k, i, j`, the rows of `W[k, j]` are read again for each i, one after the other: a
buffer that holds a row leaves one reading of each. In `for i, k, j`, each i reads rows of its own choice: only a buffer of the
whole array leaves one reading. A buffer of half the array finds every second line, since the rows of the next i may be any. In
`for j, k`, a line has the elements of many j: a buffer of as many lines as there are k leaves one reading, too.

The buffer keeps the lines that were used last, so a line is found if fewer others were asked for since. Rows that are chosen are taken as
chosen at random.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import expm1, gcd, log1p
from typing import TypeAlias

from fuseflow.estimate.stream_flow import Flow, Number, choose, largest, least

BANK_GROUPS = 64
"""The bank groups of a memory of eight channels."""


@dataclass(frozen=True, slots=True)
class OwnLoop:
    """A loop along a dimension of the array that is looked up. `size` is the number of its coordinates, and `stride` how many
    lines lie from one to the next, on average. A reference leads to a `run` of lines."""

    size: int
    stride: float
    run: float = 0.0

    @property
    def is_apart(self) -> bool:
        """Whether other lines lie between the lines of one reference and those of the next."""
        return self.stride > max(1.0, self.run)

    @property
    def lines(self) -> float:
        """The number of lines that the whole dimension covers."""
        return max(1.0, self.size * min(1.0, self.stride))

    def met(self, turns: float) -> float:
        """Return how many different lines of the dimension are read in `turns` turns, each of another coordinate."""
        if self.stride >= 1 or self.size <= 1:
            return turns
        share = min(1.0, turns / self.size)
        missed: float = (1 - share) ** (1 / max(self.stride, 1 / self.size))
        return max(1.0, self.lines * (1 - missed))


Loop: TypeAlias = OwnLoop | None
"""A loop around a look-up. None is a loop along no dimension of the array: each turn looks up the same, or chooses anew among the
same."""


def fetched_share(refs: Flow, loops: Sequence[Loop], lines: Number, each: float, array_lines: float, capacity: int) -> float:
    """Return the share of the requested `lines` that are not in a buffer of `capacity` lines, so that they are fetched.

    `refs` are the references that are looked up, and `loops` the loops around them, one for each depth, outermost first. A
    reference leads to `each` lines, of the `array_lines` of the array.
    """
    if not refs.depth or not refs.inner_filled or capacity <= 0 or lines <= 0:
        return 1.0
    asked = lines / refs.inner_filled  # in an innermost list
    inner = loops[-1]
    if inner is None:  # of equal references
        distinct = reach = min(asked, max(1.0, each))
        fetched = _again(distinct, distinct, reach, asked / distinct, capacity)
    else:
        reach = min(array_lines, inner.lines * max(1.0, each))
        fetched = distinct = min(asked, reach)
    for depth in range(refs.depth - 1, 0, -1):
        loop, turns = loops[depth - 1], max(1.0, refs.filled[depth] / max(1.0, refs.filled[depth - 1]))
        asked *= turns
        if loop is None:
            fetched = _again(fetched, distinct, reach, turns, capacity)
            distinct = _union(distinct, reach, turns)
        else:
            met, is_once = loop.met(turns), fetched <= distinct <= capacity
            fetched *= met if capacity >= distinct else turns
            reach = min(array_lines, loop.lines * reach)
            distinct = min(reach, distinct * met)
            fetched = min(fetched, distinct) if is_once else fetched  # neighbours share lines
    return min(1.0, fetched / asked)


def new_line_share(refs: Flow, loops: Sequence[Loop], lines: Number) -> Number:
    """Return the share of the `lines` of a list that the list before it did not request, where a line has elements of several
    lists.

    Example: rows of 32 bytes, looked up one after the other, element by element, share lines of 64 bytes, and half are left. A row of 12
    bytes that is looked up again in 16 lists is in the line before, unless it lies in two lines, which each list requests.
    """
    inner, outer = loops[-1] if loops else None, loops[-2] if len(loops) > 1 else None
    if outer is None and len(loops) > 1 and inner is not None and inner.size * inner.stride < 1:  # of one piece again
        in_two = inner.stride * (inner.size - gcd(inner.size, round(1 / inner.stride)))  # the share of pieces in two lines
        return choose(lines <= refs.inner_filled, 2 * in_two + inner.size * inner.stride / _turns(refs), 1.0)
    if outer is None or outer.stride >= 1:
        return 1.0
    in_line, there = 1 / outer.stride, least((1.0, _turns(refs) / outer.size))
    left = (1 - (1 - there) ** in_line) / (there * in_line)
    return choose(lines <= refs.inner_filled, left, 1.0)


def lines_at_once(refs: Flow, loops: Sequence[Loop], lines: Number, window: int) -> tuple[Number, Number]:
    """Return how many different lines are among `window` lines that are requested in a row, and which share belongs to one list.

    Example: `B[k, j]` is looked up in `for i, j, k` for the 6 coordinates k of a row of A. A line has the elements of 16 columns j, so the
    same 6 lines are asked for 16 times, and 32 lines in a row are of 6 different ones, or of 12 where others follow.
    """
    if not loops or loops[-1] is None:
        return window, 1.0
    asked = largest((1.0, lines / largest((1, refs.inner_filled))))  # in an innermost list
    reach, outer, alike = float(window), loops[-2] if len(loops) > 1 else None, 1.0
    if outer is not None:
        alike = largest((1.0, least((_turns(refs), _turns(refs) / outer.lines))))
    elif len(loops) > 1:  # chosen anew among the same
        reach = loops[-1].lines
    lists = 1 + (largest((1.0, window / asked)) - 1) / alike
    return least((window, reach, asked * lists)), 1 / (1 + window / (asked * alike))


def lines_in_turn(refs: Flow, loops: Sequence[Loop], lines: Number) -> Number:
    """Return how many lines of an innermost list are neighbours in memory, up to as many as lie in different bank groups: the
    lines of a whole dimension, or those of one reference where coordinates are chosen in any order."""
    inner = loops[-1] if loops else None
    if inner is None:
        return 1.0
    listed = largest((1.0, lines / largest((1, refs.inner_filled))))
    is_whole = refs.elements >= inner.size * refs.inner_filled
    return choose(is_whole & (listed * inner.stride <= BANK_GROUPS), listed, min(max(1.0, inner.run), float(BANK_GROUPS)))


def _turns(refs: Flow) -> Number:
    """Return how many turns the loop around an innermost list takes on average."""
    return largest((1.0, refs.filled[-1] / largest((1, refs.filled[-2]))))


def _again(fetched: float, distinct: float, reach: float, turns: float, capacity: int) -> float:
    """Return the lines that a buffer of `capacity` lines fetches in `turns` turns. Each turn requests `distinct` lines, chosen
    anew among `reach`, and the first turn fetches `fetched`."""
    if capacity >= reach:
        return min(fetched * turns, _union(distinct, reach, turns))
    if capacity < distinct:
        return fetched * turns
    first = _union(distinct, reach, turns)
    return first + max(0.0, fetched * turns - first) * (1 - capacity / reach)


def _union(distinct: float, reach: float, turns: float) -> float:
    """Return how many different lines are requested if each of `turns` turns requests `distinct` of `reach` lines."""
    if distinct >= reach:
        return reach
    return min(reach, reach * -expm1(turns * log1p(-distinct / reach)))
