"""The weighted cover of a mask by blocks of several sizes, each at a cost: which block holds which entry.

    sizes 2x2 at 2.5 and 1x1 at 1.0        1 1 . .      A A . .
                                           1 1 . 1  ->  A A . B       cost 2.5 + 1.0 + 1.0
                                           . . 1 .      . . B .

Blocks of one size stand in a grid that begins at (0, 0). Blocks at the edge are cut there, and cost as much as others. The best cover is
hard to find, so this one is greedy: next comes the block with the least weight for an entry that it newly covers. Of equal ones a larger
block comes first, then the option that is listed first, then the first row and column. Its cost is at most H(n) = 1 + 1/2 + ... + 1/n times
the least, where n is the number of entries of the largest block. With one size and single elements that hold all, it is the least.

CP-SAT finds the least cost, and is not used: for 128 x 128 entries, covers in blocks of 4x4 and 8x8, or of 8x8 and 32x32, became at most
0.15 % cheaper, and took 0.05 to 0.6 s where this takes 5 ms; with single elements besides, half of a matrix did not end in 20 s.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from fuseflow.errors import PlanError
from fuseflow.tensors.blocks import block_text

Mask: TypeAlias = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Option:
    """Blocks of one size. Each costs `weight`. `holds` are the entries that such a block can hold, or None if it holds all."""

    size: tuple[int, int]
    weight: float
    holds: Mask | None = None

    def __post_init__(self) -> None:
        if len(self.size) != 2 or min(self.size, default=0) < 1:
            raise PlanError(f"blocks of {self.size} in a matrix", hint="a size has two positive numbers, as in `32x32`")
        check_weight(self.weight, block_text(self.size))

    @property
    def area(self) -> int:
        """The number of entries of a block that is not cut."""
        return math.prod(self.size)


@dataclass(frozen=True, slots=True, eq=False)
class Cover:
    """A cover of a mask. `owner` gives for each entry of the mask the number of the option that holds it, and -1 elsewhere. `blocks` lists
    the numbers of options in the order in which they were chosen, each with the first rows and columns of its blocks, [n, 2]."""

    owner: npt.NDArray[np.intp]
    blocks: tuple[tuple[int, npt.NDArray[np.intp]], ...]
    cost: float

    def held_by(self, option: int) -> Mask:
        """Return the entries that blocks of this option hold."""
        held: Mask = self.owner == option
        return held


def check_weight(weight: float, blocks: str) -> None:
    """Raise `PlanError` unless `weight` can be the cost of a block: blocks without a cost would cover everything."""
    if not (math.isfinite(weight) and weight > 0):
        raise PlanError(f"a weight of {weight:g} for `{blocks}`", hint="a weight is what a block costs: a finite number above 0")


def cover(mask: Mask, options: Sequence[Option]) -> Cover:
    """Cover the entries of a matrix. Raise `PlanError` without options, and if no option can hold some entry.

    Blocks of one size never overlap, so all that cover equally many entries are chosen at once. The entries left to cover only get fewer,
    so the cost of an option for an entry only rises. The heap has a lower bound, which is computed anew when the option's turn comes.
    """
    if not options:
        raise PlanError("a cover without a size of blocks", hint="give at least one, such as `1x1`")
    left, owner, blocks, cost = mask.copy(), np.full(mask.shape, -1), list[tuple[int, npt.NDArray[np.intp]]](), 0.0
    heap = [(option.weight / option.area, -option.area, number) for number, option in enumerate(options)]
    heapify(heap)
    while heap:
        expected, area, number = heappop(heap)
        option = options[number]
        open_entries = left if option.holds is None else left & option.holds
        counts = count_entries(open_entries, option.size)
        most = counts.max(initial=0)
        if not most:
            continue
        price = float(option.weight / most)
        heappush(heap, (price, area, number))
        if price > expected:
            continue
        best = counts == most
        taken = open_entries & spread(best, option.size, mask.shape)
        left[taken], owner[taken] = False, number
        blocks.append((number, np.argwhere(best) * option.size))
        cost += option.weight * len(blocks[-1][1])
    if left.any():
        row, column = np.argwhere(left)[0]
        raise PlanError(f"no block can hold the entry ({row}, {column})", hint="add a size of blocks that holds every entry")
    return Cover(owner, tuple(blocks), cost)


def count_entries(mask: Mask, size: tuple[int, int]) -> npt.NDArray[np.intp]:
    """Return the number of entries in each block of a matrix.

    >>> count_entries(np.ones((3, 5), dtype=bool), (2, 2)).tolist()
    [[4, 4, 2], [2, 2, 1]]
    """
    if not mask.size:
        return np.zeros((0, 0), dtype=np.intp)
    rows = np.add.reduceat(mask, np.arange(0, mask.shape[0], size[0]), axis=0, dtype=np.intp)
    return np.add.reduceat(rows, np.arange(0, mask.shape[1], size[1]), axis=1)


def spread(blocks: Mask, size: tuple[int, int], shape: tuple[int, ...]) -> Mask:
    """Return the mask, of this shape, of the entries of the blocks that are set. `size` is the rows and columns of a block."""
    return np.repeat(np.repeat(blocks, size[0], axis=0), size[1], axis=1)[: shape[0], : shape[1]]
