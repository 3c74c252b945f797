"""The order of patterns."""

import itertools
import math

import numpy as np
import pytest

from fuseflow.sparsity.grouped.grouping import patterns


@pytest.mark.parametrize("m", range(1, 13))
def test_all_patterns_stand_once_and_neighbours_differ_in_one_place(m: int) -> None:
    for n in range(1, m + 1):
        table = patterns(n, m)
        assert {tuple(places) for places in table} == set(itertools.combinations(range(m), n))
        assert len(table) == math.comb(m, n)
        assert (np.sum(table[1:] != table[:-1], axis=1) == 1).all()
        assert table[-1].tolist() == list(range(m - n, m))
        if n <= m - 2:
            assert table[0].tolist() == list(range(m - 2 - n, m - 2))


def test_patterns_are_shared_and_cannot_be_changed() -> None:
    assert patterns(2, 4) is patterns(2, 4)
    with pytest.raises(ValueError, match="read-only"):
        patterns(2, 4)[0] = 0


def test_the_longest_columns_have_patterns() -> None:
    assert sorted(patterns(1, 256).ravel()) == list(range(256))
    assert patterns(255, 256).shape == (256, 255)
