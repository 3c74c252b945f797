"""The steps of a critical path, added up: the cycles that are due to each track, by kind, FIFO and port."""

from __future__ import annotations

from collections import defaultdict
from typing import Literal, NamedTuple, TypeAlias

StepKind: TypeAlias = Literal["work", "latency", "full", "memory"]


class StepLabel(NamedTuple):
    """The cause of the cycles of a step: a track, in one kind of step, at an edge if it is a FIFO, or at a port of the memory."""

    track: int
    kind: StepKind
    edge: int = -1
    port: int = -1


class StepTotals:
    """The cycles of the steps with the same label, and how often there was such a step."""

    def __init__(self) -> None:
        self.cycles: dict[StepLabel, int] = defaultdict(int)
        self.times: dict[StepLabel, int] = defaultdict(int)

    def add(self, label: StepLabel, cycles: int, times: int) -> None:
        self.cycles[label] += cycles
        self.times[label] += times

    def move(self, cycles: int, label: StepLabel, other: StepLabel) -> None:
        """Count cycles of one label as cycles of the `other` label."""
        self.cycles[label] -= cycles
        self.cycles[other] += cycles
