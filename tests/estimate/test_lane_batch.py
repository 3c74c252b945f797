"""Lanes of many candidates on one axis: sums and largest numbers."""

from __future__ import annotations

import numpy as np
import pytest

from fuseflow.estimate.counted.memo import Uncountable
from fuseflow.estimate.lane_batch import LaneBatch
from fuseflow.estimate.stream_flow import Flow, as_number

BATCH = LaneBatch(("i", "h"), ((2, 2), (3, 2), (2, 3)))


def test_candidates_share_the_lanes_that_they_have_alike():
    axis = BATCH.axis(("i",))
    assert axis.numbers == ((2,), (3,)) and axis.of_candidate.tolist() == [0, 1, 0] and axis.size == 5
    assert BATCH.axis(()).size == 1 and BATCH.axis(("i", "h")).size == 4 + 6 + 6


def test_numbers_of_fewer_indices_are_those_of_each_lane_inside():
    flow = Flow((as_number(np.array([10, 11, 20, 21, 22])),), (1,), 1, 0)
    (spread,) = BATCH.spread(flow, ("i",), ("i", "h")).lists
    assert np.asarray(spread).tolist() == [10, 10, 11, 11, 20, 20, 21, 21, 22, 22, 10, 10, 10, 11, 11, 11]
    (inner,) = BATCH.spread(Flow((as_number(np.array([1, 2, 3, 4, 5])),), (1,), 1, 0), ("h",), ("i", "h")).lists
    assert np.asarray(inner).tolist() == [1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 3, 4, 5, 3, 4, 5]


def test_the_most_and_the_sum_of_each_candidate():
    numbers = as_number(np.array([10, 11, 20, 21, 22]))
    assert np.asarray(BATCH.most(numbers, ("i",))).tolist() == [11, 22, 11]
    assert np.asarray(BATCH.total(numbers, ("i",))).tolist() == [21, 63, 21]
    assert BATCH.most(7, ("i",)) == 7 and np.asarray(BATCH.total(7, ("i",))).tolist() == [14, 21, 14]


def test_numbers_are_on_the_axis_that_has_as_many_lanes():
    """A node in no lanes has a stream that is dealt to those of `i`: a search once ended there with a traceback."""
    numbers = as_number(np.array([10, 11, 20, 21, 22]))
    assert np.asarray(BATCH.total(numbers, BATCH.axis_of(numbers, [(), ("i",)]))).tolist() == [21, 63, 21]
    assert np.asarray(BATCH.most(numbers, BATCH.axis_of(numbers, [(), ("i",)]))).tolist() == [11, 22, 11]
    assert BATCH.most(7, BATCH.axis_of(7, [("i",), ("h",)])) == 7
    for axes in ([("i",), ("h",)], [(), ("i", "h")]):  # there are five lanes of each index
        with pytest.raises(Uncountable):
            BATCH.axis_of(numbers, axes)


def test_further_indices_of_one_lane_change_no_lane():
    batch = LaneBatch(("i", "h"), ((2, 1), (3, 1)))
    numbers = as_number(np.array([10, 11, 20, 21, 22]))
    assert np.asarray(batch.total(numbers, batch.axis_of(numbers, [("i", "h"), ("i",)]))).tolist() == [21, 63]
