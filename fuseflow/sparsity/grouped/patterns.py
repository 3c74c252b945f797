"""The patterns of n of m places, in the order in which the chunks of n:m:g store them."""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt


@cache
def patterns(n: int, m: int) -> npt.NDArray[np.intp]:
    """Return the C(m, n) ways to choose n of m places, [patterns, n], places ascending. Neighbours differ in one place (a revolving door).
    The last pattern has the last n places. The array is shared, and cannot be written to.

    >>> ["".join(map(str, pattern)) for pattern in patterns(2, 4)]
    ['01', '02', '12', '13', '03', '23']
    """
    table = np.array(_path(n, m, back=2), dtype=np.intp)
    table.flags.writeable = False
    return table


def _path(n: int, m: int, *, back: int) -> list[tuple[int, ...]]:
    """Return the patterns on a path that ends with the last n of m places. It starts with the last n of the first m - `back`
    places, if these are enough; `back` is 1 or 2. A path is made of a path over the first m - 1 places and of one whose patterns
    also have the last place."""
    if n in (0, m):
        return [tuple(range(n))]
    without_last = _path(n, m - 1, back=1)
    with_last = [(*pattern, m - 1) for pattern in _path(n - 1, m - 1, back=3 - back)]
    return [*(without_last if back == 2 else reversed(without_last)), *with_last]
