"""The trace of a run: the timelines of its regions, one after the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from fuseflow.sim.events.log import NEVER, CycleSpan
from fuseflow.sim.events.timeline import Timeline
from fuseflow.sim.traced_rerun import find_timeline

if TYPE_CHECKING:
    from fuseflow.lower.regions import CompiledRegion
    from fuseflow.machine.machine import Machine
    from fuseflow.run.callback_types import ProgressCallback
    from fuseflow.samml.nodes import Graph
    from fuseflow.sim import Simulation
    from fuseflow.tensors import Tensor


@dataclass(frozen=True, slots=True)
class TracedRegion:
    """The timeline of a region that begins in cycle `start` of the trace."""

    name: str
    start: int
    timeline: Timeline


class Tracer:
    """Traces regions as they run, one after the other. A region that repeats is traced once.

    `span` are the cycles to show, counted from the start of the first region. `regions` is how many regions there are at most.
    """

    def __init__(
        self, machine: Machine, regions: int = 1, span: CycleSpan | None = None, progress: ProgressCallback | None = None
    ) -> None:
        self.machine, self.count, self.span, self.progress = machine, regions, span or CycleSpan(), progress
        self.cycles = 0
        self.regions: list[TracedRegion] = []

    def watch(self, region: CompiledRegion, read: Mapping[str, Tensor], simulation: Simulation) -> None:
        """Trace a region that was simulated."""
        self.add(region.name, region.graph, read, simulation)

    def add(self, name: str, graph: Graph, read: Mapping[str, Tensor], simulation: Simulation) -> None:
        """Run a graph again and keep its timeline, if any of its cycles is in the span to show. `read` has the tensors that it reads."""
        start = self.cycles
        self.cycles += simulation.cycles
        span = CycleSpan(max(self.span.start - start, 0), self.span.end - start if self.span.end < self.cycles else NEVER)
        if self.span.end <= start or span.start >= simulation.cycles:
            return
        report = None if self.progress is None else partial(self.progress, f"{name} (trace)")
        timeline = find_timeline(graph, read, self.machine, simulation, lambda: Timeline(span, self.count), report)
        self.regions.append(TracedRegion(name, start, timeline))
