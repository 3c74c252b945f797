"""The patterns of n of m places, in the order in which the chunks of n:m:g store them."""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt


@cache
def patterns(n: int, m: int) -> npt.NDArray[np.intp]:
    """Return the C(m, n) ways to choose n of m places, [patterns, n], places ascending. Neighbours differ in one place.

    The first pattern has the first n places, and the last one the last n. The array is shared, and cannot be written to.

    >>> ["".join(map(str, pattern)) for pattern in patterns(2, 4)]
    ['01', '02', '12', '13', '03', '23']
    """
    table = np.array(_sweep(n, m, whole=True), dtype=np.intp)
    table.flags.writeable = False
    return table


def _sweep(n: int, m: int, *, whole: bool) -> list[tuple[int, ...]]:
    """Return the patterns on a path that ends with the last n places. A `whole` path starts with the first n places; the other starts one
    place before its end, as in `..xx.` and `...xx`, so that paths over fewer places can be joined."""
    if n in (0, m):
        return [tuple(range(n))]
    without_last = _sweep(n, m - 1, whole=False)
    with_last = [(*pattern, m - 1) for pattern in _sweep(n - 1, m - 1, whole=not whole)]
    return [*(without_last if whole else reversed(without_last)), *with_last]
