"""How the entries that n:m:g keeps are stored, in the layout of STen: the columns of each chunk sorted by pattern."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fuseflow.sparsity.grouped.grouping import Grouping


def pack(array: npt.NDArray[Any], grouping: Grouping) -> tuple[npt.NDArray[Any], npt.NDArray[np.int16]]:
    """Return the entries of a tensor that a selection keeps, [chunks, patterns, g, n], places ascending, and the number of the
    column in its chunk that has these n entries, [chunks, patterns, g]. Columns of one pattern stand in ascending order.

    The tensor may be another one than the selection was made for, of the same shape.
    """
    table, count = grouping.patterns, grouping.grid.count
    columns = np.argsort(grouping.pattern_of, axis=1, kind="stable").astype(np.int16).reshape(count, len(table), grouping.g)
    chunk = np.arange(count)[:, None, None, None]
    return grouping.grid.split(array)[chunk, columns[..., None], table[:, None, :]], columns
