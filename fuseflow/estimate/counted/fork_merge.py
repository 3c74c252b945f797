"""Counts streams through a fork, which deals elements to lanes in turn, and through a merge, which takes them back.

The lane of an element follows from the number of elements before it. So equal lists that begin at different turns become distinct
fibers; each list has at most as many of them as there are lanes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fuseflow.estimate.counted.deduplication import deduplicate_fibers, distinct_tuples, group_positions
from fuseflow.estimate.counted.memo import CountMemo
from fuseflow.estimate.counted.nest_refinement import apply_map, common_refinement
from fuseflow.estimate.counted.stream_trie import EMPTY, FiberLevel, FiberNest, Ints, normalize_labels, positions, take
from fuseflow.tensors.distinct_keys import distinct_keys


def fork_nest(memo: CountMemo, nest: FiberNest, lanes: int) -> list[tuple[FiberNest, Ints]]:
    """Return for each lane its nest, and for each element of that nest the element of `nest` that it is."""
    above, links, turns, fibers = split_by_turn(memo, nest, lanes)
    memo.afford(int(nest.level.lengths[fibers].sum()))
    row, at = nest.level.expanded(fibers)
    lane = (np.arange(len(at)) - positions(nest.level.lengths[fibers])[:-1][row] + turns[row]) % lanes
    nests = []
    for k in range(lanes):
        in_lane = lane == k
        level = FiberLevel(group_positions(row[in_lane], len(fibers)), nest.level.crd[at[in_lane]], nest.level.size)
        nests.append((FiberNest(above, links, level), at[in_lane]))
    return nests


def split_by_turn(memo: CountMemo, nest: FiberNest, lanes: int) -> tuple[FiberNest | None, Ints, Ints, Ints]:
    """Split the fibers of `nest`, so that all lists with one fiber begin at the same turn.

    Returns the nest above the new fibers, its links to them, and for each new fiber its turn and the fiber of `nest` that it is.
    """
    chain = nest.chain
    totals = [chain[-1].level.lengths % lanes]  # elements below each fiber, outermost first
    for outer, inner in zip(reversed(chain[:-1]), reversed(chain[1:]), strict=True):
        counts = take(totals[0], inner.link, 0)
        totals.insert(0, np.bincount(outer.level.owner, weights=counts, minlength=outer.level.fibers).astype(np.int64) % lanes)
    above: FiberNest | None = None
    link, turn = nest.chain[0].link, np.zeros(1, dtype=np.int64)
    for k, current in enumerate(chain):
        keys, which = distinct_keys((link + 1) * lanes + turn, (current.level.fibers + 1) * lanes)
        fibers, turns = np.divmod(keys, lanes)
        nonempty = fibers > 0
        rank = np.cumsum(nonempty) - 1
        links = np.where(nonempty[which], rank[which], EMPTY)
        fibers, turns = fibers[nonempty] - 1, turns[nonempty]
        if k == len(chain) - 1:
            return above, links, turns, fibers
        memo.afford(int(current.level.lengths[fibers].sum()))
        row, at = current.level.expanded(fibers)
        level = FiberLevel(positions(current.level.lengths[fibers]), current.level.crd[at], current.level.size)
        below = chain[k + 1].link[at]
        counts = take(totals[k + 1], below, 0)
        before = np.cumsum(counts) - counts
        firsts = np.append(before, 0)[np.minimum(level.pos[:-1], len(before))]
        link, turn = below, (turns[row] + before - firsts[row]) % lanes
        above = FiberNest(above, links, level)
    raise AssertionError("a nest has a level")


def merge_nests(
    memo: CountMemo, nests: Sequence[FiberNest], labels: Sequence[Ints | None], levels: int
) -> tuple[FiberNest, Ints | None]:
    """Return the nest and the labels of a merge of the lanes with these `nests`. It takes elements in turn, `levels` levels above
    the innermost."""
    lanes = len(nests)
    chains = [nest.chain for nest in nests]
    depth = len(chains[0]) - levels
    tops = [chain[depth - 1] for chain in chains]
    above, maps = common_refinement(memo, [top.above for top in tops])
    fibers, which = distinct_tuples([apply_map(top.link, map) for top, map in zip(tops, maps, strict=True)])
    lengths = sum((take(top.level.lengths, f, 0) for f, top in zip(fibers, tops, strict=True)), start=np.zeros_like(fibers[0]))
    counts = FiberLevel(positions(lengths), np.zeros(int(lengths.sum()), dtype=np.int64), tops[0].level.size)
    outer, links, turns, rows = split_by_turn(memo, FiberNest(above, which, counts), lanes)
    memo.afford(int(counts.lengths[rows].sum()))
    row = np.repeat(np.arange(len(rows)), counts.lengths[rows])
    within = np.arange(len(row)) - positions(counts.lengths[rows])[:-1][row]
    lane, nth = (turns[row] + within) % lanes, within // lanes
    starts = np.cumsum([0, *(top.level.elements for top in tops)])  # of the elements of each lane among all elements
    firsts = np.concatenate([np.append(top.level.pos[:-1], 0) for top in tops])
    heads = np.cumsum([0, *(top.level.fibers + 1 for top in tops)])
    at = starts[lane] + firsts[heads[lane] + np.stack(fibers)[lane, rows[row]]] + nth
    level = FiberLevel(positions(counts.lengths[rows]), np.concatenate([top.level.crd for top in tops])[at], tops[0].level.size)
    label: Ints | None = None
    if any(own is not None for own in labels):  # of all lanes, one lane behind the other
        sizes = [nest.level.elements for nest in nests]
        label = np.concatenate(
            [np.zeros(size, dtype=np.int64) if own is None else own for size, own in zip(sizes, labels, strict=True)]
        )
    deeper, label = _stacked_levels([chain[depth:] for chain in chains], label)
    merged = FiberNest(outer, links, level)
    for n, (lower_level, link) in enumerate(deeper):
        merged = FiberNest(merged, link[at] if n == 0 else link, lower_level)
    return merged, normalize_labels(label[at] if label is not None and not deeper else label)


def _stacked_levels(
    inner: Sequence[Sequence[FiberNest]], label: Ints | None
) -> tuple[list[tuple[FiberLevel, Ints]], Ints | None]:
    """Return the levels of all lanes, one lane behind the other and each distinct fiber once, and the labels of the innermost
    elements. `inner` has the nests of each lane, and `label` the labels of all.

    The outermost level is first. Each level comes with the links from the elements of the level above to its fibers.
    """
    stacked: list[tuple[FiberLevel, Ints]] = []
    below = label
    for nests in zip(*(reversed(chain) for chain in inner), strict=True):
        levels = [nest.level for nest in nests]
        heads = np.cumsum([0, *(level.fibers for level in levels)])
        lengths, crds = [level.lengths for level in levels], [level.crd for level in levels]
        level, below, which = deduplicate_fibers(
            FiberLevel(positions(np.concatenate(lengths)), np.concatenate(crds), levels[0].size), below
        )
        if stacked:
            assert below is not None
            stacked[0] = (stacked[0][0], below)
        else:
            label = below
        link = np.concatenate([np.where(n.link >= 0, n.link + head, EMPTY) for n, head in zip(nests, heads, strict=False)])
        below = take(which, link)
        stacked.insert(0, (level, below))
    return stacked, label
