"""The design of a sample: which coordinates of a loop are always taken, and which disjoint replicates are drawn from the others.

The coordinates are put in the order of their weights, and cut into strata of equal numbers. A replicate has one coordinate of each
stratum, so that every replicate has small, middling and large ones as the loop has them. Coordinates of equal weight stay in their own
order, so that a replicate of a loop whose coordinates are all alike comes from everywhere in it.

All coordinates of a stratum are equally likely. With probabilities by weight each would have to be counted by the cycles that it takes
itself, and a run of many has one number for all of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fuseflow.tensors.levels.base import Ints

Weights = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class SampleDesign:
    """A design: the `certain` coordinates, which are always taken, and the `strata` of the others, each in random order.

    Replicate r has coordinate r of each stratum.
    """

    weights: Weights
    certain: Ints
    strata: tuple[Ints, ...]

    @property
    def replicates(self) -> int:
        """The number of disjoint replicates that there are."""
        return min((len(stratum) for stratum in self.strata), default=0)

    @property
    def drawn_from(self) -> int:
        """The number of coordinates that replicates are drawn from."""
        return sum(map(len, self.strata))

    def replicate(self, number: int) -> Ints:
        """Return the coordinates of a replicate, ascending."""
        return np.sort(np.array([stratum[number] for stratum in self.strata], dtype=np.int64))

    def weight(self, coordinates: Ints) -> float:
        """Return the weight of some coordinates together."""
        return float(self.weights[coordinates].sum())

    @property
    def sampled_weight(self) -> float:
        """The weight of all coordinates that replicates are drawn from."""
        return float(self.weights.sum()) - self.weight(self.certain)


def design_sample(weights: Weights, size: int, replicates: int, rng: np.random.Generator) -> SampleDesign:
    """Return the design of a sample in which each of the replicates has `size` coordinates, or as many as there are.

    Coordinates that weigh more than half of what an average one of the sample stands for are always taken: no other could replace them.
    """
    heavy = weights > weights.sum() / (2 * size * replicates)
    order = np.lexsort((np.arange(len(weights)), weights))
    others = order[~heavy[order]].astype(np.int64)
    count = min(size, len(others) // replicates)
    strata = tuple(rng.permutation(part) for part in np.array_split(others, count)) if count else ()
    return SampleDesign(weights, np.flatnonzero(heavy).astype(np.int64), strata)
