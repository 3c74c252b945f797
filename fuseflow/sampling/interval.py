"""The interval of the cycles of a region, from the cycles of replicates and of all of them together.

    T(S) = a + the cycles of the coordinates in S      a: the fill of the pipeline, its drain, and what is computed once

Each of R replicates is run by itself, and all of them in one run. The coordinates are the same, so the sum of the R runs exceeds the other
run by R - 1 times `a`. What remains is in proportion to the weights, and the replicates say how well.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats


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
    """The measured cycles of replicates, each by itself and `together` in one run, with the weight of each.

    `certain` are the cycles of the coordinates that are always taken, in a run of their own, if there are any. `weight` is that of all
    other coordinates, of which the replicates have the share `drawn`. `pause` is how long a run may be off, because it ends just before
    or just after the memory refreshes itself.
    """

    cycles: Sequence[int]
    weights: Sequence[float]
    together: int
    certain: int | None
    weight: float
    drawn: float
    pause: float

    def interval(self, confidence: float) -> SampledCycles:
        """Return the cycles of all coordinates, with the interval of this confidence by Student's t."""
        count, sampled = len(self.cycles), sum(self.weights)
        constant = (sum(self.cycles) - self.together) / (count - 1)
        slope = (self.together - constant) / sampled
        estimate = (constant if self.certain is None else self.certain) + slope * self.weight
        residuals = [t - constant - slope * w for t, w in zip(self.cycles, self.weights, strict=True)]
        variance = float(np.square(residuals).sum()) / (count - 1) / count * max(0.0, 1 - self.drawn) / (sampled / count) ** 2
        ends = self.pause**2 / 12 * (1 + 1 / count) / (sampled - sampled / count) ** 2
        quantile = float(stats.t.ppf((1 + confidence) / 2, count - 1))
        return SampledCycles(estimate, quantile * self.weight * math.sqrt(variance + ends), confidence)
