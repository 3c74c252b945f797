"""Sorted merges of fibers, as counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from fuseflow.estimate.counted.distinct import group_positions
from fuseflow.estimate.counted.memo import CountMemo
from fuseflow.estimate.counted.nests import FiberLevel, Ints, take

MergeKind = Literal["intersect", "union", "left"]


@dataclass(frozen=True)
class FiberMerge:
    """One fiber for each tuple of fibers; of each of its elements the element of every side, `EMPTY` where the side has none; and the
    comparisons that each tuple takes."""

    level: FiberLevel
    picks: tuple[Ints, ...]
    steps: Ints


def merge_fibers(memo: CountMemo, kind: MergeKind, sides: Sequence[FiberLevel], fibers: Sequence[Ints]) -> FiberMerge:
    """`fibers[s][t]`: the fiber of side s in tuple t."""
    size = max(side.size for side in sides)
    sides = [side if side.size == size else replace(side, size=size) for side in sides]
    match kind:
        case "left":
            found = _left(memo, sides, fibers)
        case "intersect":
            found = _intersect(memo, sides, fibers)
        case "union":
            found = _union(memo, sides, fibers)
    return found


def _lengths(level: FiberLevel, fibers: Ints) -> Ints:
    return take(level.lengths, fibers, 0)


def _selected_level(memo: CountMemo, level: FiberLevel, fibers: Ints) -> tuple[FiberLevel, Ints, Ints]:
    """The fibers as a level of their own, with the place among them and the former number of each element."""
    if (fibers >= 0).all() and len(fibers) == level.fibers and (fibers == np.arange(level.fibers)).all():
        return level, level.owner, np.arange(len(level.crd))
    memo.afford(int(_lengths(level, fibers).sum()))
    place, at = level.expanded(fibers)
    return FiberLevel(group_positions(place, len(fibers)), level.crd[at], level.size), place, at


def _left(memo: CountMemo, sides: Sequence[FiberLevel], fibers: Sequence[Ints]) -> FiberMerge:
    base, place, at = _selected_level(memo, sides[0], fibers[0])
    found = [side.find(f[place], base.crd) for side, f in zip(sides[1:], fibers[1:], strict=True)]
    return FiberMerge(base, (at, *found), _comparisons(memo, sides, fibers, base, place, found))


def _intersect(memo: CountMemo, sides: Sequence[FiberLevel], fibers: Sequence[Ints]) -> FiberMerge:
    first = min(range(len(sides)), key=lambda s: int(_lengths(sides[s], fibers[s]).sum()))
    base, place, at = _selected_level(memo, sides[first], fibers[first])
    others = [s for s in range(len(sides)) if s != first]
    found = [sides[s].find(fibers[s][place], base.crd) for s in others]
    steps = _comparisons(memo, [sides[s] for s in (first, *others)], [fibers[s] for s in (first, *others)], base, place, found)
    kept = np.logical_and.reduce([f >= 0 for f in found]) if found else np.ones(len(at), dtype=bool)
    picks = dict(zip((first, *others), (at[kept], *(f[kept] for f in found)), strict=True))
    level = base if kept.all() else FiberLevel(group_positions(place[kept], len(fibers[0])), base.crd[kept], base.size)
    return FiberMerge(level, tuple(picks[s] for s in range(len(sides))), steps)


def _union(memo: CountMemo, sides: Sequence[FiberLevel], fibers: Sequence[Ints]) -> FiberMerge:
    """A side with all coordinates has those of all; else the elements of every side that no side before it has, sorted."""
    for s, (side, f) in enumerate(zip(sides, fibers, strict=True)):
        if side.complete and (f >= 0).all():
            base, place, at = _selected_level(memo, side, f)
            picks = tuple(
                at if k == s else other.find(g[place], base.crd) for k, (other, g) in enumerate(zip(sides, fibers, strict=True))
            )
            return FiberMerge(base, picks, base.lengths)
    places, crds = [], []
    for s, (side, f) in enumerate(zip(sides, fibers, strict=True)):
        memo.afford(int(_lengths(side, f).sum()))
        place, at = side.expanded(f)
        crd = side.crd[at]
        new = np.ones(len(at), dtype=bool)
        for before, g in zip(sides[:s], fibers[:s], strict=True):
            new &= before.find(g[place], crd) < 0
        places.append(place[new])
        crds.append(crd[new])
    place, crd = np.concatenate(places), np.concatenate(crds)
    order = np.lexsort((crd, place))
    place, crd = place[order], crd[order]
    level = FiberLevel(group_positions(place, len(fibers[0])), crd, sides[0].size)
    return FiberMerge(level, tuple(side.find(f[place], crd) for side, f in zip(sides, fibers, strict=True)), level.lengths)


def _comparisons(
    memo: CountMemo, sides: Sequence[FiberLevel], fibers: Sequence[Ints], base: FiberLevel, place: Ints, found: Sequence[Ints]
) -> Ints:
    """Comparisons: one for every coordinate that any side has. `base` holds the fibers of the first."""
    tuples = len(fibers[0])
    total = base.lengths.copy()
    if len(sides) == 2:
        matched = np.bincount(place[found[0] >= 0], minlength=tuples)
        return total + _lengths(sides[1], fibers[1]) - matched
    for side, f in zip(sides, fibers, strict=True):
        if side.complete and (f >= 0).all():
            return np.full(tuples, side.size)
    return _union(memo, sides, fibers).steps if len(sides) > 2 else total
