"""A design space: a base schedule and the choices that vary over it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from fuseflow.errors import ScheduleError, did_you_mean
from fuseflow.schedule import Schedule

KINDS = ("fuse", "order", "format")


@dataclass(frozen=True, slots=True)
class Axis:
    """One choice: `kind` says what varies, `target` of which region, Einsum or tensor (empty for `fuse`), `values` its settings.

    Settings are written as in a schedule: `none` or `layer1,layer2` for fuse, `i,k,j` for order, `csr` for format.
    """

    kind: str
    target: str
    values: tuple[str, ...]

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ScheduleError(f"a design space cannot vary `{self.kind}`", hint=did_you_mean(self.kind, KINDS))
        if not self.values:
            raise ScheduleError(f"the axis `{self.name}` has no values")
        if (self.kind == "fuse") == bool(self.target):
            raise ScheduleError(f"the axis `{self.kind}` {'takes no' if self.target else 'needs a'} target")

    @property
    def name(self) -> str:
        return f"{self.kind} {self.target}".strip()

    def apply(self, schedule: Schedule, value: str) -> Schedule:
        match self.kind:
            case "fuse":
                return schedule.fuse(*value.split(","))
            case "order":
                return schedule.order(self.target, value)
            case _:
                return schedule.format(self.target, value)


@dataclass(frozen=True, slots=True)
class Space:
    """All combinations of the settings of its axes, the last axis varying fastest.

    >>> space = Space(Schedule(), (Axis("fuse", "", ("none", "full")), Axis("format", "adj", ("csr", "coo"))))
    >>> [label for label, _ in space.points()]
    ['fuse=none format adj=csr', 'fuse=none format adj=coo', 'fuse=full format adj=csr', 'fuse=full format adj=coo']
    """

    base: Schedule
    axes: tuple[Axis, ...]

    def __len__(self) -> int:
        return math.prod(len(a.values) for a in self.axes)

    def points(self) -> Iterator[tuple[str, Schedule]]:
        """Each point's label and schedule, in a repeatable order."""
        for values in product(*(a.values for a in self.axes)):
            schedule = self.base
            for axis, value in zip(self.axes, values, strict=True):
                schedule = axis.apply(schedule, value)
            yield " ".join(f"{a.name}={v}" for a, v in zip(self.axes, values, strict=True)), schedule
