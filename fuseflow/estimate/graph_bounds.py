"""The work and the bounds of one graph on many machines: arithmetic over its counts. Every part is kept for all machines for
which it is the same.

Firings and stages depend on the rules, the intervals and the lines of a machine. Bytes depend on the lines. Latencies, the depth of FIFOs
and the speed of the memory only enter the sums that `bound` takes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from fuseflow.estimate.bound import Bound
from fuseflow.estimate.counted.memo import CountMemo, Uncountable
from fuseflow.estimate.fifo_depths import DepthChoice, edge_depths, fifo_bytes
from fuseflow.estimate.fifo_loops import BusyLoops, FifoLoops, Matrix
from fuseflow.estimate.flows import Number
from fuseflow.estimate.graph_counts import GraphCounts
from fuseflow.estimate.graph_cycles import GraphCycles
from fuseflow.estimate.graph_work import Intervals, TimingClasses, Work, work_on
from fuseflow.estimate.memory_bound import memory_latency, request_bytes
from fuseflow.estimate.memory_load import MemoryLoad, WrittenLines
from fuseflow.estimate.pipeline import Pipeline
from fuseflow.estimate.port_lines import read_lines
from fuseflow.estimate.stage_weights import Stages, measure_stages
from fuseflow.machine.machine import Machine
from fuseflow.memory.buffered_ports import buffered_ports
from fuseflow.memory.settings import Hbm2Memory, IdealMemory, TimedMemory
from fuseflow.samml.lane_writers import LanePart, WriteLaneValues, lane_part
from fuseflow.samml.nodes import Edge, Graph

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class MachineBounds:
    """The work of a graph on a machine, its bounds, and its load of the memory."""

    machine: Machine
    work: Work
    bound: Bound
    load: MemoryLoad


@dataclass(slots=True, eq=False)
class GraphBounds:
    """A counted graph, with its work and bounds on machines."""

    counts: GraphCounts
    memo: CountMemo
    _kept: dict[Hashable, Any] = field(default_factory=dict)
    _of_depths: dict[Hashable, Any] = field(default_factory=dict)
    """Results that depend on the depths of FIFOs that the graph states."""
    _latest: MachineBounds | None = None

    def with_depths_of(self, graph: Graph) -> GraphBounds:
        """Return the bounds of the same graph with the depths of FIFOs that `graph` states. Results that ignore depths are
        shared."""
        return GraphBounds(replace(self.counts, graph=graph), self.memo, self._kept)

    def on(self, machine: Machine) -> MachineBounds:
        """Return the work and the bounds on a machine. The ones on the machine of the last call are kept."""
        if self._latest is None or self._latest.machine is not machine:
            self._latest = self._on(machine)
        return self._latest

    def depths(self, machine: Machine) -> Mapping[Edge, int]:
        """Return the depths of the FIFOs that need more slots than the graph and the machine say, so that no FIFO holds the graph
        up."""
        graph, _, key = self._cycles(machine)
        if machine.first_depth is None:
            return {}
        pipeline, (loops, work) = graph.pipeline, self._fifo_loops(machine, graph.occupied, key)
        base = float(max(graph.bound(None, "").stages, 1))
        bytes_ = fifo_bytes(self.counts.graph, pipeline.of_node, loops)
        choice = DepthChoice(graph, loops, work, bytes_, base)
        return edge_depths(self.counts.graph, pipeline.of_node, choice, pipeline.slots(self.counts.graph, machine))

    def _on(self, machine: Machine) -> MachineBounds:
        graph, work, key = self._cycles(machine)
        busiest = max(work.nodes, key=lambda node: node.occupied).name
        bound = graph.bound(self._loops(machine, graph, key), busiest)
        return MachineBounds(machine, work, bound, graph.load)

    def _cycles(self, machine: Machine) -> tuple[GraphCycles, Work, Hashable]:
        """Return the cycles of the stages of the graph, the work of its nodes, and a key of the settings of the machine that the
        work depends on."""
        timings = self._once("timings", lambda: TimingClasses.of(self.counts)).on(machine)
        pipeline = self._once("pipeline", lambda: Pipeline.of(self.counts))
        key = _firing_key(machine, timings.intervals)
        work, occupied = self._once(("work", key), lambda: self._work(timings.intervals, machine))
        busy = pipeline.most(occupied)
        answer = memory_latency(machine.memory)
        own = pipeline.most(timings.latencies)
        latency = [cycles + answer * stage.answers for cycles, stage in zip(own, pipeline.stages, strict=True)]
        compute = max(occupied)
        graph = GraphCycles(
            machine,
            pipeline,
            latency,
            busy,
            self._memory_load(request_bytes(machine.memory), machine),
            max(0, self._largest_stages(key, work, timings.intervals, machine) - compute),
            machine.rules != "comal",
        )
        return graph, work, key

    def _loops(self, machine: Machine, graph: GraphCycles, key: Hashable) -> BusyLoops | None:
        """Return the loops of FIFOs, None if no FIFO is ever full."""
        if machine.first_depth is None and (machine.rules == "comal" or not self.counts.graph.depths):
            return None
        loops, work = self._fifo_loops(machine, graph.occupied, key)
        depths = machine.fifo_depth, machine.first_depth
        if depths not in self._of_depths:
            self._of_depths[depths] = graph.pipeline.slots(self.counts.graph, machine)
        slots = self._of_depths[depths]
        shares = self._once(("shares", lines_ahead(machine), slots), lambda: loops.shares(slots))
        return BusyLoops.of(shares, loops.longest(graph.loaded_latency, work, graph.occupied))

    def _fifo_loops(self, machine: Machine, busy: Sequence[Number], key: Hashable) -> tuple[FifoLoops, Matrix]:
        """Return the loops of FIFOs without latencies and slots, and the work on their ways. `busy` has the cycles of each
        stage."""
        pipeline: Pipeline = self._kept["pipeline"]
        ahead = lines_ahead(machine)
        loops = self._once(("loops", ahead), lambda: pipeline.loops(*ahead))
        return loops, self._once(("busy", key, ahead), lambda: loops.work(busy))

    def _memory_load(self, line: int, machine: Machine) -> MemoryLoad:
        """Return the load of the memory by the graph, in lines of `line` bytes."""
        memory = machine.memory
        channels = memory.channels if isinstance(memory, Hbm2Memory) else 1

        def load() -> MemoryLoad:
            counts, pipeline = self.counts, self._kept["pipeline"]
            stages = dict(zip((node.name for node in counts.graph.nodes), pipeline.of_node, strict=True))
            written = lines_written(counts, line)
            buffers = buffered_ports(counts.graph, memory.line) if isinstance(memory, TimedMemory) else {}
            ports = read_lines(counts.graph, counts.flows, line, counts.array_bytes, buffers)
            return MemoryLoad.of(ports, stages, counts.array_bytes, written, line, channels)

        return self._once(("load", line, channels), load)

    def _work(self, intervals: tuple[Intervals, ...], machine: Machine) -> tuple[Work, list[Number]]:
        """Return the work on a machine, and the cycles for which each node is occupied. `intervals` are the cycles between its
        firings."""
        work = work_on(self.counts, intervals, machine)
        return work, [node.occupied for node in work.nodes]

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


def lines_ahead(machine: Machine) -> tuple[int, int]:
    """Return how many lines a port may have requested without an answer, and the bytes of a line."""
    memory = machine.memory
    return (0, 64) if isinstance(memory, IdealMemory) else (memory.outstanding, memory.line)


def lines_written(counts: GraphCounts, line: int, parts: Mapping[str, LanePart] | None = None) -> list[WrittenLines]:
    """Return the lines that a graph writes of each array. `parts` has, for a tensor that lanes write, the positions of one lane,
    if they are not those of the graph."""
    declared = counts.graph.declared
    if parts is None:
        parts = {w.tensor: lane_part(w, declared[w.tensor]) for w in counts.graph.nodes if isinstance(w, WriteLaneValues)}
    written = (row for row in counts.traffic if row.direction == "write")
    return [WrittenLines.of(row.bytes, parts.get(row.tensor), declared[row.tensor].value_bits, line) for row in written]


def _firing_key(machine: Machine, intervals: tuple[Intervals, ...]) -> Hashable:
    """Return the settings of a machine that decide how often nodes fire, and how many cycles that takes."""
    memory = machine.memory
    return machine.rules, memory.model, None if isinstance(memory, IdealMemory) else memory.line, intervals
