"""The workspace of an accumulator holds values by coordinate, in a hash table of blocks of eight neighbouring coordinates.

The key of a block is one number: all kept coordinates but the last, combined into one number, times the blocks of a row, plus the
last coordinate divided by eight. Neighbouring keys have neighbouring slots, so dense rows are contiguous; a table with a slot for
every possible key has no collisions. A bit mask says which coordinates of a block hold a value.
"""

from __future__ import annotations

from typing import Any, get_args

import numpy as np
import numpy.typing as npt

from fuseflow.keep_rules import By
from fuseflow.native.records import Record, address, get_int, inline, outline, set_int

BLOCK = 8
WORKSPACE = Record("keys masks values order used mask limit space")  # `space`: number of possible keys
workspace_at = WORKSPACE.at

FREE = -1


@inline
def home_place(key: Any, mask: Any) -> Any:
    """Return the slot at which the search for a key, or each key of an array, begins. `mask` is the size of the table minus 1."""
    return (key + (key >> 20) * 40503) & mask


@inline
def find_or_insert(w: Any, key: int) -> int:
    """Return the slot of the block with a key in the workspace `w`. If there is none, insert a block with an empty mask."""
    i = home_place(key, w.mask)
    while True:
        stored_key = get_int(w.keys, i)
        if stored_key == key:
            return i
        if stored_key == FREE:
            set_int(w.keys, i, key)
            set_int(w.masks, i, 0)
            set_int(w.order, w.used, key)
            w.used += 1
            return i
        i = (i + 1) & w.mask


@inline
def sort_keys(w: Any) -> None:
    """Sort the keys of the workspace `w`."""
    sort_integers(w.order, w.used)


@outline
def sort_integers(order: int, count: int) -> None:
    """Sort `count` integers at the address `order`: few by insertion, many by heap sort unless they are sorted already."""
    if count <= 24:
        for i in range(1, count):
            key = get_int(order, i)
            j = i - 1
            while j >= 0 and get_int(order, j) > key:
                set_int(order, j + 1, get_int(order, j))
                j -= 1
            set_int(order, j + 1, key)
        return
    for i in range(1, count):
        if get_int(order, i - 1) > get_int(order, i):
            _heap_sort(order, count)
            return


