"""Distinct keys of an array, such as coordinates, and for each entry the number of its key."""

from __future__ import annotations

import numpy as np

from fuseflow.tensors.levels.base import Ints

TABLE_SIZE = 1 << 22
"""The largest bound of keys up to which a table, and no sort, finds the distinct keys even if there are few keys."""


def distinct_keys(keys: Ints, bound: int) -> tuple[Ints, Ints]:
    """Return the distinct keys, ascending, and for each key its number among them. Keys are at least 0 and below `bound`."""
    if bound <= max(TABLE_SIZE, 4 * len(keys)):
        present = np.zeros(bound, dtype=bool)
        present[keys] = True
        values = np.flatnonzero(present)
        rank = np.cumsum(present) - 1
        return values, rank[keys]
    if (np.diff(keys) > 0).all():
        return keys, np.arange(len(keys))
    values, inverse = np.unique(keys, return_inverse=True)
    return values, inverse
