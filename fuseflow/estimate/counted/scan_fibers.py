"""The fibers that a scan goes through: all fibers of a level of a tensor, or the part of them in a piece of the graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from fuseflow.estimate.counted.distinct import select_fibers
from fuseflow.estimate.counted.memo import CountMemo
from fuseflow.estimate.counted.nests import EMPTY, CountedStream, ElementNumbers, FiberLevel, Ints, distinct_elements, take
from fuseflow.estimate.counted.patterns import Pattern

Piece: TypeAlias = tuple[int, int]
"""A range of the coordinates of the outermost loops: the first of them, and the one behind the last."""


@dataclass(frozen=True, eq=False)
class ScannedFibers:
    """The fibers of a level that a scan goes through. `labels` has the fiber that each reference leads to. `below` and `words`
    are as in `Pattern`."""

    level: FiberLevel
    labels: ElementNumbers | None
    below: Ints | None
    words: Ints | None


def scanned_fibers(memo: CountMemo, ref: CountedStream, pattern: Pattern, level: int, piece: Piece | None) -> ScannedFibers:
    """Return the fibers of a level of a tensor that the references of the stream `ref` lead to; without a `piece`, all fibers of
    the level."""
    whole = ScannedFibers(pattern.levels[level], ref.labels, pattern.below[level], pattern.words[level])
    if piece is None:
        return whole
    if ref.nest is None:
        return memo.once(("outermost", level), (pattern,), lambda: _outermost(whole, piece))
    return memo.once(("named", level), (pattern, ref.nest, ref.labels), lambda: _named(whole, ref))


def outermost_level(level: FiberLevel, piece: Piece | None) -> FiberLevel:
    """Return the coordinates of an outermost level (one fiber) that are in a piece; all if there is no piece."""
    if piece is None:
        return level
    kept = _inside(level, piece)
    return FiberLevel(np.array([0, int(kept.sum())]), level.crd[kept], level.size)


def _inside(level: FiberLevel, piece: Piece) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    first, end = piece
    inside: np.ndarray[tuple[int], np.dtype[np.bool_]] = (level.crd >= first) & (level.crd < end)
    return inside


def _outermost(whole: ScannedFibers, piece: Piece) -> ScannedFibers:
    """Return the coordinates of an outermost level that are in a piece. All words of the fiber count in its first piece."""
    level, words = outermost_level(whole.level, piece), whole.words
    if words is not None and piece[0] > 0:
        words = np.zeros_like(words)
    return ScannedFibers(level, whole.labels, None if whole.below is None else whole.below[_inside(whole.level, piece)], words)


def _named(whole: ScannedFibers, ref: CountedStream) -> ScannedFibers:
    """Return the fibers that some reference of the stream `ref` leads to, numbered anew."""
    label = np.zeros(distinct_elements(ref.nest), dtype=np.int64) if ref.label is None else ref.label
    fibers = np.unique(label[label >= 0])
    numbers = np.full(whole.level.fibers, EMPTY)
    numbers[fibers] = np.arange(len(fibers))
    level, below = select_fibers(whole.level, fibers, whole.below)
    return ScannedFibers(level, take(numbers, label), below, None if whole.words is None else whole.words[fibers])
