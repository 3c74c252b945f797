"""The units of a sample: single coordinates of the outermost loop, or as many next to each other as there are lanes.

Lanes take the coordinates of a loop in turns, and their results are put in order again. So a heavy coordinate holds up those in the
other lanes at that time. They are sampled together, in the lanes in which they run.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fuseflow.sampling.design import Weights
from fuseflow.tensors.levels.base import Ints


@dataclass(frozen=True, slots=True)
class SampleUnits:
    """The units of a loop of so many coordinates, each of `size` coordinates; the last may have fewer.

    >>> SampleUnits(5, 2).coordinates(np.array([0, 2])).tolist(), SampleUnits(5, 2).weights(np.array([1.0, 3, 2, 2, 4])).tolist()
    ([0, 1, 4], [3.0, 2.0, 4.0])
    """

    count: int
    size: int

    def coordinates(self, units: Ints) -> Ints:
        """Return the coordinates of some units."""
        coordinates = (units[:, None] * self.size + np.arange(self.size)).reshape(-1)
        return np.asarray(coordinates[coordinates < self.count], dtype=np.int64)

    def weights(self, weights: Weights) -> Weights:
        """Return the weight of each unit: the largest of those of its coordinates, since lanes run at the same time."""
        return np.asarray(np.maximum.reduceat(weights, np.arange(0, self.count, self.size)), dtype=np.float64)
