"""The largest stages of batches against sums by hand, and against the cycles of runs."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_array_equal

from fuseflow.estimate.counted.nests import FiberLevel, FiberNest
from fuseflow.estimate.stage_weights import largest_stages


def test_the_largest_stage_of_every_batch_counts():
    rows = FiberNest(None, np.array([0]), FiberLevel(np.array([0, 4]), np.arange(4), 4))
    stages = [np.array([3, 1, 4, 1]), np.array([2, 7, 1, 8])]
    assert_array_equal(largest_stages(rows, stages, 1), [3, 7, 4, 8])
    assert_array_equal(largest_stages(rows, stages, 2), [9, 0, 9, 0])  # max(3 + 1, 2 + 7) and max(4 + 1, 1 + 8)
