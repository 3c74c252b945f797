"""The greedy assignment of STen: the pair of a column and a pattern that keeps most comes first."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit


def greedy_assignment(sums: npt.NDArray[Any], g: int) -> npt.NDArray[np.int16]:
    """Return the pattern of each column, [chunks, columns], from the sum that each pattern keeps of it, [chunks, columns, patterns].

    Pairs of a column and a pattern are taken by descending sum, of equal sums the one with the higher column first, then the one with the
    higher pattern. A pair is skipped if its column has a pattern, or its pattern `g` columns. There are `g` times as many columns as
    patterns.
    """
    count, columns, patterns = sums.shape
    last_first = sums.reshape(count, columns * patterns)[:, ::-1]
    order = columns * patterns - 1 - np.argsort(-last_first, axis=1, kind="stable")
    pattern_of = np.full((count, columns), -1, dtype=np.int16)
    _take(order, patterns, g, pattern_of)
    return pattern_of


def _take_in_order(order: npt.NDArray[np.int64], patterns: int, g: int, pattern_of: npt.NDArray[np.int16]) -> None:
    """Write to `pattern_of` the pattern of each column: the pairs of every chunk are taken in the given order. The number of a
    pair is its column times `patterns`, plus its pattern; -1 stands for no pattern."""
    for chunk in range(len(order)):
        room = np.full(patterns, g)
        missing = pattern_of.shape[1]
        for pair in order[chunk]:
            column, pattern = pair // patterns, pair % patterns
            if pattern_of[chunk, column] < 0 and room[pattern] > 0:
                pattern_of[chunk, column] = pattern
                room[pattern] -= 1
                missing -= 1
                if missing == 0:
                    break


def _compiled(function: Any) -> Any:
    """Compile a function with numba. Its machine code is kept for later processes, unless no folder can be written to."""
    try:
        return njit(cache=True)(function)
    except RuntimeError:
        return njit(function)


_take = _compiled(_take_in_order)
