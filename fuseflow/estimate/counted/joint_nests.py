"""Streams side by side: one nest that tells apart whatever any of several does."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fuseflow.estimate.counted.distinct import distinct_tuples, positions
from fuseflow.estimate.counted.memo import CountMemo
from fuseflow.estimate.counted.nests import FiberLevel, FiberNest, Ints, take

ElementMap = Ints | None
"""Of each element of a nest that tells more apart, which element of another nest it is. None: its own."""


def apply_map(values: Ints, map: ElementMap) -> Ints:
    if map is None:
        return values
    return values[map] if len(values) else np.zeros(len(map), dtype=np.int64)  # of elements that never occur


def common_refinement(memo: CountMemo, nests: Sequence[FiberNest | None]) -> tuple[FiberNest | None, tuple[ElementMap, ...]]:
    """Nests of the same lists and coordinates, as one; and which element of each its elements are."""
    kinds = list(dict.fromkeys(nests))
    if len(kinds) == 1:
        return nests[0], (None,) * len(nests)
    found, maps = memo.once("together", kinds, lambda: _refine(memo, [nest for nest in kinds if nest is not None]))
    return found, tuple(maps[kinds.index(nest)] for nest in nests)


def _refine(memo: CountMemo, nests: Sequence[FiberNest]) -> tuple[FiberNest, tuple[ElementMap, ...]]:
    above, maps = common_refinement(memo, [nest.above for nest in nests])
    fibers = [apply_map(nest.link, map) for nest, map in zip(nests, maps, strict=True)]
    finest = max(range(len(nests)), key=lambda k: nests[k].level.fibers)
    if (same := _counterparts(fibers, finest, nests[finest].level.fibers)) is not None:
        nest = nests[finest]
        if above is not nest.above or maps[finest] is not None:
            nest = FiberNest(above, fibers[finest], nest.level)
        level = nest.level
        within = np.arange(len(level.crd)) - level.pos[:-1][level.owner]
        # fibers that never occur have no counterpart: theirs is fiber 0, which nothing reads
        starts = [n.level.pos[:-1][np.maximum(f, 0)] if n.level.fibers else None for n, f in zip(nests, same, strict=True)]
        return nest, tuple(
            None
            if k == finest
            else (
                np.zeros(len(within), dtype=np.int64) if start is None else _clip_elements(start[level.owner] + within, nests[k])
            )
            for k, start in enumerate(starts)
        )
    rows, which = distinct_tuples(fibers)
    memo.afford(int(take(nests[0].level.lengths, rows[0], 0).sum()))
    expanded = [nest.level.expanded(row) for nest, row in zip(nests, rows, strict=True)]
    place, at = expanded[0]
    level = FiberLevel(positions(np.bincount(place, minlength=len(rows[0]))), nests[0].level.crd[at], nests[0].level.size)
    return FiberNest(above, which, level), tuple(at for _, at in expanded)


def _clip_elements(at: Ints, nest: FiberNest) -> Ints:
    return np.minimum(at, max(0, len(nest.level.crd) - 1))


def _counterparts(fibers: Sequence[Ints], finest: int, count: int) -> list[Ints] | None:
    """For each fiber of one nest the fibers of the others that come with it, if they are always the same."""
    by = fibers[finest]
    held = by >= 0
    by = by if held.all() else by[held]
    found = []
    for column in fibers:
        column = column if held.all() else column[held]
        same = np.zeros(count, dtype=np.int64)
        same[by] = column
        if not (same[by] == column).all():
            return None
        found.append(same)
    return found
