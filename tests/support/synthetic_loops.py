"""Loops whose coordinates take known cycles one after the other, sampled as regions are: what an interval says of a sum that is known."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fuseflow.sampling.interval import ClassReplicates, EndUncertainty, MeasuredReplicate, Replicates, SampledCycles
from fuseflow.sampling.replicates import ReplicateRows, SampleDesign, UnitClass, design_sample

NO_ENDS = EndUncertainty(0.0, 0.0)


def measured_replicate(
    design: SampleDesign, replicate: ReplicateRows, cost: np.ndarray, constant: int, factor: float = 1.0
) -> MeasuredReplicate:
    """A replicate of a loop whose coordinates take these cycles one after the other. All of its own are faster or slower by a factor."""
    cycles, warmup = (constant + round(factor * int(cost[rows].sum())) for rows in (replicate.rows, replicate.warmup))
    before = design.weight(replicate.warmup)
    return MeasuredReplicate(cycles, warmup, design.weight(replicate.rows) - before, before, replicate.units)


def class_replicates(
    design: SampleDesign, drawn: UnitClass, cost: np.ndarray, constant: int, factors: Sequence[float]
) -> ClassReplicates:
    """The replicates of a class of such a loop, one for each factor."""
    replicates = [
        measured_replicate(design, design.replicate(drawn, number), cost, constant, factor)
        for number, factor in enumerate(factors)
    ]
    return ClassReplicates(replicates, design.weight(design.coordinates(drawn.units)), len(drawn.units))


def measured(
    cost: np.ndarray,
    weights: np.ndarray,
    seed: int,
    constant: int = 700,
    confidence: float = 0.95,
    spread: float = 0.0,
    unit: int = 1,
    ends: EndUncertainty = NO_ENDS,
) -> SampledCycles:
    """The interval of such a loop, each of whose replicates lies in a part of the memory that is slower or faster by so much."""
    rng = np.random.default_rng(seed)
    design = design_sample(weights, 40, unit, unit, 5, rng)
    factors = 1 + spread * (2 * rng.random((len(design.classes), 5)) - 1)
    return Replicates(
        [class_replicates(design, c, cost, constant, f) for c, f in zip(design.classes, factors, strict=True)],
        constant + int(cost[design.first].sum()),
        measured_replicate(design, design.certain, cost, constant) if len(design.certain_units) else None,
        ends,
    ).interval(confidence)
