"""Bins: any order and any way to say the same counts, at every width."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fuseflow.sim.events.log import Bins

ROW = st.tuples(st.integers(0, 2), st.integers(0, 300), st.integers(1, 40), st.integers(1, 9))


@given(st.lists(ROW, min_size=1, max_size=8), st.sampled_from([2, 8, 64]), st.integers(0, 50))
def test_firings_at_an_even_pace_are_counted_in_their_bins(rows: list[tuple[int, int, int, int]], size: int, start: int):
    bins = Bins(3, start, size)
    things, cycles, counts, steps = (np.array(column) for column in zip(*rows, strict=True))
    bins.add(things, start + cycles, counts, steps)
    expected = np.zeros((3, size), int)
    for thing, cycle, count, step in rows:
        for i in range(count):
            expected[thing, (cycle + i * step) // bins.width] += 1
    assert (bins.counts == expected).all()


def test_bins_widen_by_twos_and_keep_what_they_hold():
    bins = Bins(1, 10, 4)
    one = np.array([1])
    for cycle in range(10, 14):
        bins.put(np.array([0]), np.array([cycle]), one)
    assert (bins.width, bins.counts.tolist()) == (1, [[1, 1, 1, 1]])
    bins.put(np.array([0]), np.array([22]), one * 5)
    assert (bins.width, bins.counts.tolist()) == (4, [[4, 0, 0, 5]])
