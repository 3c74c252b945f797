"""Logarithmic axes of pictures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LogAxis:
    """A logarithmic axis from `low` to `high`, drawn from `start` to `end`. Both are 1, 2 or 5 times a power of ten, as near to the values
    as that allows."""

    low: float
    high: float
    start: float
    end: float

    @classmethod
    def around(cls, values: Sequence[float], start: float, end: float) -> LogAxis:
        steps = [digit * 10.0**k for k in range(-24, 25) for digit in (1, 2, 5)]
        low = max((step for step in steps if step <= min(values) / 1.2), default=steps[0])
        high = min((step for step in steps if step >= max(values) * 1.2), default=steps[-1])
        return cls(low, high, start, end)

    def at(self, value: float) -> float:
        share = math.log(value / self.low) / math.log(self.high / self.low)
        return self.start + share * (self.end - self.start)

    @property
    def ticks(self) -> list[float]:
        """The powers of ten in the axis, with 2 and 5 times them where few powers are in it."""
        few = self.high / self.low <= 1000
        values = (digit * 10.0**k for k in range(-24, 25) for digit in ((1, 2, 5) if few else (1,)))
        return [value for value in values if self.low * 0.999 <= value <= self.high * 1.001]
