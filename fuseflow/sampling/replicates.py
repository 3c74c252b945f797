"""The measurement of a region by replicates: they are run until they are long enough, and until the error that was asked for holds."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from fuseflow.estimate.memory_bound import refresh_share
from fuseflow.sampling.design import SampleDesign, Weights, design_sample
from fuseflow.sampling.interval import Replicates, SampledCycles
from fuseflow.sampling.sample import LARGEST_SHARE, Sample
from fuseflow.sim import Machine, Simulation
from fuseflow.sim.memory.settings import Hbm2Memory, clock_ratio
from fuseflow.sim.memory.timing import HBM2_2000
from fuseflow.tensors.levels.base import Ints

PILOT_SHARE = 1 / 20
"""The part of the shortest replicate that is run first, to see how long coordinates of a weight take: a slow memory takes its own time."""
LEAST_SIZE = 4
"""The fewest coordinates of a replicate."""

RowRunner = Callable[[Ints], Simulation]
"""A function that runs a region at some coordinates of its outermost index."""


@dataclass(frozen=True, slots=True)
class RegionSample:
    """The sampled cycles of a region: how many of its `coordinates` were `taken`, how many of them always, in how many replicates.

    `share` is that of the work.
    """

    cycles: SampledCycles
    coordinates: int
    taken: int
    certain: int
    replicates: int
    share: float


@dataclass(frozen=True, slots=True)
class SampledRun:
    """A sample, and the run of all replicates together: of these `rows` the values are known."""

    sample: RegionSample
    rows: Ints
    simulation: Simulation


def expected_cycles(weights: Weights, machine: Machine) -> float:
    """Return the cycles that coordinates of these weights are expected to take."""
    return float(weights.sum()) / (1 - refresh_share(machine))


def sample_whole(weights: Weights, run: RowRunner, confidence: float) -> SampledRun:
    """Return the sample that has all coordinates. It is exact."""
    rows = np.arange(len(weights))
    simulation = run(rows)
    cycles = SampledCycles(simulation.cycles, 0.0, confidence)
    return SampledRun(RegionSample(cycles, len(rows), len(rows), 0, 1, 1.0), rows, simulation)


def sample_region(weights: Weights, machine: Machine, sample: Sample, run: RowRunner, stream: int) -> SampledRun | None:
    """Return the sampled cycles of a region, or None if so large a share would be needed that all of it is to be run instead.

    `stream` tells the random choices of one region from those of the next.
    """
    if sample.fraction == 1:
        return sample_whole(weights, run, sample.confidence)
    rng = np.random.default_rng([sample.seed, stream])
    wanted = sample.shortest * PILOT_SHARE
    scale = expected_cycles(weights, machine) / float(weights.sum())
    while True:
        size = max(LEAST_SIZE, math.ceil(len(weights) * wanted / (scale * float(weights.sum()))))
        if wanted == sample.shortest and sample.fraction is not None:
            size = max(size, math.ceil(len(weights) * sample.fraction / sample.replicates))
        design = design_sample(weights, size, sample.replicates, rng)
        if not _affordable(design, sample.replicates):
            return None
        first = run(design.replicate(0))
        if wanted == sample.shortest and first.cycles >= sample.shortest:
            return _measured(design, machine, sample, run, first, rng)
        scale = first.cycles / design.weight(design.replicate(0))
        scale *= 0.95 if wanted == sample.shortest else 1
        wanted = sample.shortest


def _affordable(design: SampleDesign, replicates: int) -> bool:
    """Return whether there are so many replicates, and whether they are a small enough share of the work."""
    return design.replicates >= replicates and _share(design, replicates) <= LARGEST_SHARE


def _share(design: SampleDesign, replicates: int) -> float:
    """Return the share of the work that so many replicates are expected to have, with the coordinates that are always taken."""
    drawn = replicates * len(design.strata) / design.drawn_from
    return (design.weight(design.certain) + drawn * design.sampled_weight) / float(design.weights.sum())


def _measured(
    design: SampleDesign, machine: Machine, sample: Sample, run: RowRunner, first: Simulation, rng: np.random.Generator
) -> SampledRun | None:
    """Return the sample with as many replicates as the error takes: the number is doubled until it holds.

    Whoever looks several times until the error holds is lucky too often. So the first look may be wrong with half of the probability that
    the confidence leaves, the next with a quarter, and so on: all looks together with no more than it leaves.
    """
    certain = run(design.certain).cycles if len(design.certain) else None
    cycles, count, looks = [first.cycles], sample.replicates, 0
    while _affordable(design, count):
        cycles += [run(design.replicate(r)).cycles for r in range(len(cycles), count)]
        rows = np.sort(np.concatenate([design.replicate(r) for r in range(count)]))
        together, looks = run(rows), looks + 1
        doubt = (1 - sample.confidence) * (1 if sample.error is None else 0.5**looks)
        measured = Replicates(
            cycles,
            [design.weight(design.replicate(r)) for r in range(count)],
            together.cycles,
            certain,
            design.sampled_weight,
            len(rows) / design.drawn_from,
            end_uncertainty(machine),
        ).interval(1 - doubt)
        if sample.error is None or measured.error <= sample.error:
            interval = SampledCycles(measured.estimate, measured.half_width, sample.confidence)
            taken, always = len(rows) + len(design.certain), len(design.certain)
            share = (design.weight(rows) + design.weight(design.certain)) / float(design.weights.sum())
            return SampledRun(RegionSample(interval, len(design.weights), taken, always, count, share), rows, together)
        count *= 2
        larger = design_sample(design.weights, len(design.strata), count, rng)
        if len(larger.certain) > len(design.certain):  # a larger sample always takes more: its replicates are others
            design, cycles = larger, []
            certain = run(design.certain).cycles
    return None


def end_uncertainty(machine: Machine) -> float:
    """Return by how many cycles a run may be off because of where it ends: what a FIFO holds then, and a pause in which the memory
    refreshes itself. Without this, coordinates that are all alike would give an interval without width.
    """
    slack = float(machine.first_depth or 0)
    if not isinstance(machine.memory, Hbm2Memory):
        return slack
    return slack + HBM2_2000.nRFC / float(clock_ratio(machine.memory.clock_ghz, machine.clock_ghz))
