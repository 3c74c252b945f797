"""Common refinements: one nest that distinguishes whatever any of several nests of the same lists distinguishes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fuseflow.estimate.counted.distinct import distinct_tuples, positions
from fuseflow.estimate.counted.memo import CountMemo
from fuseflow.estimate.counted.nests import EMPTY, FiberLevel, FiberNest, Ints, take

ElementMap = Ints | None
"""A map from the elements of a refined nest to those of the nest that it refines. None is the identity."""


def apply_map(values: Ints, map: ElementMap) -> Ints:
    """Return the values of the elements of a refined nest, given those of the nest that it refines."""
    if map is None:
        return values
    return values[map] if len(values) else np.zeros(len(map), dtype=np.int64)  # of elements that never occur


def common_refinement(memo: CountMemo, nests: Sequence[FiberNest | None]) -> tuple[FiberNest | None, tuple[ElementMap, ...]]:
    """Return one nest that refines nests of the same lists and coordinates, and the map of its elements to those of each."""
    distinct_nests = list(dict.fromkeys(nests))
    if len(distinct_nests) == 1:
        return nests[0], (None,) * len(nests)
    refined, maps = memo.once(
        "together", distinct_nests, lambda: _refine(memo, [nest for nest in distinct_nests if nest is not None])
    )
    return refined, tuple(maps[distinct_nests.index(nest)] for nest in nests)


def _refine(memo: CountMemo, nests: Sequence[FiberNest]) -> tuple[FiberNest, tuple[ElementMap, ...]]:
    above, maps = common_refinement(memo, [nest.above for nest in nests])
    fibers = [apply_map(nest.link, map) for nest, map in zip(nests, maps, strict=True)]
    finest = max(range(len(nests)), key=lambda k: nests[k].level.fibers)
    if (counterparts := _counterparts(fibers, finest, nests[finest].level.fibers)) is not None:
        nest = nests[finest]
        if above is not nest.above or maps[finest] is not None:
            nest = FiberNest(above, fibers[finest], nest.level)
        level = nest.level
        within = np.arange(len(level.crd)) - level.pos[:-1][level.owner]
        # A fiber that never occurs has no counterpart. Fiber 0 stands in, and nothing reads it.
        starts = [
            n.level.pos[:-1][np.maximum(f, 0)] if n.level.fibers else None for n, f in zip(nests, counterparts, strict=True)
        ]
        return nest, tuple(
            None
            if k == finest
            else (
                np.zeros(len(within), dtype=np.int64) if start is None else _clip_elements(start[level.owner] + within, nests[k])
            )
            for k, start in enumerate(starts)
        )
    rows, which = distinct_tuples(fibers)
    if above is not None and not _have_equal_lengths(nests, rows):
        # Nests differ below elements that never occur, as in other lanes. These have no fibers here.
        occurs = above.element_times > 0
        rows, which = distinct_tuples([np.where(occurs, column, EMPTY) for column in fibers])
    memo.afford(int(take(nests[0].level.lengths, rows[0], 0).sum()))
    expanded = [nest.level.expanded(row) for nest, row in zip(nests, rows, strict=True)]
    row, at = expanded[0]
    level = FiberLevel(positions(np.bincount(row, minlength=len(rows[0]))), nests[0].level.crd[at], nests[0].level.size)
    return FiberNest(above, which, level), tuple(at for _, at in expanded)


def _have_equal_lengths(nests: Sequence[FiberNest], rows: Sequence[Ints]) -> bool:
    """Return whether the fibers of a row, one of each nest, have equally many elements."""
    first, *others = (take(nest.level.lengths, row, 0) for nest, row in zip(nests, rows, strict=True))
    return all(np.array_equal(first, lengths) for lengths in others)


def _clip_elements(at: Ints, nest: FiberNest) -> Ints:
    return np.minimum(at, max(0, len(nest.level.crd) - 1))


def _counterparts(fibers: Sequence[Ints], finest: int, count: int) -> list[Ints] | None:
    """Return for each fiber of the finest nest its counterpart in each nest. None if a fiber has several counterparts."""
    finest_fibers = fibers[finest]
    nonempty = finest_fibers >= 0
    finest_fibers = finest_fibers if nonempty.all() else finest_fibers[nonempty]
    counterparts = []
    for column in fibers:
        column = column if nonempty.all() else column[nonempty]
        counterpart = np.zeros(count, dtype=np.int64)
        counterpart[finest_fibers] = column
        if not (counterpart[finest_fibers] == column).all():
            return None
        counterparts.append(counterpart)
    return counterparts
