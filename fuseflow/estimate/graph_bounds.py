"""The work and the bounds of one graph on many machines: arithmetic over its counts, of which every part is kept for the machines that it
is the same for.

Firings and stages depend on the rules, the intervals and the lines of a machine. Bytes depend on the lines. Latencies, the depth of FIFOs
and the speed of the memory only enter the sums that `bound` takes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from math import inf
from typing import Any, TypeVar

from fuseflow.estimate.bound import Bound, Pipeline
from fuseflow.estimate.counted.memo import CountMemo, Uncountable
from fuseflow.estimate.flows import Number
from fuseflow.estimate.graph_counts import GraphCounts
from fuseflow.estimate.graph_work import Intervals, TimingClasses, Work, work_on
from fuseflow.estimate.memory_bound import MEMORY_LATENCY, bytes_moved, peak_bandwidth, refresh_share, request_bytes
from fuseflow.estimate.stage_weights import Stages, measure_stages
from fuseflow.sim.machine.machine import Machine
from fuseflow.sim.memory.settings import IdealMemory

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class MachineBounds:
    """The work of a graph on a machine, and its bounds."""

    machine: Machine
    work: Work
    bound: Bound


@dataclass(slots=True, eq=False)
class GraphBounds:
    """A counted graph, with what was computed of it for machines."""

    counts: GraphCounts
    memo: CountMemo
    _kept: dict[Hashable, Any] = field(default_factory=dict)
    _latest: MachineBounds | None = None

    def on(self, machine: Machine) -> MachineBounds:
        """Return the work and the bounds on a machine. Those on the machine of the last call are kept."""
        if self._latest is None or self._latest.machine is not machine:
            self._latest = self._on(machine)
        return self._latest

    def _on(self, machine: Machine) -> MachineBounds:
        timings = self._once("timings", lambda: TimingClasses.of(self.counts)).on(machine)
        pipeline = self._once("pipeline", lambda: Pipeline.of(self.counts))
        key = _firing_key(machine, timings.intervals)
        work, occupied = self._once(("work", key), lambda: self._work(timings.intervals, machine))
        answer = MEMORY_LATENCY[machine.memory.model]
        latency = [own + answer * answers for own, answers in zip(timings.latencies, pipeline.answers, strict=True)]
        compute = max(occupied)
        moved, peak = self._moved(request_bytes(machine.memory)), peak_bandwidth(machine)
        limits = Bound(
            compute,
            pipeline.control(latency, occupied, machine.rules != "comal"),
            0.0 if peak == inf else moved / peak,
            pipeline.names[occupied.index(compute)],
            refresh_share(machine) if moved else 0.0,
            max(0, self._largest_stages(key, work, timings.intervals, machine) - compute),
        )
        return MachineBounds(machine, work, limits)

    def _work(self, intervals: tuple[Intervals, ...], machine: Machine) -> tuple[Work, list[Number]]:
        """Return the work on a machine, and the cycles that each node is occupied."""
        work = work_on(self.counts, intervals, machine)
        return work, [node.occupied for node in work.nodes]

    def _moved(self, line: int) -> Number:
        """Return the bytes that a memory moves in requests of `line` bytes."""

        def count() -> Number:
            writes: dict[str, float] = dict.fromkeys(self.counts.graph.outputs, 0)
            for row in self.counts.traffic:
                if row.direction == "write":
                    writes[row.tensor] += row.bytes
            return bytes_moved(self.counts.graph, self.counts.flows, line, writes)

        return self._once(("moved", line), count)

    def _largest_stages(self, key: Hashable, work: Work, intervals: tuple[Intervals, ...], machine: Machine) -> Number:
        """Return the cycles of the largest stages of all batches. They are 0 where a stage never waits, or was not counted."""
        depth = machine.first_depth
        if depth is None:
            return 0

        def measure() -> Stages | None:
            try:
                return measure_stages(self.counts, work, intervals, machine, self.memo)
            except Uncountable:
                return None

        stages = self._once(("stages", key), measure)
        return 0 if stages is None else self._once(("largest", key, depth), lambda: stages.total(depth))

    def _once(self, key: Hashable, compute: Callable[[], Value]) -> Value:
        if key not in self._kept:
            self._kept[key] = compute()
        value: Value = self._kept[key]
        return value


def _firing_key(machine: Machine, intervals: tuple[Intervals, ...]) -> Hashable:
    """Return what the firings of nodes, and the cycles that these take, depend on in a machine."""
    memory = machine.memory
    return machine.rules, memory.model, None if isinstance(memory, IdealMemory) else memory.line, intervals
