"""A list of entries that a node holds back, in the order in which they came: values with their coordinates. It can be cut down to the
entries of largest magnitude.

Coordinates are stored level by level, one array for each level. For each entry, `fresh` is the outermost level whose
coordinate differs from the entry before it; levels outside it are equal.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fuseflow.native.records import Record, address, get_int, inline, outline, set_int
from fuseflow.sim.engine.workspace import sort_integers

HELD = Record(
    "fresh crds values magnitudes used limit levels"
)  # addresses; entries in use, and the number there is room for; levels of coordinates
held_at = HELD.at

MAGNITUDE_BITS = 0x7FFF_FFFF_FFFF_FFFF  # of a float64: all but its sign
INFINITY_BITS = 0x7FF0_0000_0000_0000


@inline
def magnitude(word: int) -> int:
    """Return an integer that orders float64 numbers, given as a 64-bit word, by magnitude. All NaN have one result, the
    greatest."""
    return min(word & MAGNITUDE_BITS, INFINITY_BITS + 1)


@inline
def coordinates_at(h: Any, level: int) -> int:
    """Return the address of the coordinates of a level in the list `h`."""
    return h.crds + 8 * h.limit * level


@outline
def keep_largest(h: Any, count: int) -> None:
    """Keep only the `count` entries of largest magnitude in the list `h`, in their order; of equal ones the first. Levels that
    are fresh in a removed entry become fresh in the next kept entry."""
    total = h.used
    if total <= count:
        return
    for i in range(total):
        set_int(h.magnitudes, i, magnitude(get_int(h.values, i)))
    sort_integers(h.magnitudes, total)
    least = get_int(h.magnitudes, total - count)
    equal = 0  # entries of the least magnitude that may still stay
    for i in range(total - count, total):
        if get_int(h.magnitudes, i) == least:
            equal += 1
    used, fresh = 0, h.levels
    for i in range(total):
        fresh = min(fresh, get_int(h.fresh, i))
        size = magnitude(get_int(h.values, i))
        if size < least or (size == least and equal == 0):
            continue
        if size == least:
            equal -= 1
        set_int(h.fresh, used, fresh)
        set_int(h.values, used, get_int(h.values, i))
        for level in range(h.levels):
            set_int(coordinates_at(h, level), used, get_int(coordinates_at(h, level), i))
        used, fresh = used + 1, h.levels
    h.used = used


class EntryList:
    """The arrays of a list of entries with `levels` coordinates each. `record` points to them; `limit` is the room at first."""

    def __init__(self, record: npt.NDArray[Any], levels: int, limit: int) -> None:
        self.record, self.levels = record, levels
        self.record["levels"] = levels
        self._allocate(limit)

    def grow(self) -> None:
        """Make room for four times as many entries."""
        fresh, crds, values, used = self.fresh, self.crds, self.values, int(self.record["used"][0])
        self._allocate(4 * len(fresh))
        self.fresh[:used], self.crds[:, :used], self.values[:used] = fresh[:used], crds[:, :used], values[:used]

    def _allocate(self, limit: int) -> None:
        self.fresh, self.magnitudes, self.values = (np.zeros(limit, dtype=np.int64) for _ in range(3))
        self.crds = np.zeros((self.levels, limit), dtype=np.int64)
        record = self.record[0]
        for name in ("fresh", "crds", "values", "magnitudes"):
            record[name] = address(getattr(self, name))
        record["limit"] = limit
