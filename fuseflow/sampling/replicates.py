"""Measures a region by replicates: disjoint samples of the coordinates of a loop, which are run until they are long enough, and until the
error that was asked for is reached.

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
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from fuseflow.sampling.interval import SYSTEMATIC, ClassReplicates, EndUncertainty, MeasuredReplicate, Replicates, SampledCycles
from fuseflow.sampling.sample_request import LARGEST_SHARE, Sample
from fuseflow.sim import Simulation
from fuseflow.tensors import Tensor
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
PILOT_SHARE = 1 / 20
"""The share of the shortest replicate that is run first, to see how long coordinates of a weight take: a slow memory makes them
longer."""
UNITS = 32
"""The number of units of a replicate that has enough coordinates."""
MEASURED = 2 / 3
"""The share of a unit in the rows of the unit and the rows before it together."""
STEADINESS = 10
"""A replicate is at least this many times as long as fill and drain, so that most of it runs with a full pipeline."""
GROWTH = 1.25
"""Replicates that turned out to be too short become longer by this factor."""
LEAST_STEP, LARGEST_STEP = 1.5, 2.0
"""The least and the largest factor by which the number of replicates grows from one interval to the next."""
MARGIN = 1.1
"""The factor on the number of replicates that the last interval asks for, since the next interval has a larger confidence."""


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
        """Return the expected share of the work if `replicates` replicates of each class are run, and the units that are always taken."""
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


# The runs of replicates ------------------------------------------------------------------------------------------------------

RowRunner = Callable[[Ints, Position], Simulation]
"""A function that runs a region at some coordinates of its outermost index."""
RowOutputs = tuple[Ints, Mapping[str, Tensor]]
"""Some coordinates, and the simulated results at these coordinates."""


@dataclass(frozen=True, slots=True)
class RegionSample:
    """The sampled cycles of a region. Of its `coordinates`, `taken` were run in all `replicates`, and `certain` of them are
    always taken.

    `share` is the share of the work that was run.
    """

    cycles: SampledCycles
    coordinates: int
    taken: int
    certain: int
    replicates: int
    share: float


@dataclass(frozen=True, slots=True)
class SampledRun:
    """A sample, and the results that its runs computed."""

    sample: RegionSample
    outputs: tuple[RowOutputs, ...]


def sample_region(
    weights: Weights, least_warmup: int, ends: EndUncertainty, sample: Sample, coordinates: int, run: RowRunner, stream: int
) -> SampledRun | None:
    """Return the sampled cycles of a region, or None if so large a share would be needed that all of it is to be run instead.

    `weights` has the weight of each coordinate, and `run` runs the region at some of them. At least `least_warmup` coordinates
    run before each unit, and a replicate has at least `coordinates` coordinates. `ends` is by how many cycles a run may be wrong
    because of the moment at which it ends. `stream` seeds the random choices.
    """
    if sample.fraction == 1:  # all coordinates in one run, which is exact
        rows = np.arange(len(weights))
        simulation = run(rows, Position())
        cycles = SampledCycles(simulation.cycles, 0.0, sample.confidence)
        return SampledRun(RegionSample(cycles, len(rows), len(rows), 0, 1, 1.0), ((rows, simulation.outputs),))
    if sample.error is not None and sample.error <= SYSTEMATIC:
        return None
    rng = np.random.default_rng([sample.seed, stream])
    wanted, scale = sample.shortest * PILOT_SHARE, 1.0
    while True:
        pilot = wanted < sample.shortest
        size_in_rows = len(weights) * wanted / (scale * float(weights.sum()))
        if not pilot:
            size_in_rows = max(size_in_rows, coordinates, len(weights) * (sample.fraction or 0) / sample.replicates)
        unit = max(least_warmup, math.ceil(size_in_rows * MEASURED / UNITS))
        warmup = max(least_warmup, math.ceil(unit * (1 / MEASURED - 1)))
        size = max(LEAST_SIZE, math.ceil(size_in_rows / (unit + warmup)))
        replicates = _Measurement(design_sample(weights, size, unit, warmup, sample.replicates, rng), run, ends)
        if not replicates.affordable(sample.replicates):
            return None
        first = replicates.measured(-1, 1)[0]  # of the lightest class, which has the most units, and takes the least time
        lightest = [first] if pilot else replicates.measured(-1, sample.replicates)
        steady = STEADINESS * max(m.constant for m in lightest)
        if not pilot and first.cycles >= max(sample.shortest, steady):
            steady = STEADINESS * replicates.heavy_constant(sample.replicates)
            if first.cycles >= steady:
                return _with_error(replicates, size, sample, rng)
        scale = first.cycles / (first.weight + first.warmup_weight)
        wanted = max(sample.shortest, steady, 0.0 if pilot else GROWTH * wanted)


@dataclass(slots=True)
class _Measurement:
    """The replicates of a design that were run so far, class by class."""

    design: SampleDesign
    run: RowRunner
    ends: EndUncertainty
    replicates: list[list[MeasuredReplicate]] = field(init=False)
    outputs: list[RowOutputs] = field(default_factory=list)
    first: int = 0
    certain: MeasuredReplicate | None = None

    def __post_init__(self) -> None:
        self.replicates = [[] for _ in self.design.classes]

    def affordable(self, count: int) -> bool:
        """Return whether each class has `count` replicates, and whether these take a small enough share of the work."""
        return self.design.replicates >= count and self.design.share(count) <= LARGEST_SHARE

    def measured(self, drawn: int, count: int) -> list[MeasuredReplicate]:
        """Return the first `count` replicates of the class with the number `drawn`. Those that were not run yet are run."""
        known = self.replicates[drawn]
        for number in range(len(known), count):
            known.append(self._measured(self.design.replicate(self.design.classes[drawn], number)))
        return known[:count]

    def heavy_constant(self, count: int) -> float:
        """Return the largest mean constant (fill and drain) of the first `count` replicates of a heavy class, 0 if there is none.

        A single heavy replicate does not tell: it is long, and a small part of it is as much as a whole constant.
        """
        heavy = range(len(self.design.classes) - 1)
        return max((float(np.mean([m.constant for m in self.measured(drawn, count)])) for drawn in heavy), default=0.0)

    def _measured(self, replicate: ReplicateRows) -> MeasuredReplicate:
        cycles = self._cycles(replicate.rows, replicate.position)
        warmup = self.run(replicate.warmup, replicate.position).cycles
        weight, warmup_weight = (self.design.weight(rows) for rows in (replicate.rows, replicate.warmup))
        return MeasuredReplicate(cycles, warmup, weight - warmup_weight, warmup_weight, replicate.units)

    def _cycles(self, rows: Ints, position: Position) -> int:
        """Run the region at these coordinates, keep its results, and return its cycles."""
        simulation = self.run(rows, position)
        self.outputs.append((rows, simulation.outputs))
        return simulation.cycles

    def interval(self, count: int, confidence: float) -> SampledCycles:
        """Return the cycles of the region by the first `count` replicates of each class."""
        design, classes = self.design, list[ClassReplicates]()
        for number, drawn in enumerate(design.classes):
            units = drawn.units
            classes.append(ClassReplicates(self.measured(number, count), design.weight(design.coordinates(units)), len(units)))
        if not self.first:
            self.first = self._cycles(design.first, Position())
        if self.certain is None and len(design.certain_units):
            self.certain = self._measured(design.certain)
        return Replicates(classes, self.first, self.certain, self.ends).interval(confidence)

    def sampled(self, cycles: SampledCycles) -> SampledRun:
        """Return the sample with these cycles, and with the results of all runs so far."""
        design, taken = self.design, sum(len(rows) for rows, _ in self.outputs)
        measured = [m for replicates in self.replicates for m in replicates]
        both = measured if self.certain is None else [*measured, self.certain]
        share = (sum(m.weight + 2 * m.warmup_weight for m in both) + design.weight(design.first)) / float(design.weights.sum())
        certain = len(design.coordinates(design.certain_units)) + len(design.first)
        return SampledRun(RegionSample(cycles, len(design.weights), taken, certain, len(measured), share), tuple(self.outputs))


def _with_error(replicates: _Measurement, size: int, sample: Sample, rng: np.random.Generator) -> SampledRun | None:
    """Return the sample with as many replicates as the error needs: each interval tells how many come next, until the error is
    reached. None if they would be too large a share of the work.

    If intervals are computed until one is small enough, it is too often small by chance. So the first may be wrong with half of
    the probability that the confidence leaves, the next with a quarter, and so on: all together with no more than it leaves.
    """
    count, looks = sample.replicates, 0
    while replicates.affordable(count):
        looks += 1
        doubt = (1 - sample.confidence) * (1 if sample.error is None else 0.5**looks)
        measured = replicates.interval(count, 1 - doubt)
        if sample.error is None or measured.error <= sample.error:
            return replicates.sampled(replace(measured, confidence=sample.confidence))
        wider = measured.error / sample.error
        wanted = math.ceil(count * min(LARGEST_STEP, max(LEAST_STEP, MARGIN * wider**2)))
        most = next((c for c in range(wanted, count, -1) if replicates.affordable(c)), wanted)
        count = most if most >= LEAST_STEP * count else wanted
        if replicates.design.replicates < count:  # a class has too few: a new design always takes more of the units
            known = replicates.design
            design = design_sample(known.weights, size, known.unit, known.warmup, count, rng)
            replicates = _Measurement(design, replicates.run, replicates.ends)
    return None
