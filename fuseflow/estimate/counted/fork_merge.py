"""Elements dealt to lanes in turn, and taken from them again: which lane an element is in follows from how many came before it.

So the lists of a nest are told apart by the turn at which they begin, too: there are at most as many of each as there are lanes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fuseflow.estimate.counted.distinct import deduplicate_fibers, distinct_keys, distinct_tuples, group_positions, positions
from fuseflow.estimate.counted.joint_nests import apply_map, common_refinement
from fuseflow.estimate.counted.memo import CountMemo
from fuseflow.estimate.counted.nests import EMPTY, FiberLevel, FiberNest, Ints, normalize_labels, take


def fork_nest(memo: CountMemo, nest: FiberNest, lanes: int) -> list[tuple[FiberNest, Ints]]:
    """For each lane its nest, and which element of `nest` each of its elements is."""
    above, links, turns, fibers = _split_by_turn(memo, nest, lanes)
    memo.afford(int(nest.level.lengths[fibers].sum()))
    place, at = nest.level.expanded(fibers)
    lane = (np.arange(len(at)) - positions(nest.level.lengths[fibers])[:-1][place] + turns[place]) % lanes
    found = []
    for k in range(lanes):
        mine = lane == k
        level = FiberLevel(group_positions(place[mine], len(fibers)), nest.level.crd[at[mine]], nest.level.size)
        found.append((FiberNest(above, links, level), at[mine]))
    return found


def _split_by_turn(memo: CountMemo, nest: FiberNest, lanes: int) -> tuple[FiberNest | None, Ints, Ints, Ints]:
    """The nest around the lists of `nest`, such that each of these begins at one turn: (that nest, its links to new fibers, the turn of
    each new fiber, which fiber of `nest` it is)."""
    chain = nest.chain
    totals = [chain[-1].level.lengths % lanes]  # elements below each fiber, outermost first
    for outer, inner in zip(reversed(chain[:-1]), reversed(chain[1:]), strict=True):
        each = take(totals[0], inner.link, 0)
        totals.insert(0, np.bincount(outer.level.owner, weights=each, minlength=outer.level.fibers).astype(np.int64) % lanes)
    above: FiberNest | None = None
    link, turn = nest.chain[0].link, np.zeros(1, dtype=np.int64)
    for k, one in enumerate(chain):
        keys, which = distinct_keys((link + 1) * lanes + turn, (one.level.fibers + 1) * lanes)
        fibers, turns = np.divmod(keys, lanes)
        held = fibers > 0
        rank = np.cumsum(held) - 1
        links = np.where(held[which], rank[which], EMPTY)
        fibers, turns = fibers[held] - 1, turns[held]
        if k == len(chain) - 1:
            return above, links, turns, fibers
        memo.afford(int(one.level.lengths[fibers].sum()))
        place, at = one.level.expanded(fibers)
        level = FiberLevel(positions(one.level.lengths[fibers]), one.level.crd[at], one.level.size)
        below = chain[k + 1].link[at]
        each = take(totals[k + 1], below, 0)
        before = np.cumsum(each) - each
        firsts = np.append(before, 0)[np.minimum(level.pos[:-1], len(before))]
        link, turn = below, (turns[place] + before - firsts[place]) % lanes
        above = FiberNest(above, links, level)
    raise AssertionError("a nest has a level")


def merge_nests(
    memo: CountMemo, nests: Sequence[FiberNest], labels: Sequence[Ints | None], levels: int
) -> tuple[FiberNest, Ints | None]:
    """The nest of a merge of lanes whose elements, `levels` levels above the innermost, are taken in turn."""
    lanes = len(nests)
    chains = [nest.chain for nest in nests]
    depth = len(chains[0]) - levels
    tops = [chain[depth - 1] for chain in chains]
    above, maps = common_refinement(memo, [top.above for top in tops])
    fibers, which = distinct_tuples([apply_map(top.link, map) for top, map in zip(tops, maps, strict=True)])
    lengths = sum((take(top.level.lengths, f, 0) for f, top in zip(fibers, tops, strict=True)), start=np.zeros_like(fibers[0]))
    counts = FiberLevel(positions(lengths), np.zeros(int(lengths.sum()), dtype=np.int64), tops[0].level.size)
    outer, links, turns, rows = _split_by_turn(memo, FiberNest(above, which, counts), lanes)
    memo.afford(int(counts.lengths[rows].sum()))
    place = np.repeat(np.arange(len(rows)), counts.lengths[rows])
    within = np.arange(len(place)) - positions(counts.lengths[rows])[:-1][place]
    lane, nth = (turns[place] + within) % lanes, within // lanes
    starts = np.cumsum([0, *(len(top.level.crd) for top in tops)])  # of each lane's elements among those of all
    firsts = np.concatenate([np.append(top.level.pos[:-1], 0) for top in tops])
    heads = np.cumsum([0, *(top.level.fibers + 1 for top in tops)])
    at = starts[lane] + firsts[heads[lane] + np.stack(fibers)[lane, rows[place]]] + nth
    level = FiberLevel(positions(counts.lengths[rows]), np.concatenate([top.level.crd for top in tops])[at], tops[0].level.size)
    deeper, label = _stacked_levels([chain[depth:] for chain in chains], _stacked_labels(nests, labels))
    merged = FiberNest(outer, links, level)
    for n, (one, link) in enumerate(deeper):
        merged = FiberNest(merged, link[at] if n == 0 else link, one)
    return merged, normalize_labels(label[at] if label is not None and not deeper else label)


def _stacked_labels(nests: Sequence[FiberNest], labels: Sequence[Ints | None]) -> Ints | None:
    """The labels of all lanes, one behind the other."""
    if all(label is None for label in labels):
        return None
    each = (
        np.zeros(len(n.level.crd), dtype=np.int64) if label is None else label for n, label in zip(nests, labels, strict=True)
    )
    return np.concatenate(list(each))


def _stacked_levels(
    inner: Sequence[Sequence[FiberNest]], label: Ints | None
) -> tuple[list[tuple[FiberLevel, Ints]], Ints | None]:
    """The levels of all lanes one behind the other, equal fibers as one, each with the links to it from the elements of the level above;
    outermost first. And the labels of the elements of the innermost."""
    found: list[tuple[FiberLevel, Ints]] = []
    below = label
    for nests in zip(*(reversed(chain) for chain in inner), strict=True):
        levels = [nest.level for nest in nests]
        heads = np.cumsum([0, *(level.fibers for level in levels)])
        lengths, crds = [level.lengths for level in levels], [level.crd for level in levels]
        level, below, which = deduplicate_fibers(
            FiberLevel(positions(np.concatenate(lengths)), np.concatenate(crds), levels[0].size), below
        )
        if found:
            assert below is not None
            found[0] = (found[0][0], below)
        else:
            label = below
        link = np.concatenate([np.where(n.link >= 0, n.link + head, EMPTY) for n, head in zip(nests, heads, strict=False)])
        below = take(which, link)
        found.insert(0, (level, below))
    return found, label
