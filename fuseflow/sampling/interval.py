"""The interval of the cycles of a region, from the cycles of replicates.

    T(S) = a + the cycles of the units in S      a: the fill of the pipeline, its drain, and what is computed once

Each replicate S is run, and the rows before its units also alone. The difference has no `a`: it is the time of the units in a
full pipeline. The cycles of an average unit are read off a line through the replicates, cycles of a unit over weight of a unit
(the regression estimator). Where cycles are in proportion to weights, the line goes through all replicates; elsewhere the
interval is wider. It is also wider if the average weight is far from their weights, so that heavy units count.

Replicates differ in everything that is random in one: its units, where its data are in the memory, and when the memory refreshes
itself. So the scatter about the line contains all of it. Two terms are added: rare events that no replicate may see (`EndUncertainty`), and
a small error that all replicates may share (`SYSTEMATIC`). Coordinates that are always taken have one position, too: they are as
uncertain as replicates of the same length.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

SYSTEMATIC = 0.003
"""The part of half an interval not seen in scatter, as a share of the cycles. Replicates may agree better than they are right:
one unit of each stratum is no measure of what changes within a stratum, and a pipeline is not quite full after its first rows."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class SampledCycles:
    """A number of cycles that was sampled: the `estimate`, and half of the interval that has the true number with the given `confidence`.

    It is no number: nothing adds it to exact cycles, or compares it with them, by accident. A sum is `sampled_sum`.

    >>> print(SampledCycles(1234.4, 12.0, 0.95))
    ~1,234 ± 12
    """

    estimate: float
    half_width: float
    confidence: float

    @property
    def low(self) -> int:
        """The lower end of the interval."""
        return math.floor(self.estimate - self.half_width)

    @property
    def high(self) -> int:
        """The upper end of the interval."""
        return math.ceil(self.estimate + self.half_width)

    @property
    def error(self) -> float:
        """Half of the interval, as a share of the estimate."""
        return self.half_width / self.estimate if self.estimate else 0.0

    def __str__(self) -> str:
        return f"~{self.estimate:,.0f} ± {math.ceil(self.half_width):,}"

    def to_json(self) -> dict[str, float]:
        """Return the number as plain values. None of its keys is one of an exact number."""
        return {"estimate": round(self.estimate), "low": self.low, "high": self.high, "confidence": self.confidence}


def sampled_sum(parts: Sequence[tuple[int, SampledCycles]], exact: int, confidence: float) -> SampledCycles:
    """Return the sum of sampled numbers, each with the times that it counts, and an exact number. Different samples are
    independent, so their intervals add up like the sides of a right angle.

    >>> print(sampled_sum([(1, SampledCycles(100, 3, 0.95)), (2, SampledCycles(50, 2, 0.95))], 10, 0.95))
    ~210 ± 5
    """
    estimate = exact + sum(times * part.estimate for times, part in parts)
    return SampledCycles(estimate, math.hypot(*(times * part.half_width for times, part in parts)), confidence)


@dataclass(frozen=True, slots=True)
class EndUncertainty:
    """The cycles between the least and the largest time that a run may have, because of the moment at which it ends. `each` is the
    part that differs from replicate to replicate, and `common` the part that all share, as the data of each begin with a new line.
    """

    each: float
    common: float

    def variance(self, replicates: int) -> float:
        """Return the variance of the mean of `replicates` replicates, if all times between the least and the largest are equally likely."""
        return (self.each**2 / replicates + self.common**2) / 12


@dataclass(frozen=True, slots=True)
class MeasuredReplicate:
    """The cycles of a replicate, and the cycles of its `warmup` alone. `weight` is the weight of its `units` units, and
    `warmup_weight` the weight of the rows before them."""

    cycles: int
    warmup: int
    weight: float
    warmup_weight: float
    units: int

    @property
    def steady(self) -> int:
        """The cycles of the units alone, without the rows before them: without fill and drain."""
        return self.cycles - self.warmup

    @property
    def constant(self) -> float:
        """The cycles that do not depend on the number of rows: fill and drain."""
        return self.warmup - self.steady * self.warmup_weight / self.weight


@dataclass(frozen=True, slots=True)
class ClassReplicates:
    """The `measured` replicates of a class, with the number of all `units` of the class and their `weight`."""

    measured: Sequence[MeasuredReplicate]
    weight: float
    units: int


