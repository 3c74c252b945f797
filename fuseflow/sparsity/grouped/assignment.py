"""The assignment of patterns to the columns of chunks."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

Method: TypeAlias = Literal["exact", "greedy"]
"""How columns get their patterns: so that they keep the most, or one after the other as STen does."""

PAIRS_AT_ONCE = 1 << 22
"""About how many pairs of a column and a pattern are in memory at a time, unless one chunk has more. A pair needs up to 40 bytes."""


def magnitudes(chunks: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the magnitudes of the entries of chunks, [chunks, columns, m], in the precision in which they are added: float64 if float32
    does not hold all numbers of the type.

    If some are not finite, all are float64 and relative to the largest finite one, and entries that are not finite get numbers so
    large that NaN counts more than all infinite entries of a chunk, and an infinite one more than all finite ones.
    """
    exact: npt.NDArray[Any] = np.abs(chunks.astype(np.float32 if np.can_cast(chunks.dtype, np.float32) else np.float64))
    finite = np.isfinite(exact)
    if finite.all():
        return exact
    largest = np.max(exact, where=finite, initial=0).astype(np.float64)
    relative = np.divide(exact, largest or 1, where=finite, out=np.zeros(exact.shape))
    infinity = float(chunks[0].size + 1)
    return np.where(np.isnan(exact), infinity**2, np.where(finite, relative, infinity))


def kept_sums(chunks: npt.NDArray[Any], patterns: npt.NDArray[np.intp]) -> npt.NDArray[Any]:
    """Return the sum of the magnitudes that each pattern keeps of each column, [chunks, columns, patterns]. `chunks` has magnitudes.

    They are added one after the other in the order of places, in the precision of `chunks`. A sum beyond its range is infinite.
    """
    sums = np.zeros((*chunks.shape[:2], len(patterns)), dtype=chunks.dtype)
    with np.errstate(over="ignore"):
        for places in patterns.T:
            sums += chunks[..., places]
    return sums


def exact_assignment(sums: npt.NDArray[Any], g: int) -> npt.NDArray[np.int16]:
    """Return the pattern of each column, [chunks, columns], from the sum that each pattern keeps of it, [chunks, columns,
    patterns].

    Every pattern can be taken by `g` columns of a chunk, and columns and patterns are matched so that the sum of the kept
    magnitudes is greatest. This is the linear assignment problem, which takes polynomial time, and needs no search as with
    CP-SAT. Of several best assignments it returns any one, but always the same.
    """
    from scipy.optimize import linear_sum_assignment

    pattern_of = np.empty(sums.shape[:2], dtype=np.int16)
    for chunk, kept in enumerate(sums):
        _, place_of = linear_sum_assignment(np.repeat(-kept.astype(np.float64), g, axis=1))
        pattern_of[chunk] = place_of // g
    return pattern_of


def assignment(
    chunks: npt.NDArray[Any], patterns: npt.NDArray[np.intp], g: int, method: Method = "exact"
) -> npt.NDArray[np.int16]:
    """Return the pattern of each column of chunks, which are [chunks, columns, m]. Every pattern has `g` columns in a chunk."""
    pattern_of = np.empty(chunks.shape[:2], dtype=np.int16)
    weights = magnitudes(chunks)
    at_once = max(1, PAIRS_AT_ONCE // (chunks.shape[1] * len(patterns)))
    for start in range(0, len(chunks), at_once):
        part = weights[start : start + at_once]
        if method == "exact":
            # A power of 2 makes all less than 1, so that no sum overflows.
            scaled = np.ldexp(part.astype(np.float64), -np.frexp(part.max(initial=0))[1])
            assigned = exact_assignment(kept_sums(scaled, patterns), g)
        else:
            from fuseflow.sparsity.grouped.greedy import greedy_assignment  # which loads numba

            assigned = greedy_assignment(kept_sums(part, patterns), g)
        pattern_of[start : start + at_once] = assigned
    return pattern_of
