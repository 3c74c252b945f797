"""How the fraction of pruned entries rises during training."""

from __future__ import annotations

from dataclasses import dataclass

from fuseflow.errors import SparsityError


@dataclass(frozen=True, slots=True)
class Cubic:
    """A fraction that rises from `start` to `end` over `steps` steps of an optimizer, fast at first, when most entries are redundant.

    The fraction after k steps is end + (start - end) * (1 - k / steps) ** 3 (Zhu and Gupta, "To prune, or not to prune", 2017).

    >>> [round(Cubic(0.0, 0.8, steps=100).fraction(step), 2) for step in (0, 50, 100, 150)]
    [0.0, 0.7, 0.8, 0.8]
    """

    start: float
    end: float
    steps: int

    def __post_init__(self) -> None:
        if not 0 <= self.start <= self.end <= 1:
            hint = "give a start and a larger end between 0 and 1"
            raise SparsityError(f"a fraction cannot rise from {self.start} to {self.end}", hint=hint)
        if self.steps < 1:
            raise SparsityError(f"a fraction cannot rise within {self.steps} steps", hint="give one step or more")

    def fraction(self, step: int) -> float:
        """Return the fraction after `step` steps. After the last one it stays."""
        left = 1 - min(step, self.steps) / self.steps
        return self.end + (self.start - self.end) * left**3