@dataclass(frozen=True, slots=True)
class Replicates:
    """The replicates of all classes of a loop, the cycles of the `first` unit alone, and the `certain` units, which are always
    taken.

    `certain` is None if there are none. `ends` is by how many cycles a run may be wrong because of the moment at which it ends.
    """

    classes: Sequence[ClassReplicates]
    first: int
    certain: MeasuredReplicate | None
    ends: EndUncertainty

    def interval(self, confidence: float) -> SampledCycles:
        """Return the cycles of all coordinates, with the interval of this confidence by Student's t."""
        parts, once = [_class_estimate(c, self.ends) for c in self.classes], float(self.first)
        if self.certain is not None:  # as uncertain as replicates of the heaviest class that take as long
            once += self.certain.steady
            heaviest = self.classes[0]
            like = self.certain.steady / max(1.0, float(np.mean([m.steady for m in heaviest.measured])))
            scatter = _fitted_line(*_unit_costs(heaviest)).scatter * float(np.mean([m.units for m in heaviest.measured])) ** 2
            parts[0] = replace(parts[0], variance=parts[0].variance + like * scatter)
        sampled, variance = math.fsum(part.cycles for part in parts), math.fsum(part.variance for part in parts)
        half_width = SYSTEMATIC * sampled
        if variance > 0:
            freedom = variance**2 / math.fsum(part.variance**2 / part.freedom for part in parts)
            half_width = math.hypot(half_width, _quantile(confidence, freedom) * math.sqrt(variance))
        return SampledCycles(once + sampled, half_width, confidence)


def _quantile(confidence: float, freedom: float) -> float:
    """Return how many standard deviations an interval goes to each side, by Student's t."""
    from scipy import stats  # takes long to load, and only samples need it

    return float(stats.t.ppf((1 + confidence) / 2, freedom))


@dataclass(frozen=True, slots=True)
class _Estimate:
    """Cycles with their variance and its degrees of freedom. A sum has the degrees of freedom of Welch and Satterthwaite."""

    cycles: float
    variance: float
    freedom: int


def _class_estimate(drawn: ClassReplicates, ends: EndUncertainty) -> _Estimate:
    """Return an estimate of the cycles that all units of a class take one after the other."""
    units, average = np.array([m.units for m in drawn.measured], dtype=float), drawn.weight / drawn.units
    weights, cycles = _unit_costs(drawn)
    line = _fitted_line(weights, cycles)
    variance = max(line.variance(average), _jackknife_variance(weights, cycles, average))
    variance += ends.variance(len(units)) * float(np.mean(1 / np.square(units)))
    return _Estimate(drawn.units * line.at(average), drawn.units**2 * variance, line.freedom)


def _unit_costs(drawn: ClassReplicates) -> tuple[Floats, Floats]:
    """Return, for each replicate of a class, the mean weight and the mean cycles of its units."""
    units, weights, steady = (
        np.array(column, dtype=float) for column in zip(*((m.units, m.weight, m.steady) for m in drawn.measured), strict=True)
    )
    return weights / units, steady / units


@dataclass(frozen=True, slots=True)
class _Line:
    """A line by least squares. `scatter` is the variance of a measured point about it, with `freedom` degrees of freedom."""

    center: float
    height: float
    slope: float
    spread: float
    points: int
    scatter: float
    freedom: int

    def at(self, x: float) -> float:
        return self.height + self.slope * (x - self.center)

    def variance(self, x: float) -> float:
        """Return the variance of the line at `x`."""
        leverage = (x - self.center) ** 2 / self.spread if self.spread else 0.0
        return self.scatter * (1 / self.points + leverage)


def _fitted_line(x: Floats, y: Floats) -> _Line:
    """Return the line through points. If they have one x, or are only two, it is the line from the origin through their mean."""
    center, height = float(x.mean()), float(y.mean())
    spread = float(np.square(x - center).sum())
    if len(x) < 3 or spread <= (1e-9 * center) ** 2:
        return _Line(center, height, height / center, 0.0, len(x), float(y.var(ddof=1)), len(x) - 1)
    slope = float((x - center) @ (y - height)) / spread
    residuals = y - height - slope * (x - center)
    return _Line(center, height, slope, spread, len(x), float(np.square(residuals).sum()) / (len(x) - 2), len(x) - 2)


def _jackknife_variance(x: Floats, y: Floats, at: float) -> float:
    """Return the variance at the x `at` of the line through points, from the lines without each point in turn (Tukey 1958). 0 for
    fewer than three points.

    A line that depends on a single point far from the others has no scatter about it, and tells nothing by its residuals. One
    replicate of five once had a row of another kind, and the number was 3 % off in an interval of 1 %.
    """
    count = len(x)
    if count < 3:
        return 0.0
    without = [_fitted_line(np.delete(x, k), np.delete(y, k)).at(at) for k in range(count)]
    return (count - 1) * float(np.var(without))