@outline
def _make_heap(order: int, count: int) -> None:
    """Order integers so that each is at least as great as the two below it, and the greatest is the first."""
    for start in range(count // 2 - 1, -1, -1):
        _sift(order, start, count)


@outline
def _heap_sort(order: int, count: int) -> None:
    _make_heap(order, count)
    for end in range(count - 1, 0, -1):
        key = get_int(order, end)
        set_int(order, end, get_int(order, 0))
        set_int(order, 0, key)
        _sift(order, 0, end)


@outline
def _sift(order: int, root: int, end: int) -> None:
    key = get_int(order, root)
    child = 2 * root + 1
    while child < end:
        if child + 1 < end and get_int(order, child) < get_int(order, child + 1):
            child += 1
        if get_int(order, child) <= key:
            break
        set_int(order, root, get_int(order, child))
        root = child
        child = 2 * root + 1
    set_int(order, root, key)


@outline
def clear(w: Any) -> None:
    """Remove all blocks from the workspace `w`: look up all slots before the first is freed, since a free slot ends a search."""
    for i in range(w.used):
        set_int(w.order, i, find_or_insert(w, get_int(w.order, i)))
    for i in range(w.used):
        set_int(w.keys, get_int(w.order, i), FREE)
    w.used = 0


class WorkspaceTable:
    """The arrays of a workspace, to which `record` points, for `space` possible keys and at first `blocks` blocks. A value has
    `width` words."""

    def __init__(self, record: npt.NDArray[Any], space: int, blocks: int, width: int = 1) -> None:
        self.record, self.space, self.width = record, space, width
        self.record["space"] = space
        self._allocate(min(blocks, _power(space)))

    def grow(self) -> None:
        """Move all blocks to a table with four times as many slots, or with a slot for every possible key if that is less."""
        order = self.order[: int(self.record["used"][0])]
        in_use = self.keys != FREE
        keys, masks, values = self.keys[in_use], self.masks[in_use], self.values[in_use]
        self._allocate(min(4 * len(in_use), _power(self.space)))
        places = self._insert(keys)
        self.masks[places], self.values[places] = masks, values
        self.order[: len(order)] = order
        self.record[0]["used"] = len(order)

    def _insert(self, keys: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Insert new keys and return their slots. Of keys with the same first slot one gets it; the others try the next."""
        mask = len(self.keys) - 1
        places = home_place(keys, mask)
        pending = np.arange(len(keys))
        while len(pending):
            free = pending[self.keys[places[pending]] == FREE]
            self.keys[places[free]] = keys[free]
            pending = pending[self.keys[places[pending]] != keys[pending]]
            places[pending] = (places[pending] + 1) & mask
        return places

    def _allocate(self, places: int) -> None:
        self.keys = np.full(places, FREE, dtype=np.int64)
        self.masks = np.zeros(places, dtype=np.int64)
        self.values = np.zeros((places, BLOCK * self.width))
        self.order = np.zeros(places, dtype=np.int64)
        record = self.record[0]
        for name in ("keys", "masks", "values", "order"):
            record[name] = address(getattr(self, name))
        record["mask"] = places - 1
        record["limit"] = places if places >= self.space else places // 2
        record["used"] = 0


def _power(count: int) -> int:
    return 1 << max(0, (count - 1).bit_length())


HELD = Record(
    "fresh crds values keys used limit levels"
)  # addresses; entries in use, and the number there is room for; levels of coordinates
held_at = HELD.at

ORDERS = get_args(By)
"""The orders by which entries are kept. A node has the index of its order."""
MAGNITUDE_BITS = 0x7FFF_FFFF_FFFF_FFFF  # of a float64: all but its sign
INFINITY_BITS = 0x7FF0_0000_0000_0000
ONE_BITS = 0x3FF0_0000_0000_0000


@inline
def order_key(word: int, by: int) -> int:
    """Return an integer that orders float64 numbers, given as a 64-bit word: the largest for the number that is kept first in the
    order `by`. All NaN have one result, the greatest, or with `least` the smallest."""
    key = min(word & MAGNITUDE_BITS, INFINITY_BITS + 1)
    if by == 0 or key > INFINITY_BITS:
        return ~key if by == 2 else key
    return -key if (word < 0) != (by == 2) else key


@inline
def coordinates_at(h: Any, level: int) -> int:
    """Return the address of the coordinates of a level in the list `h`."""
    return h.crds + 8 * h.limit * level


@outline
def keep_largest(h: Any, count: int, by: int, marks: int) -> None:
    """Keep only the first `count` entries in the order `by` in the list `h`, where they were; of equal ones the first. Levels that
    are fresh in a removed entry become fresh in the next kept entry. With `marks` the kept values become 1."""
    if h.used > count:
        _cut_down(h, count, by)
    if marks != 0:
        for i in range(h.used):
            set_int(h.values, i, ONE_BITS)


@inline
def _cut_down(h: Any, count: int, by: int) -> None:
    """Remove all entries but the first `count` in the order `by`. A heap holds the keys of the first ones, with the last of them at its
    root: it orders them turned, so that its greatest is the smallest key."""
    for i in range(h.used):
        turned = ~order_key(get_int(h.values, i), by)
        if i < count:
            set_int(h.keys, i, turned)
            if i == count - 1:
                _make_heap(h.keys, count)
        elif turned < get_int(h.keys, 0):
            set_int(h.keys, 0, turned)
            _sift(h.keys, 0, count)
    least = ~get_int(h.keys, 0)
    equal = 0  # entries of the least key that may still stay
    for i in range(count):
        if ~get_int(h.keys, i) == least:
            equal += 1
    used, fresh = 0, h.levels
    for i in range(h.used):
        fresh = min(fresh, get_int(h.fresh, i))
        key = order_key(get_int(h.values, i), by)
        if key < least or (key == least and equal == 0):
            continue
        if key == least:
            equal -= 1
        set_int(h.fresh, used, fresh)
        set_int(h.values, used, get_int(h.values, i))
        for level in range(h.levels):
            set_int(coordinates_at(h, level), used, get_int(coordinates_at(h, level), i))
        used, fresh = used + 1, h.levels
    h.used = used


class EntryList:
    """The arrays of a list of entries that a node holds back, in the order in which they came: values with `levels` coordinates each.
    `record` points to them; `limit` is the room at first. It can be cut down to the entries that a rule keeps.

    Coordinates are stored level by level, one array for each level. For each entry, `fresh` is the outermost level whose
    coordinate differs from the entry before it; levels outside it are equal.
    """

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
        self.fresh, self.keys, self.values = (np.zeros(limit, dtype=np.int64) for _ in range(3))
        self.crds = np.zeros((self.levels, limit), dtype=np.int64)
        record = self.record[0]
        for name in ("fresh", "crds", "values", "keys"):
            record[name] = address(getattr(self, name))
        record["limit"] = limit
