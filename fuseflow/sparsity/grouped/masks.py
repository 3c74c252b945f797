"""Masks of the selection n:m:g."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fuseflow.sparsity.grouped.assignment import Method
from fuseflow.sparsity.grouped.grouping import grouping


def grouped_mask(
    array: npt.ArrayLike, n: int, m: int, g: int, sparse_dim: int = -2, group_dim: int = -1, method: Method = "exact"
) -> npt.NDArray[np.bool_]:
    """Return which elements of a tensor the selection n:m:g keeps. `grouping` explains the arguments, and the errors.

    >>> grouped_mask([[5, 1, 4, 2], [3, 9, 8, 1]], 1, 2, 2).astype(int).tolist()
    [[1, 0, 0, 1], [0, 1, 1, 0]]
    """
    return grouping(array, n, m, g, sparse_dim, group_dim, method).mask()
