"""The series of numbers that figures of a sweep show: for every workload, the best points along one axis."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fuseflow.errors import UsageError
from fuseflow.report.sweep_table import Record, records
from fuseflow.sweep.sweep import Sweep

WORKLOAD = ("model", "data", "options", "seed", "sparsity", "machine", "set")
FUSION = ("fuse", "schedule")
"""The axes that choose the fusion. Figures take the first that varies."""


@dataclass(frozen=True, slots=True)
class PlotSeries:
    """The points of a sweep that have values, with `lines` as in a table. If they are `expected`, they are estimates."""

    axes: tuple[str, ...]
    lines: tuple[Record, ...]
    expected: bool

    @classmethod
    def of(cls, sweep: Sweep) -> PlotSeries:
        """Return the simulations of a sweep that simulates every point, else its estimates."""
        if sweep.modes == ("sample",):
            raise UsageError(
                "a figure has no intervals, so sampled points are not drawn", hint="`fuseflow sweep show` prints them with theirs"
            )
        expected = "estimate" in sweep.modes
        rows = records(sweep)
        axes = tuple(axis for axis in rows.axes if axis in sweep.space.axes)
        lines = tuple(line for line in rows.lines if _value(line, "cycles", expected) is not None)
        return cls(axes, lines, expected)

    def value(self, line: Record, quantity: str) -> float:
        value = _value(line, quantity, self.expected)
        assert value is not None
        return value

    def least(self, lines: Iterable[Record]) -> Record:
        """Return the line with the fewest cycles, the first of equal ones."""
        return min(lines, key=lambda line: self.value(line, "cycles"))

    @property
    def fusion(self) -> str | None:
        """The axis that chooses the fusion, if it varies."""
        return next((axis for axis in FUSION if axis in self.axes), None)

    @property
    def word(self) -> str:
        return "expected " if self.expected else ""

    def groups(self, axes: Sequence[str], lines: Iterable[Record] | None = None) -> dict[str, list[Record]]:
        """Return the lines grouped by their labels on those of `axes` that vary."""
        groups: dict[str, list[Record]] = {}
        for line in self.lines if lines is None else lines:
            groups.setdefault(" ".join(str(line[axis]) for axis in axes if axis in self.axes), []).append(line)
        return groups

    def numeric(self, axis: str) -> NumericAxis | None:
        """Return the labels of an axis as numbers, or None unless there are several that differ in one number only."""
        return numeric_axis(list(dict.fromkeys(str(line[axis]) for line in self.lines)), axis)


@dataclass(frozen=True, slots=True)
class NumericAxis:
    """Labels as numbers: `i=2`, `i=4`, and `-`, which is one lane. `of` names the counted setting, such as `par i`."""

    of: str
    at: dict[str, float]


def numeric_axis(labels: Sequence[str], axis: str) -> NumericAxis | None:
    """Return labels as numbers, or None if they do not differ in one number.

    >>> numeric_axis(["-", "i=2", "i=4"], "par")
    NumericAxis(of='par i', at={'i=2': 2.0, 'i=4': 4.0, '-': 1.0})
    >>> numeric_axis(["A=8,8", "A=16,16"], "block").at, numeric_axis(["d:block=8,length=64", "d:block=4,length=64"], "data").of
    ({'A=8,8': 8.0, 'A=16,16': 16.0}, 'data block')
    >>> numeric_axis(["A=8,8", "A=8,16,16"], "block"), numeric_axis(["i=2", "k=2"], "par"), numeric_axis(["rda", "ideal"], "machine")
    (None, None, None)
    """
    valued = [label for label in labels if label != "-"]
    texts = {tuple(_NUMBER.split(label)) for label in valued}
    if len(labels) < 2 or len(texts) != 1 or (len(valued) < len(labels) and axis not in ("par", "block")):
        return None
    text = texts.pop()
    columns = list(zip(*(map(float, _NUMBER.findall(label)) for label in valued), strict=True))
    varying = [n for n, column in enumerate(columns) if len(valued) == 1 or len(set(column)) > 1]
    if not varying or any(columns[n] != columns[varying[0]] for n in varying):
        return None
    words = re.findall(r"[A-Za-z_]\w*", "".join(text[: varying[0] + 1]))
    at = dict(zip(valued, columns[varying[0]], strict=True))
    return NumericAxis(f"{axis} {words[-1] if words else ''}".strip(), at | ({"-": 1.0} if "-" in labels else {}))


_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")


def _value(line: Record, quantity: str, expected: bool) -> float | None:
    value = line.get(f"estimated_{quantity}" if expected else quantity)
    return float(value) if isinstance(value, int | float) else None
