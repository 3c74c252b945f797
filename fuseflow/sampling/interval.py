"""The interval of the cycles of a region, from the cycles of replicates and of all of them together.

    T(S) = a + the cycles of the coordinates in S      a: the fill of the pipeline, its drain, and what is computed once

Each of R replicates is run by itself, and all of them in one run. The coordinates are the same, so the sum of the R runs exceeds the other
run by R - 1 times `a`. A replicate of average weight is read off the line through the replicates (the regression estimator): where cycles
are in proportion to weights the line goes through all of them, and where they are not the interval says so. The further the average
weight is from the weights of the replicates, the wider the interval: so heavy coordinates that no replicate has are not forgotten.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


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
        return {
            "estimate": round(self.estimate),
            "low": self.low,
            "high": self.high,
            "confidence": self.confidence,
        }


def sampled_sum(parts: Sequence[tuple[int, SampledCycles]], exact: int, confidence: float) -> SampledCycles:
    """Return the sum of sampled numbers, each so many times, and an exact one. Different samples are independent, so their intervals add
    up like the sides of a right angle.

    >>> print(sampled_sum([(1, SampledCycles(100, 3, 0.95)), (2, SampledCycles(50, 2, 0.95))], 10, 0.95))
    ~210 ± 5
    """
    estimate = exact + sum(times * part.estimate for times, part in parts)
    return SampledCycles(estimate, math.hypot(*(times * part.half_width for times, part in parts)), confidence)


@dataclass(frozen=True, slots=True)
class Replicates:
    """The measured cycles of replicates of equal numbers of coordinates, each by itself and `together` in one run, with their weights.

    `certain` are the cycles of the coordinates that are always taken, in a run of their own, if there are any. The replicates have the
    share `drawn` of all others, which weigh `weight`. `ends` is by how many cycles a run may be off because of where it ends.
    """

    cycles: Sequence[int]
    weights: Sequence[float]
    together: int
    certain: int | None
    weight: float
    drawn: float
    ends: float

    def interval(self, confidence: float) -> SampledCycles:
        """Return the cycles of all coordinates, with the interval of this confidence by Student's t."""
        count = len(self.cycles)
        constant = (sum(self.cycles) - self.together) / (count - 1)
        stands_for = count / self.drawn  # how many replicates all coordinates are
        line = _fitted_line(np.array(self.weights), np.array(self.cycles, dtype=float))
        average = line.at(self.weight / stands_for)
        estimate = (constant if self.certain is None else self.certain) + stands_for * (average - constant)
        ends = self.ends**2 / 12 * (1 + 1 / count) / (1 - 1 / count) ** 2 / count**2
        variance = line.variance(self.weight / stands_for, max(0.0, 1 - self.drawn)) + ends
        from scipy import stats  # takes long to load, and only samples need it

        quantile = float(stats.t.ppf((1 + confidence) / 2, line.freedom))
        return SampledCycles(estimate, quantile * stands_for * math.sqrt(variance), confidence)


@dataclass(frozen=True, slots=True)
class _Line:
    """A line through measured points by least squares, with the variance of a point about it, by so many degrees of freedom."""

    center: float
    height: float
    slope: float
    spread: float
    points: int
    scatter: float
    freedom: int

    def at(self, x: float) -> float:
        return self.height + self.slope * (x - self.center)

    def variance(self, x: float, remaining: float) -> float:
        """Return the variance of the line at `x`. `remaining` is the share of the population that no point is about."""
        leverage = (x - self.center) ** 2 / self.spread if self.spread else 0.0
        return self.scatter * (remaining / self.points + leverage)


def _fitted_line(x: npt.NDArray[np.float64], y: npt.NDArray[np.float64]) -> _Line:
    """Return the line through points. Points above one another, or only two, give a level line."""
    center, height = float(x.mean()), float(y.mean())
    spread = float(np.square(x - center).sum())
    if len(x) < 3 or spread <= (1e-9 * center) ** 2:
        return _Line(center, height, 0.0, 0.0, len(x), float(y.var(ddof=1)), len(x) - 1)
    slope = float((x - center) @ (y - height)) / spread
    residuals = y - height - slope * (x - center)
    return _Line(center, height, slope, spread, len(x), float(np.square(residuals).sum()) / (len(x) - 2), len(x) - 2)
