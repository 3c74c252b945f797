"""How the entries that n:m:g keeps are stored, in the layout of STen: the columns of each chunk sorted by pattern."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fuseflow.sparsity.grouped.chunks import ChunkGrid
from fuseflow.sparsity.grouped.grouping import Grouping
from fuseflow.sparsity.grouped.patterns import patterns


@dataclass(frozen=True, slots=True, eq=False)
class GroupedArray:
    """A tensor of which n:m:g keeps some entries. A kernel walks the `g` columns of a pattern at a time, which have their
    entries in the same places.

    `val` is [chunks, patterns, g, n]: the kept entries of a column, places ascending. `idx` is [chunks, patterns, g]: which column of the
    chunk that is. Columns of one pattern stand in ascending order.
    """

    val: npt.NDArray[Any]
    idx: npt.NDArray[np.int16]
    grid: ChunkGrid

    def to_dense(self) -> npt.NDArray[Any]:
        """Return the tensor with zeros for what is not kept."""
        count, _, _, n = self.val.shape
        chunks = np.zeros((count, self.grid.columns, self.grid.m), dtype=self.val.dtype)
        chunk = np.arange(count)[:, None, None, None]
        chunks[chunk, self.idx[..., None], patterns(n, self.grid.m)[:, None, :]] = self.val
        return self.grid.join(chunks)


def pack(array: npt.NDArray[Any], grouping: Grouping) -> GroupedArray:
    """Store what a selection keeps of a tensor. It may be another tensor than the one it was made for, of the same shape."""
    table, count = grouping.patterns, grouping.grid.count
    idx = np.argsort(grouping.pattern_of, axis=1, kind="stable").astype(np.int16).reshape(count, len(table), grouping.g)
    chunk = np.arange(count)[:, None, None, None]
    val = grouping.grid.split(array)[chunk, idx[..., None], table[:, None, :]]
    return GroupedArray(val, idx, grouping.grid)
