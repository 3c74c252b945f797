"""Finding distinct values: of tuples of small numbers, and of fibers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from fuseflow.estimate.counted.stream_trie import FiberLevel, Ints, positions
from fuseflow.tensors.distinct_keys import distinct_keys


def distinct_tuples(columns: Sequence[Ints]) -> tuple[list[Ints], Ints]:
    """Return the distinct rows of a table as columns, ascending by the first, and for each row the number of its distinct row.
    Entries are at least -1."""
    first, *others = columns
    values, which = _distinct_values(first)
    rows = [values]
    for column in others:
        column_values, inner = _distinct_values(column)
        if len(column_values) == 1:
            rows.append(np.full(len(rows[0]), column_values[0]))
            continue
        keys, which = distinct_keys(which * max(1, len(column_values)) + inner, max(1, len(rows[0])) * max(1, len(column_values)))
        left, right = np.divmod(keys, max(1, len(column_values)))
        rows = [*(row[left] for row in rows), column_values[right]]
    return rows, which


def _distinct_values(column: Ints) -> tuple[Ints, Ints]:
    """Return the distinct values of a column, and for each entry the number of its value. Entries are at least -1."""
    values, which = distinct_keys(column + 1, int(column.max(initial=-1)) + 2)
    return values - 1, which


def deduplicate_fibers(level: FiberLevel, below: Ints | None = None) -> tuple[FiberLevel, Ints | None, Ints]:
    """Return the distinct fibers of a level, the links below their elements, and for each fiber the number of its distinct fiber.

    Fibers are equal if their coordinates and the links `below` these are equal.
    """
    if level.fibers <= 1:
        return level, below, np.zeros(level.fibers, dtype=np.int64)
    mixed = _mix(level.crd.astype(np.uint64) * np.uint64(2) + np.uint64(1))
    if below is not None:
        mixed = _mix(mixed + below.astype(np.uint64))
    sums = np.concatenate((np.zeros(1, dtype=np.uint64), np.cumsum(mixed, dtype=np.uint64)))  # modulo 2^64
    fingerprints = sums[level.pos[1:]] - sums[level.pos[:-1]] + _mix(level.lengths.astype(np.uint64))
    _, first, which = np.unique(fingerprints, return_index=True, return_inverse=True)
    if len(first) == level.fibers:
        return level, below, np.arange(level.fibers)
    order = np.argsort(first)  # the distinct fibers in the order of their first occurrence
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    first, which = first[order], rank[which]
    if not _all_equal(level, below, first[which]):  # two fingerprints of 64 bits are equal by chance
        return level, below, np.arange(level.fibers)
    unique, below = select_fibers(level, first, below)
    return unique, below, which


def select_fibers(level: FiberLevel, fibers: Ints, below: Ints | None = None) -> tuple[FiberLevel, Ints | None]:
    """Return a level of these fibers, in this order, and the links below their elements. None of the fibers is `EMPTY`."""
    if len(fibers) == level.fibers and (fibers == np.arange(level.fibers)).all():
        return level, below
    at = level.elements_of(fibers)
    return FiberLevel(positions(level.lengths[fibers]), level.crd[at], level.size), None if below is None else below[at]


def append_empty_fiber(level: FiberLevel) -> FiberLevel:
    """Return the level with an empty fiber added at its end."""
    return FiberLevel(np.append(level.pos, level.pos[-1]), level.crd, level.size)


def group_positions(groups: Ints, count: int) -> Ints:
    """Return the positions at which groups begin, given the group of each element, ascending."""
    return positions(np.bincount(groups, minlength=count))


def _all_equal(level: FiberLevel, below: Ints | None, like: Ints) -> bool:
    """Return whether every fiber of a level equals the fiber whose number `like` has for it."""
    if not (level.lengths == level.lengths[like]).all():
        return False
    other = np.arange(level.elements) + (level.pos[:-1][like] - level.pos[:-1])[level.owner]
    return bool((level.crd == level.crd[other]).all() and (below is None or (below == below[other]).all()))


def _mix(x: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return numbers scattered over 64 bits, by the finalizer of splitmix64."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
