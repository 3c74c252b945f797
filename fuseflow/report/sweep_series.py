"""The numbers that figures of a sweep show: of every workload, the best points by one axis."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fuseflow.explore.sweep import Sweep
from fuseflow.report.sweep_table import Record, records

WORKLOAD = ("model", "data", "options", "seed", "machine", "set")
FUSION = ("fuse", "schedule")
"""The axes that say what is fused: the first that varies."""


@dataclass(frozen=True, slots=True)
class Series:
    """The points of a sweep that have values; `lines` as in a table. `expected`: they are estimates."""

    axes: tuple[str, ...]
    lines: tuple[Record, ...]
    expected: bool

    @classmethod
    def of(cls, sweep: Sweep) -> Series:
        """The simulations of a sweep that makes all of them, else the estimates."""
        expected = "estimate" in sweep.modes
        found = records(sweep)
        axes = tuple(axis for axis in found.axes if axis in sweep.space.axes)
        lines = tuple(line for line in found.lines if _value(line, "cycles", expected) is not None)
        return cls(axes, lines, expected)

    def value(self, line: Record, what: str) -> float:
        value = _value(line, what, self.expected)
        assert value is not None
        return value

    def least(self, lines: Iterable[Record]) -> Record:
        """The one with the fewest cycles; of equal ones the first."""
        return min(lines, key=lambda line: self.value(line, "cycles"))

    @property
    def fusion(self) -> str | None:
        """The axis that says what is fused, if it varies."""
        return next((axis for axis in FUSION if axis in self.axes), None)

    @property
    def word(self) -> str:
        return "expected " if self.expected else ""

    def groups(self, axes: Sequence[str], lines: Iterable[Record] | None = None) -> dict[str, list[Record]]:
        """The lines by what they are called on these axes, as far as they vary."""
        found: dict[str, list[Record]] = {}
        for line in self.lines if lines is None else lines:
            found.setdefault(" ".join(str(line[axis]) for axis in axes if axis in self.axes), []).append(line)
        return found

    def numeric(self, axis: str) -> dict[str, float] | None:
        """What the labels of an axis say as numbers, if they differ in one number only: `i=2`, `i=4`, and `-`, which is one lane."""
        labels = list(dict.fromkeys(str(line[axis]) for line in self.lines))
        parts = {label: re.fullmatch(r"(.*?)([0-9]+(?:\.[0-9]+)?)(\D*)", label) for label in labels if label != "-"}
        around = {match and (match[1], match[3]) for match in parts.values()}
        if len(labels) < 2 or len(around) != 1 or None in around or ("-" in labels and axis != "par"):
            return None
        return {label: float(match[2]) if (match := parts.get(label)) else 1.0 for label in labels}

    def quantity(self, axis: str) -> str:
        """What an axis with numbers counts: `par i`, `block` of `bigbird:block=16`."""
        label = next(str(line[axis]) for line in self.lines if line[axis] != "-")
        name = re.split(r"[:,]", re.sub(r"=?[0-9.]+\D*$", "", label))[-1]
        return f"{axis} {name}".strip()


def _value(line: Record, what: str, expected: bool) -> float | None:
    value = line.get(f"estimated_{what}" if expected else what)
    return float(value) if isinstance(value, int | float) else None
