"""The figures that a search keeps of the estimate of a region in one lane: a few numbers of each node."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from fuseflow.estimate.graph_counts import held_entries
from fuseflow.estimate.program_estimate import RegionEstimate
from fuseflow.machine.machine import Machine
from fuseflow.resources import HeldEntries, Resources, arithmetic_lanes


@dataclass(frozen=True, slots=True, eq=False)
class RegionFigures:
    """The figures of a region in one lane. `memory` is how many cycles the memory moves its bytes. All cycles are multiplied by
    `stretch`, because the memory refreshes itself. `occupied` has the cycles of every node, `held` the entries that nodes hold
    back, and `work`, for each component (such as `mul`), the cycles of all its units of arithmetic added up."""

    cycles: float
    memory: float
    stretch: float
    occupied: Mapping[str, float]
    held: Mapping[str, HeldEntries]
    work: Mapping[str, float]
    resources: Resources

    @classmethod
    def of(cls, estimate: RegionEstimate, machine: Machine) -> RegionFigures:
        return cls(
            float(estimate.bound.cycles),
            float(estimate.bound.memory),
            1 / (1 - estimate.bound.refresh),
            {node.name: float(node.occupied) for node in estimate.work.nodes},
            held_entries(estimate.counts),
            lane_cycles(estimate, machine),
            estimate.resources,
        )

    def renamed(self, nodes: tuple[str, ...]) -> RegionFigures:
        """Return the figures of a region whose graph differs from this one only in the names of its nodes, which are `nodes`."""
        if nodes == tuple(self.occupied):
            return self
        names = dict(zip(self.occupied, nodes, strict=True))
        occupied = {names[node]: cycles for node, cycles in self.occupied.items()}
        return replace(self, occupied=occupied, held={names[node]: held for node, held in self.held.items()})


def lane_cycles(estimate: RegionEstimate, machine: Machine) -> dict[str, float]:
    """Return, for each component (such as `mul`), the busy cycles of all units of arithmetic of a region added up."""
    lanes, work = arithmetic_lanes(estimate.counts.graph, machine), defaultdict[str, float](float)
    for node in estimate.work.nodes:
        for component, count in lanes.get(node.name, {}).items():
            work[component] += count * float(node.occupied)
    return dict(work)


def total_lane_cycles(estimates: Iterable[RegionEstimate], machine: Machine) -> dict[str, float]:
    """Return the busy cycles of units of arithmetic, as `lane_cycles` does, of all regions of a program together."""
    total = defaultdict[str, float](float)
    for estimate in estimates:
        for component, cycles in lane_cycles(estimate, machine).items():
            total[component] += estimate.times * cycles
    return dict(total)
