"""The best assignment: no other keeps more of a chunk."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import linear_sum_assignment


def exact_assignment(sums: npt.NDArray[Any], g: int) -> npt.NDArray[np.int16]:
    """Return the pattern of each column, [chunks, columns], from the sum that each pattern keeps of it, [chunks, columns,
    patterns].

    Every pattern can be taken by `g` columns of a chunk, and columns and patterns are matched so that the sum of the kept
    magnitudes is greatest. This is the linear assignment problem, which takes polynomial time, and needs no search as with
    CP-SAT. Of several best assignments it returns any one, but always the same.
    """
    pattern_of = np.empty(sums.shape[:2], dtype=np.int16)
    for chunk, kept in enumerate(sums):
        _, place_of = linear_sum_assignment(np.repeat(-kept.astype(np.float64), g, axis=1))
        pattern_of[chunk] = place_of // g
    return pattern_of
