"""The assignment of patterns to the columns of chunks."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, assert_never

import numpy as np
import numpy.typing as npt

from fuseflow.sparsity.grouped.kept_sums import kept_sums, magnitudes

Method: TypeAlias = Literal["exact", "greedy"]
"""How columns get their patterns: so that they keep the most, or one after the other as STen does."""

PAIRS_AT_ONCE = 1 << 22
"""About how many pairs of a column and a pattern are in memory at a time, unless one chunk has more. A pair needs up to 40 bytes."""


def assignment(
    chunks: npt.NDArray[Any], patterns: npt.NDArray[np.intp], g: int, method: Method = "exact"
) -> npt.NDArray[np.int16]:
    """Return the pattern of each column of chunks, which are [chunks, columns, m]. Every pattern has `g` columns in a chunk."""
    pattern_of = np.empty(chunks.shape[:2], dtype=np.int16)
    weights = magnitudes(chunks)
    at_once = max(1, PAIRS_AT_ONCE // (chunks.shape[1] * len(patterns)))
    for start in range(0, len(chunks), at_once):
        part = slice(start, start + at_once)
        pattern_of[part] = _assign(weights[part], patterns, g, method)
    return pattern_of


def _assign(weights: npt.NDArray[Any], patterns: npt.NDArray[np.intp], g: int, method: Method) -> npt.NDArray[np.int16]:
    match method:
        case "exact":
            from fuseflow.sparsity.grouped.exact import exact_assignment

            return exact_assignment(kept_sums(_within_range(weights), patterns), g)
        case "greedy":
            from fuseflow.sparsity.grouped.greedy import greedy_assignment

            return greedy_assignment(kept_sums(weights, patterns), g)
        case unknown:
            assert_never(unknown)


def _within_range(weights: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Return weights as float64, divided by a power of 2 that makes all less than 1, so that no sum of weights overflows."""
    exponent = np.frexp(weights.max(initial=0))[1]
    scaled: npt.NDArray[np.float64] = np.ldexp(weights.astype(np.float64), -exponent)
    return scaled
