"""What an accumulator holds: the union of the fibers below the coordinates that it reduces, and of what is below those."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fuseflow.estimate.counted.distinct import deduplicate_fibers, distinct_keys, group_positions
from fuseflow.estimate.counted.memo import CountMemo
from fuseflow.estimate.counted.nests import EMPTY, FiberLevel, FiberNest, Ints

SATURATION_RATIO = 4
"""Elements to merge for each place that there is, from which on they are merged in rounds: most unions are full long before the end."""


@dataclass(frozen=True)
class FiberUnion:
    """Levels, outermost first, `links` from the elements of each to the fibers of the next; and the fiber of each group."""

    levels: tuple[FiberLevel, ...]
    links: tuple[Ints, ...]
    fiber: Ints


def union_fibers(memo: CountMemo, nests: Sequence[FiberNest], group: Ints, member: Ints, groups: int) -> FiberUnion:
    """For each group the union of the fibers `member` of the outermost of `nests`, level by level. A coordinate with nothing below it
    is in none."""
    level = nests[0].level
    kept = member >= 0
    keys, _ = distinct_keys(group[kept] * max(1, level.fibers) + member[kept], groups * max(1, level.fibers))
    group, member = np.divmod(keys, max(1, level.fibers))
    kept = level.lengths[member] > 0 if level.fibers else np.zeros(0, dtype=bool)
    group, member = group[kept], member[kept]
    if (np.diff(group) > 0).all() and _without_gaps(nests):
        fiber = np.full(groups, EMPTY)
        fiber[group] = member
        return FiberUnion(tuple(n.level for n in nests), tuple(n.link for n in nests[1:]), fiber)
    alike, _, which = deduplicate_fibers(
        FiberLevel(group_positions(group, groups), member, max(1, level.fibers))
    )  # groups of the same members
    found = (_innermost if len(nests) == 1 else _outer)(memo, nests, alike)
    return FiberUnion(found.levels, found.links, found.fiber[which])


def _without_gaps(nests: Sequence[FiberNest]) -> bool:
    """Whether every coordinate has something below it."""
    return all((n.link >= 0).all() and (n.level.lengths > 0)[n.link].all() for n in nests[1:])


def _innermost(memo: CountMemo, nests: Sequence[FiberNest], groups: FiberLevel) -> FiberUnion:
    level = nests[0].level
    work = int(level.lengths[groups.crd].sum()) if len(groups.crd) else 0
    if work > SATURATION_RATIO * groups.fibers * level.size:
        return _innermost_in_rounds(memo, level, groups)
    memo.afford(work)
    place, at = level.expanded(groups.crd)
    keys, _ = distinct_keys(groups.owner[place] * level.size + level.crd[at], groups.fibers * level.size)
    group, crd = np.divmod(keys, max(1, level.size))
    return _union_of_coordinates(group, crd, groups.fibers, level.size)


def _innermost_in_rounds(memo: CountMemo, level: FiberLevel, groups: FiberLevel) -> FiberUnion:
    """Twice as many members in every round; a group whose union is full needs no more."""
    memo.afford(groups.fibers * level.size)
    held = np.zeros((groups.fibers, level.size), dtype=bool)
    rank = np.arange(len(groups.crd)) - groups.pos[:-1][groups.owner]
    start, step = 0, 1
    open_ = np.ones(groups.fibers, dtype=bool)
    while open_.any() and start < groups.lengths[open_].max(initial=0):
        taken = open_[groups.owner] & (rank >= start) & (rank < start + step)
        members, owners = groups.crd[taken], groups.owner[taken]
        memo.afford(int(level.lengths[members].sum()))
        place, at = level.expanded(members)
        held[owners[place], level.crd[at]] = True
        open_ &= ~held.all(axis=1)
        start, step = start + step, step * 2
    group, crd = np.nonzero(held)
    return _union_of_coordinates(group, crd, groups.fibers, level.size)


def _outer(memo: CountMemo, nests: Sequence[FiberNest], groups: FiberLevel) -> FiberUnion:
    level = nests[0].level
    memo.afford(int(level.lengths[groups.crd].sum()) if len(groups.crd) else 0)
    place, at = level.expanded(groups.crd)
    keys, which = distinct_keys(groups.owner[place] * level.size + level.crd[at], groups.fibers * level.size)
    inner = union_fibers(memo, nests[1:], which, nests[1].link[at], len(keys))
    kept = inner.fiber >= 0
    group, crd = np.divmod(keys[kept], max(1, level.size))
    made, links, classes = deduplicate_fibers(
        FiberLevel(group_positions(group, groups.fibers), crd, level.size), inner.fiber[kept]
    )
    assert links is not None
    return FiberUnion((made, *inner.levels), (links, *inner.links), _mark_empty(made, classes))


def _union_of_coordinates(group: Ints, crd: Ints, groups: int, size: int) -> FiberUnion:
    level, _, which = deduplicate_fibers(FiberLevel(group_positions(group, groups), crd, size))
    return FiberUnion((level,), (), _mark_empty(level, which))


def _mark_empty(level: FiberLevel, fiber: Ints) -> Ints:
    return np.where(level.lengths[fiber] > 0, fiber, EMPTY) if level.fibers else fiber
