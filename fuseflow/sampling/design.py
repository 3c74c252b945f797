"""The design of a sample: which coordinates of a loop are always taken, and which disjoint replicates are drawn from the others.

    12 coordinates in units of 2     01 23 45 67 89 ab      in the order of their weights, cut into strata: 45 89 | 01 ab | 23 67

A unit is some coordinates in a row, so that a row that is taken has the neighbours in the pipeline that it has in the loop: where
short rows follow long ones, or where similar rows are together, FIFOs even them out as they do in the loop. Units are put in the
order of their weights, and cut into strata of equal numbers. A replicate has one unit of each stratum, so it has light, middling
and heavy ones as the loop has them.

Heavy units are in separate classes, and each class has replicates for itself. They may take more or fewer cycles per weight than
light ones. In one random program they took 9 % less, and four of five replicates had no unit that was heavy enough to show it.

All units of a stratum are equally likely. With probabilities by weight, the cycles of every single unit would be needed, and a
run of many units has one number for all of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fuseflow.tensors.levels.base import Ints

Weights = npt.NDArray[np.float64]
LEAST_SIZE = 12
"""The fewest units of a replicate of units that are not heavy."""
LEAST_HEAVY = 8
"""The fewest units of a replicate of heavy units. A few are long enough, and they take most of the time of a sample."""
CLASS_SPAN = 4
"""The heaviest unit of a class weighs about this many times as much as the lightest."""
HEAVY = 3
"""Units that are heavier than this many average ones are in separate classes."""


ROOM = 3
"""A class of heavy units has at least this many times the units that the first replicates take. Of a smaller class most units
would be run, and these are the heaviest: 20 of 235,868 rows once took half of the time of a sample."""


@dataclass(frozen=True, slots=True)
class Position:
    """The position of a run within the run of the whole loop, each number from 0 to 1. `place` is where its data are among all
    data in memory. `phase` is the share of the time from one refresh to the next that is over when it begins."""

    place: float = 0.0
    phase: float = 0.0


@dataclass(frozen=True, slots=True)
class ReplicateRows:
    """The coordinates of some units and of the rows before each of them, ascending, and the random position of the run. The rows
    before units are the `warmup`, which is also run alone.

    `units` is the number of units.
    """

    rows: Ints
    warmup: Ints
    units: int
    position: Position


@dataclass(frozen=True, slots=True)
class UnitClass:
    """Units of similar weights, in `strata` of equal numbers, each in random order. Replicates draw their other random numbers
    from `entropy`."""

    strata: tuple[Ints, ...]
    entropy: int

    @property
    def replicates(self) -> int:
        """The number of disjoint replicates that can be drawn."""
        return min(len(stratum) for stratum in self.strata)

    @property
    def units(self) -> Ints:
        """All units."""
        return np.concatenate(self.strata)


@dataclass(frozen=True, slots=True)
class SampleDesign:
    """A design: the units that are always taken, and the `classes` of the others. The first unit is in none of them: it is run
    alone.

    `weights` has the weight of each coordinate. A unit has `unit` coordinates, and `warmup` coordinates run before it.
    """

    weights: Weights
    unit: int
    warmup: int
    certain_units: Ints
    classes: tuple[UnitClass, ...]

    @property
    def replicates(self) -> int:
        """The number of disjoint replicates that can be drawn from every class."""
        return min((c.replicates for c in self.classes), default=0)

    @property
    def first(self) -> Ints:
        """The coordinates of the first unit, with which the loop begins."""
        return self.coordinates(np.zeros(1, dtype=np.int64))

    @property
    def certain(self) -> ReplicateRows:
        """The rows of the units that are always taken, at the mean position of these rows in the loop."""
        rows = self.coordinates(self.certain_units)
        return self._measured(self.certain_units, Position(float(rows.mean()) / len(self.weights) if len(rows) else 0.0))

    def coordinates(self, units: Ints) -> Ints:
        """Return the coordinates of some units, ascending."""
        rows = (np.sort(units)[:, None] * self.unit + np.arange(self.unit)).reshape(-1)
        return rows[rows < len(self.weights)].astype(np.int64)

    def replicate(self, drawn: UnitClass, number: int) -> ReplicateRows:
        """Return a replicate of a class: the unit with this number in each stratum."""
        rng = np.random.default_rng([drawn.entropy, number])
        taken = np.array([stratum[number] for stratum in drawn.strata], dtype=np.int64)
        return self._measured(taken, Position(*rng.random(2).tolist()))

    def _measured(self, units: Ints, position: Position) -> ReplicateRows:
        """Return these units with the rows before them. A row of one unit is not also warmup of the next unit."""
        rows = self.coordinates(units)
        before = (units[:, None] * self.unit - np.arange(1, self.warmup + 1)).reshape(-1)
        warmup = np.setdiff1d(before[before >= 0], rows)
        return ReplicateRows(np.union1d(rows, warmup), warmup, len(units), position)

    def weight(self, coordinates: Ints) -> float:
        """Return the weight of some coordinates together."""
        return float(self.weights[coordinates].sum())

    def share(self, replicates: int) -> float:
        """Return the expected share of the work if `replicates` replicates of each class are run, and the units that are always
        taken."""
        certain, before = self.certain, 2 * self.warmup * float(self.weights.mean())
        work = self.weight(self.first) + self.weight(certain.rows) + self.weight(certain.warmup)
        for drawn in self.classes:
            units = drawn.units
            work += replicates * len(drawn.strata) * (self.weight(self.coordinates(units)) / len(units) + before)
        return work / float(self.weights.sum())


def design_sample(weights: Weights, size: int, unit: int, warmup: int, replicates: int, rng: np.random.Generator) -> SampleDesign:
    """Return the design of a sample. A unit has `unit` coordinates, and `warmup` coordinates run before it. The units of a
    replicate weigh as much as `size` average units. Each class has at least `replicates` replicates where it can.

    A unit that weighs more than half of the weight that an average sampled unit represents is always taken: no other could
    replace it. A class has units down to a quarter of the weight of its heaviest one, or further down if these are too few. The
    last class has all units that are not heavy. A replicate of heavy units has as many units as weigh that much, and at least
    `LEAST_HEAVY`.
    """
    of_units = np.add.reduceat(weights, np.arange(0, len(weights), unit))
    average, bound = float(of_units.mean()), float(of_units.sum()) / (2 * size * replicates)
    order = np.lexsort((np.arange(len(of_units)), of_units)).astype(np.int64)
    order = order[order > 0]
    certain = of_units[order] > bound
    rest, classes = order[~certain], list[UnitClass]()
    while len(rest):
        bound /= CLASS_SPAN
        is_heavy = bound > HEAVY * average
        below = int(np.searchsorted(of_units[rest], bound, side="right")) if is_heavy else 0
        least = LEAST_HEAVY if is_heavy else LEAST_SIZE
        if below > 0 and len(rest) - below < ROOM * replicates * least:
            continue  # too few: they join the units of the next quarter
        units, rest = rest[below:], rest[:below]
        count = max(least, math.ceil(size * average * len(units) / float(of_units[units].sum())))
        strata = np.array_split(units, min(count, max(1, len(units) // replicates)))
        classes.append(UnitClass(tuple(rng.permutation(part) for part in strata), int(rng.integers(1 << 62))))
    return SampleDesign(weights, unit, warmup, np.sort(order[certain]), tuple(classes))
