"""The n:m part of an operand: at most n entries of every m coordinates, which the level `nm(n:m)` stores. The others are its residue.

1:2     1 1 . 1  ->  1 . . 1     and the residue   . 1 . .
"""

from __future__ import annotations

import numpy as np

from fuseflow.errors import PlanError
from fuseflow.plan.cover import Mask


def nm_part(mask: Mask, n: int, m: int, axis: int = -1) -> Mask:
    """Return the first n entries of every m coordinates along an axis, counted from coordinate 0. The last group may be shorter.

    >>> nm_part(np.array([1, 1, 0, 1, 1], dtype=bool), 1, 2).astype(int).tolist()
    [1, 0, 0, 1, 1]
    """
    if not 1 <= n <= m:
        raise PlanError(f"{n} of every {m} coordinates", hint="the entries come first, as in 2 of every 4")
    along = np.moveaxis(mask, axis, -1)
    *rest, size = along.shape
    groups = -(-size // m)
    padded = np.zeros((*rest, groups * m), dtype=bool)
    padded[..., :size] = along
    grouped = padded.reshape(*rest, groups, m)
    first = (grouped & (grouped.cumsum(axis=-1) <= n)).reshape(padded.shape)
    return np.moveaxis(first[..., :size], -1, axis)
