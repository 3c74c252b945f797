"""Sorted merges of fibers, and the comparisons that they take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, assert_never

import numpy as np

from fuseflow.estimate.counted.deduplication import group_positions
from fuseflow.estimate.counted.memo import CountMemo
from fuseflow.estimate.counted.stream_trie import FiberLevel, Ints, take

MergeKind = Literal["intersect", "union", "left"]
"""Which coordinates a merge keeps: those that all sides have, that any side has, or that the first side has."""


@dataclass(frozen=True)
class FiberMerge:
    """The merges of tuples of fibers. A tuple has one fiber of each side.

    `level` has one merged fiber for each tuple. `picks` has for each side the element of that side for each merged element,
    `EMPTY` where the side has none. `steps` are the comparisons that each tuple takes.
    """

    level: FiberLevel
    picks: tuple[Ints, ...]
    steps: Ints


def merge_fibers(memo: CountMemo, kind: MergeKind, sides: Sequence[FiberLevel], fibers: Sequence[Ints]) -> FiberMerge:
    """Merge tuples of fibers; `fibers[s][t]` is the fiber of side s in tuple t."""
    size = max(side.size for side in sides)
    sides = [side if side.size == size else replace(side, size=size) for side in sides]
    match kind:
        case "left":
            base, row, at = _selected_level(memo, sides[0], fibers[0])
            matches = [side.find(f[row], base.crd) for side, f in zip(sides[1:], fibers[1:], strict=True)]
            return FiberMerge(base, (at, *matches), _comparisons(memo, sides, fibers, base, row, matches))
        case "intersect":
            return _intersect(memo, sides, fibers)
        case "union":
            return _union(memo, sides, fibers)
        case unknown:
            assert_never(unknown)


def _lengths(level: FiberLevel, fibers: Ints) -> Ints:
    return take(level.lengths, fibers, 0)


def _selected_level(memo: CountMemo, level: FiberLevel, fibers: Ints) -> tuple[FiberLevel, Ints, Ints]:
    """Return a level of these fibers alone, and for each element the position of its fiber in `fibers` and its old number."""
    if (fibers >= 0).all() and len(fibers) == level.fibers and (fibers == np.arange(level.fibers)).all():
        return level, level.owner, np.arange(level.elements)
    memo.afford(int(_lengths(level, fibers).sum()))
    row, at = level.expanded(fibers)
    return FiberLevel(group_positions(row, len(fibers)), level.crd[at], level.size), row, at


def _intersect(memo: CountMemo, sides: Sequence[FiberLevel], fibers: Sequence[Ints]) -> FiberMerge:
    first = min(range(len(sides)), key=lambda s: int(_lengths(sides[s], fibers[s]).sum()))
    base, row, at = _selected_level(memo, sides[first], fibers[first])
    others = [s for s in range(len(sides)) if s != first]
    matches = [sides[s].find(fibers[s][row], base.crd) for s in others]
    steps = _comparisons(memo, [sides[s] for s in (first, *others)], [fibers[s] for s in (first, *others)], base, row, matches)
    kept = np.logical_and.reduce([f >= 0 for f in matches]) if matches else np.ones(len(at), dtype=bool)
    picks = dict(zip((first, *others), (at[kept], *(f[kept] for f in matches)), strict=True))
    level = base if kept.all() else FiberLevel(group_positions(row[kept], len(fibers[0])), base.crd[kept], base.size)
    return FiberMerge(level, tuple(picks[s] for s in range(len(sides))), steps)


def _union(memo: CountMemo, sides: Sequence[FiberLevel], fibers: Sequence[Ints]) -> FiberMerge:
    """Merge by union. A side with all coordinates is the union; else the union is the elements that no earlier side has, sorted."""
    for s, (side, f) in enumerate(zip(sides, fibers, strict=True)):
        if side.complete and (f >= 0).all():
            base, row, at = _selected_level(memo, side, f)
            picks = tuple(
                at if k == s else other.find(g[row], base.crd) for k, (other, g) in enumerate(zip(sides, fibers, strict=True))
            )
            return FiberMerge(base, picks, base.lengths)
    rows, crds = [], []
    for s, (side, f) in enumerate(zip(sides, fibers, strict=True)):
        memo.afford(int(_lengths(side, f).sum()))
        row, at = side.expanded(f)
        crd = side.crd[at]
        new = np.ones(len(at), dtype=bool)
        for earlier, g in zip(sides[:s], fibers[:s], strict=True):
            new &= earlier.find(g[row], crd) < 0
        rows.append(row[new])
        crds.append(crd[new])
    row, crd = np.concatenate(rows), np.concatenate(crds)
    order = np.lexsort((crd, row))
    row, crd = row[order], crd[order]
    level = FiberLevel(group_positions(row, len(fibers[0])), crd, sides[0].size)
    return FiberMerge(level, tuple(side.find(f[row], crd) for side, f in zip(sides, fibers, strict=True)), level.lengths)


def _comparisons(
    memo: CountMemo, sides: Sequence[FiberLevel], fibers: Sequence[Ints], base: FiberLevel, row: Ints, matches: Sequence[Ints]
) -> Ints:
    """Return the comparisons of each tuple: one for every coordinate that any side has. `base` holds the fibers of the first
    side, `row` has the tuple of each of its elements, and `matches` the element of each other side at the same coordinate."""
    tuples = len(fibers[0])
    total = base.lengths.copy()
    if len(sides) == 2:
        matched = np.bincount(row[matches[0] >= 0], minlength=tuples)
        return total + _lengths(sides[1], fibers[1]) - matched
    for side, f in zip(sides, fibers, strict=True):
        if side.complete and (f >= 0).all():
            return np.full(tuples, side.size)
    return _union(memo, sides, fibers).steps if len(sides) > 2 else total
