"""Lanes of the stages of a region: each stage gets lanes by its work, so that all take about equally long, within a budget.

The stages run at the same time, and the slowest decides. What each adds to the graph is measured with two and three lanes of that stage,
and adds up over the stages; stages with equally many lanes share forks and merges, so it may be less.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from math import ceil

import numpy as np

from fuseflow.autoscheduler.budget.cut_graph import OrderedRange
from fuseflow.autoscheduler.budget.deals import Amounts, LaneMeasure, lane_counts
from fuseflow.autoscheduler.budget.decision import Lanes
from fuseflow.autoscheduler.budget.selection import Option, SelectionProblem, select
from fuseflow.estimate.lane_costs import LaneCosts
from fuseflow.resources import COMPONENTS
from fuseflow.resources.budget import Budget


@dataclass(frozen=True, slots=True, eq=False)
class StageLanes:
    """A stage that can be dealt over an index (`loop` names both, `size` is that of the index). `cycles` is how long its busiest
    copied node works, and `two` and `three` are the amounts of resources that two and three lanes add to the graph."""

    loop: str
    size: int
    cycles: float
    two: Amounts
    three: Amounts

    def options(self, floor: float) -> list[tuple[int, Option]]:
        """Return the numbers of lanes up to the first with which the stage takes at most `floor` cycles, and the amounts that
        they add."""
        options: list[tuple[int, Option]] = []
        for count in lane_counts(self.size):
            more = self.two + (count - 2) * (self.three - self.two) if count > 1 else np.zeros(len(COMPONENTS))
            options.append((count, Option(max(floor, self.cycles / count), tuple(ceil(amount) for amount in more))))
            if self.cycles / count <= floor:
                break
        return options


@dataclass(frozen=True, slots=True, eq=False)
class StageModel:
    """The stages of a region that can be dealt over each index, and the amounts of its graph in one lane (`base`).

    `floor` has, by index, the cycles that its lanes do not shorten: of the nodes outside all stages, and of the memory. `copies`
    are the cycles of the copies that the region reads. `stretch` multiplies its cycles for refreshes of the memory.
    """

    base: Amounts
    stages: dict[str, tuple[StageLanes, ...]]
    floor: dict[str, float]
    copies: float
    stretch: float

    @classmethod
    def of(cls, ordered: OrderedRange, costs: LaneCosts, indices: Container[str]) -> StageModel:
        """Measure two and three lanes of these indices in every stage, given the costs of the range, and return the model."""
        region, (*copies, figures), measure = ordered.pieces[-1], ordered.figures, LaneMeasure.of(costs)
        base = measure.corners(())[()]
        stages: dict[str, tuple[StageLanes, ...]] = {}
        floor: dict[str, float] = {}
        for index, size in ordered.loops.items():
            if index not in indices:
                continue
            copied: set[str] = set()
            dealt: list[StageLanes] = []
            for stage, loops in region.stages.items():
                own = (f"{stage}.{index}",)
                amounts = measure.corners(own) if index in loops and size > 1 else {}
                if not amounts:
                    continue
                nodes = measure.copied(own) & figures.occupied.keys()
                copied |= nodes
                cycles = max((figures.occupied[n] for n in nodes), default=0.0)
                dealt.append(StageLanes(f"/{stage}.{index}", size, cycles, *(more - base for more in amounts.values())))
            stages[index] = tuple(dealt)
            floor[index] = max(figures.memory, *(c for node, c in figures.occupied.items() if node not in copied), 0.0)
        return cls(base, stages, floor, sum(copy.cycles for copy in copies), figures.stretch)

    def lanes(self, budget: Budget, slots: float) -> list[Lanes]:
        """Return, for each index that several stages have, the lanes of the stages with which the slowest is as fast as the
        budget allows. FIFOs have `slots` slots."""
        scale = np.array([slots if name == "fifo" else 1.0 for name in COMPONENTS])
        limited = [n for n, name in enumerate(COMPONENTS) if name in budget.limits]
        room = [
            int(limit - self.base[COMPONENTS.index(name)] * (slots if name == "fifo" else 1))
            for name, limit in budget.limits.items()
        ]
        choices = (self._selected(index, limited, scale, room) for index, stages in self.stages.items() if len(stages) > 1)
        return [lanes for lanes in choices if lanes]

    def least(self, lanes: Lanes) -> float:
        """Return the least cycles of the region with these lanes of its stages, with the copies that it reads."""
        count = dict(lanes)
        slowest = [
            max(self.floor[index], *(stage.cycles / count.get(stage.loop, 1) for stage in stages))
            for index, stages in self.stages.items()
            if any(stage.loop in count for stage in stages)
        ]
        return self.copies + max(slowest, default=0.0) * self.stretch

    def _selected(self, index: str, limited: list[int], scale: Amounts, room: list[int]) -> Lanes:
        options = [stage.options(self.floor[index]) for stage in self.stages[index]]
        groups = tuple(
            tuple(Option(o.cycles, tuple(ceil(o.amounts[n] * scale[n]) for n in limited)) for _, o in group) for group in options
        )
        selected = select(SelectionProblem(groups, tuple(room)))
        if selected is None:
            return ()
        counts = (group[at][0] for group, at in zip(options, selected, strict=True))
        return tuple((stage.loop, count) for stage, count in zip(self.stages[index], counts, strict=True) if count > 1)
