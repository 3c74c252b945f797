"""Unions of fibers, level by level: an accumulator merges the fibers below the coordinates that it reduces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fuseflow.estimate.counted.deduplication import deduplicate_fibers, distinct_tuples, group_positions
from fuseflow.estimate.counted.memo import CountMemo
from fuseflow.estimate.counted.stream_trie import EMPTY, ElementNumbers, FiberCopies, FiberLevel, FiberNest, Ints, PerFiber
from fuseflow.tensors.distinct_keys import distinct_keys

SATURATION_RATIO = 4
"""A merge of more elements than this for each possible coordinate runs in rounds, because most unions are full early."""


@dataclass(frozen=True)
class FiberUnion:
    """The union of each group of fibers: levels, outermost first, `links` from the elements of each level to the fibers of the
    next, and for each group its `fiber` of the first level, `EMPTY` if it is empty."""

    levels: tuple[FiberLevel, ...]
    links: tuple[ElementNumbers, ...]
    fiber: Ints


def union_fibers(memo: CountMemo, nests: Sequence[FiberNest], group: Ints, member: Ints, groups: int) -> FiberUnion:
    """Return the unions of `groups` groups. Pair k says that fiber `member[k]`, of the outermost of `nests`, is in group
    `group[k]`.

    A coordinate with nothing below it is in no union.
    """
    level = nests[0].level
    kept = member >= 0
    keys, _ = distinct_keys(group[kept] * max(1, level.fibers) + member[kept], groups * max(1, level.fibers))
    group, member = np.divmod(keys, max(1, level.fibers))
    kept = level.lengths[member] > 0 if level.fibers else np.zeros(0, dtype=bool)
    group, member = group[kept], member[kept]
    if (np.diff(group) > 0).all() and all(_leads_on(n.links, n.level) for n in nests[1:]):
        fiber = np.full(groups, EMPTY)
        fiber[group] = member
        return FiberUnion(tuple(n.level for n in nests), tuple(n.links for n in nests[1:]), fiber)
    # groups of the same members have the same union
    distinct_groups, _, which = deduplicate_fibers(FiberLevel(group_positions(group, groups), member, max(1, level.fibers)))
    distinct = (_innermost if len(nests) == 1 else _outer)(memo, nests, distinct_groups)
    return FiberUnion(distinct.levels, distinct.links, distinct.fiber[which])


def _leads_on(links: ElementNumbers, level: FiberLevel) -> bool:
    """Return whether there is a fiber of `level` that is not empty below every element above."""
    link = links.numbers[links.level.lengths > 0] if isinstance(links, PerFiber) else links
    return bool((link >= 0).all() and (level.lengths > 0)[link].all())


def _innermost(memo: CountMemo, nests: Sequence[FiberNest], groups: FiberLevel) -> FiberUnion:
    level = nests[0].level
    work = int(level.lengths[groups.crd].sum()) if len(groups.crd) else 0
    if work > SATURATION_RATIO * groups.fibers * level.size:
        return _innermost_in_rounds(memo, level, groups)
    memo.afford(work)
    row, at = level.expanded(groups.crd)
    keys, _ = distinct_keys(groups.owner[row] * level.size + level.crd[at], groups.fibers * level.size)
    group, crd = np.divmod(keys, max(1, level.size))
    return _union_of_coordinates(group, crd, groups.fibers, level.size)


def _innermost_in_rounds(memo: CountMemo, level: FiberLevel, groups: FiberLevel) -> FiberUnion:
    """Merge twice as many members of each group in every round. A group whose union has all coordinates takes no further part."""
    memo.afford(groups.fibers * level.size)
    present = np.zeros((groups.fibers, level.size), dtype=bool)
    rank = np.arange(len(groups.crd)) - groups.pos[:-1][groups.owner]
    start, step = 0, 1
    open_ = np.ones(groups.fibers, dtype=bool)
    while open_.any() and start < groups.lengths[open_].max(initial=0):
        in_round = open_[groups.owner] & (rank >= start) & (rank < start + step)
        members, owners = groups.crd[in_round], groups.owner[in_round]
        memo.afford(int(level.lengths[members].sum()))
        row, at = level.expanded(members)
        present[owners[row], level.crd[at]] = True
        open_ &= ~present.all(axis=1)
        start, step = start + step, step * 2
    group, crd = np.nonzero(present)
    return _union_of_coordinates(group, crd, groups.fibers, level.size)


def _outer(memo: CountMemo, nests: Sequence[FiberNest], groups: FiberLevel) -> FiberUnion:
    level = nests[0].level
    memo.afford(int(level.lengths[groups.crd].sum()) if len(groups.crd) else 0)
    if isinstance(nests[1].links, PerFiber) and (copied := _copied_in_groups(level, groups)) is not None:
        return _outer_of_copies(memo, nests[1:], nests[1].links, groups, copied)
    row, at = level.expanded(groups.crd)
    keys, which = distinct_keys(groups.owner[row] * level.size + level.crd[at], groups.fibers * level.size)
    inner = union_fibers(memo, nests[1:], which, nests[1].link[at], len(keys))
    kept = inner.fiber >= 0
    group, crd = np.divmod(keys[kept], max(1, level.size))
    merged, links, classes = deduplicate_fibers(
        FiberLevel(group_positions(group, groups.fibers), crd, level.size), inner.fiber[kept]
    )
    assert links is not None
    return FiberUnion((merged, *inner.levels), (links, *inner.links), _mark_empty(merged, classes))


def _copied_in_groups(level: FiberLevel, groups: FiberLevel) -> FiberCopies | None:
    """Return for each group the one fiber that all its members are copies of, None if some group has no such fiber."""
    copies = level.coordinates
    if not isinstance(copies, FiberCopies):
        copies = FiberCopies(level, np.arange(level.fibers))
    sources = np.full(groups.fibers, EMPTY)
    sources[groups.owner] = copies.sources[groups.crd]
    is_alike = (sources[groups.owner] == copies.sources[groups.crd]).all()
    return FiberCopies(copies.level, sources) if is_alike else None


def _outer_of_copies(
    memo: CountMemo, nests: Sequence[FiberNest], links: PerFiber, groups: FiberLevel, copied: FiberCopies
) -> FiberUnion:
    """Merge members that copy one fiber in each group, and have one fiber below all their coordinates."""
    inner = union_fibers(memo, nests, groups.owner, links.numbers[groups.crd], groups.fibers)
    (sources, below), which = distinct_tuples([np.where(inner.fiber >= 0, copied.sources, EMPTY), inner.fiber])
    merged = copied.level.copies(sources)
    return FiberUnion((merged, *inner.levels), (PerFiber(merged, below), *inner.links), _mark_empty(merged, which))


def _union_of_coordinates(group: Ints, crd: Ints, groups: int, size: int) -> FiberUnion:
    level, _, which = deduplicate_fibers(FiberLevel(group_positions(group, groups), crd, size))
    return FiberUnion((level,), (), _mark_empty(level, which))


def _mark_empty(level: FiberLevel, fiber: Ints) -> Ints:
    return np.where(level.lengths[fiber] > 0, fiber, EMPTY) if level.fibers else fiber
