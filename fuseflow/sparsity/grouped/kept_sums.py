"""The sums of the magnitudes that patterns keep of columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


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
