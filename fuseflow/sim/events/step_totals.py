"""The steps of a critical path, added up: the cycles that are due to each track, by kind, FIFO and port."""

from __future__ import annotations

from collections import defaultdict
from typing import Literal, NamedTuple, TypeAlias

StepKind: TypeAlias = Literal["work", "latency", "full", "memory"]


class StepLabel(NamedTuple):
    """The cause of the cycles of a step: a track, the kind of the step, the number of an edge if the cause is a FIFO, and a port
    of the memory if it is an answer."""

    track: int
    kind: StepKind
    edge: int = -1
    port: int = -1


class StepTotals:
    """Totals over the steps of a path, by label: their cycles, and how often such a step occurred."""

    def __init__(self) -> None:
        self.cycles: dict[StepLabel, int] = defaultdict(int)
        self.times: dict[StepLabel, int] = defaultdict(int)

    def add(self, label: StepLabel, cycles: int, times: int) -> None:
        self.cycles[label] += cycles
        self.times[label] += times

    def move(self, cycles: int, label: StepLabel, other: StepLabel) -> None:
        """Move a number of cycles from one label to the `other` label."""
        self.cycles[label] -= cycles
        self.cycles[other] += cycles
