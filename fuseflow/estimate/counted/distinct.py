"""What is equal, once: pairs of small numbers, and fibers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from fuseflow.estimate.counted.nests import EMPTY, FiberLevel, Ints

TABLE_SIZE = 1 << 22
"""Keys up to which, or up to a few times their number, a table is taken to tell them apart, not a sort."""


def distinct_keys(keys: Ints, bound: int) -> tuple[Ints, Ints]:
    """The different keys, ascending, and which of them each key is; keys are 0 up to below `bound`."""
    if bound <= max(TABLE_SIZE, 4 * len(keys)):
        there = np.zeros(bound, dtype=bool)
        there[keys] = True
        found = np.flatnonzero(there)
        rank = np.cumsum(there) - 1
        return found, rank[keys]
    if (np.diff(keys) > 0).all():
        return keys, np.arange(len(keys))
    found, inverse = np.unique(keys, return_inverse=True)
    return found, inverse


def distinct_tuples(columns: Sequence[Ints]) -> tuple[list[Ints], Ints]:
    """The different rows, as columns, the first column ascending; and which of them each row is. Entries are -1 or more."""
    first, *others = columns
    values, which = _distinct_values(first)
    rows = [values]
    for column in others:
        more, inner = _distinct_values(column)
        if len(more) == 1:
            rows.append(np.full(len(rows[0]), more[0]))
            continue
        found, which = distinct_keys(which * max(1, len(more)) + inner, max(1, len(rows[0])) * max(1, len(more)))
        left, right = np.divmod(found, max(1, len(more)))
        rows = [*(row[left] for row in rows), more[right]]
    return rows, which


def _distinct_values(column: Ints) -> tuple[Ints, Ints]:
    """The different values of -1 or more, and which each is."""
    found, which = distinct_keys(column + 1, int(column.max(initial=-1)) + 2)
    return found - 1, which


def deduplicate_fibers(level: FiberLevel, below: Ints | None = None) -> tuple[FiberLevel, Ints | None, Ints]:
    """Equal fibers as one: the different ones, what is below their elements, and which of them each fiber is. Fibers are equal if their
    coordinates and what is below each are."""
    if level.fibers <= 1:
        return level, below, np.zeros(level.fibers, dtype=np.int64)
    mixed = _mix(level.crd.astype(np.uint64) * np.uint64(2) + np.uint64(1))
    if below is not None:
        mixed = _mix(mixed + below.astype(np.uint64))
    prints = _range_sums(mixed, level.pos) + _mix(level.lengths.astype(np.uint64))
    _, first, which = np.unique(prints, return_index=True, return_inverse=True)
    if len(first) == level.fibers:
        return level, below, np.arange(level.fibers)
    order = np.argsort(first)  # the classes in the order in which they come first
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    first, which = first[order], rank[which]
    if not _all_equal(level, below, first[which]):  # two prints in 2^64 are equal by chance
        return level, below, np.arange(level.fibers)
    taken, below = select_fibers(level, first, below)
    return taken, below, which


def select_fibers(level: FiberLevel, fibers: Ints, below: Ints | None = None) -> tuple[FiberLevel, Ints | None]:
    """These fibers, none `EMPTY`, in this order, and what is below their elements."""
    if len(fibers) == level.fibers and (fibers == np.arange(level.fibers)).all():
        return level, below
    _, at = level.expanded(fibers)
    return FiberLevel(positions(level.lengths[fibers]), level.crd[at], level.size), None if below is None else below[at]


def positions(lengths: Ints) -> Ints:
    return np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(lengths)))


def append_empty_fiber(level: FiberLevel) -> FiberLevel:
    """The fibers, and behind them an empty one."""
    return FiberLevel(np.append(level.pos, level.pos[-1]), level.crd, level.size)


def group_positions(groups: Ints, count: int) -> Ints:
    """Positions of groups, given the group of each element, ascending."""
    return positions(np.bincount(groups, minlength=count))


def _all_equal(level: FiberLevel, below: Ints | None, like: Ints) -> bool:
    """Whether every fiber equals the one that it is said to be like."""
    if not (level.lengths == level.lengths[like]).all():
        return False
    other = np.arange(len(level.crd)) + (level.pos[:-1][like] - level.pos[:-1])[level.owner]
    return bool((level.crd == level.crd[other]).all() and (below is None or (below == below[other]).all()))


def _range_sums(values: npt.NDArray[np.uint64], pos: Ints) -> npt.NDArray[np.uint64]:
    """Sums modulo 2^64 between positions."""
    total = np.concatenate((np.zeros(1, dtype=np.uint64), np.cumsum(values, dtype=np.uint64)))
    found: npt.NDArray[np.uint64] = total[pos[1:]] - total[pos[:-1]]
    return found


def _mix(x: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Scatters numbers over 64 bits (splitmix64)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


__all__ = [
    "EMPTY",
    "append_empty_fiber",
    "deduplicate_fibers",
    "distinct_keys",
    "distinct_tuples",
    "group_positions",
    "positions",
    "select_fibers",
]
