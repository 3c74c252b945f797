"""Measures a region by replicates: these are run until they are long enough, and until the error that was asked for is
reached."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from fuseflow.sampling.design import LEAST_SIZE, Position, ReplicateRows, SampleDesign, Weights, design_sample
from fuseflow.sampling.interval import SYSTEMATIC, ClassReplicates, EndUncertainty, MeasuredReplicate, Replicates, SampledCycles
from fuseflow.sampling.sample import LARGEST_SHARE, Sample
from fuseflow.sim import Simulation
from fuseflow.tensors import Tensor
from fuseflow.tensors.levels.base import Ints

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
