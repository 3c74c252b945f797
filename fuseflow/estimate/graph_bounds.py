"""The work and the bounds of one graph on many machines: arithmetic over its counts. Every part is kept for all machines for
which it is the same.

Firings and stages depend on the rules, the intervals and the lines of a machine. Bytes depend on the lines. Latencies, the depth of FIFOs
and the speed of the memory only enter the sums that `bound` takes.

`GraphBounds.depths` chooses how deep FIFOs have to be. Those on short ways get enough slots that no loop of FIFOs takes longer than the
slowest stage of the graph, and that no refresh of the memory holds up a stage that could go on. Example: a residual of 49 tokens a row goes
around two products of 9,400 cycles each. Two rows must be under way at once, so its FIFO gets 98 slots, and all others keep the slots of
the machine.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil, inf
from typing import Any, TypeVar

import numpy as np

from fuseflow.estimate.counted.memo import CountMemo, Uncountable
from fuseflow.estimate.fifo_loops import BusyLoops, FifoLoops, Matrix, hidden_work, loop_cycles
from fuseflow.estimate.graph_counts import GraphCounts, Work, node_timings, work_on
from fuseflow.estimate.graph_cycles import Bound, GraphCycles
from fuseflow.estimate.memory_load import MemoryLoad, ScratchpadLoad, WrittenLines
from fuseflow.estimate.memory_pace import memory_pace
from fuseflow.estimate.pipeline_batches import LevelStages, measure_stages, total_cycles
from fuseflow.estimate.pipeline_stages import Pipeline
from fuseflow.estimate.port_lines import read_lines
from fuseflow.estimate.stream_flow import Number
from fuseflow.machine.machine import Machine
from fuseflow.machine.timing import Paces
from fuseflow.memory.buffer_assignment import buffered_ports
from fuseflow.memory.settings import IdealMemory, TimedMemory
from fuseflow.resources.area import token_bytes
from fuseflow.samml.nodes import Edge, Graph
from fuseflow.samml.writers import LanePart, WriteLaneValues, lane_part

Value = TypeVar("Value")


TOLERANCE = 1.02
"""How many times as long as the slowest stage a loop may take."""
MOST_STEPS = 400
"""The most FIFOs that are deepened for one graph, one after the other."""


@dataclass(frozen=True, slots=True)
class _Lack:
    """A way between two stages through FIFOs that holds too little, and the share of all work that it has to hold."""

    begin: int
    end: int
    share: float


@dataclass(frozen=True, slots=True, eq=False)
class DepthChoice:
    """Chooses the slots of the FIFOs of a graph. `bytes` has the bytes of a token of each FIFO, `base` the cycles that loops may
    take, and `work` the cycles of the busiest node on the way between every two nodes."""

    graph: GraphCycles
    loops: FifoLoops
    work: Matrix
    bytes: tuple[int, ...]
    base: float

    def slots(self, first: Sequence[float]) -> tuple[float, ...]:
        """Return the slots that each FIFO needs, at least the `first` that it has."""
        slots = list(first)
        longest = self.loops.longest(self.graph.latency, self.graph.line_waits, self.work, self.graph.occupied)
        for _ in range(MOST_STEPS):
            shares = self.loops.shares(slots)
            lack = self._largest_loop(shares, loop_cycles(shares, longest), longest.batches, longest.latency)
            lack = lack or self._held_up(shares)
            if lack is None:
                break
            # The FIFO of the way that takes the fewest bytes for the same share of all work.
            at = min(self._way(shares, slots, lack), key=lambda at: self.bytes[at] * self.loops.fifos[at].tokens)
            tokens = max(1, self.loops.fifos[at].tokens)
            slots[at] = ceil(slots[at] + (lack.share - shares[lack.end, lack.begin]) * tokens)
        return tuple(slots)

    def _largest_loop(self, shares: Matrix, cycles: Matrix, batches: Matrix, latency: Matrix) -> _Lack | None:
        """Return the way that makes the slowest loop, with what it must hold to slow nothing down. None if no loop is slow."""
        end, begin = divmod(int(cycles.argmax()), len(cycles))
        if cycles[end, begin] <= TOLERANCE * self.base:
            return None
        number = batches[end, begin]
        if not np.isfinite(number):
            return _Lack(begin, end, float(latency[end, begin] / self.base))
        wanted = ceil(number * latency[end, begin] / (TOLERANCE * self.base))
        return _Lack(begin, end, (wanted + 1e-6) / float(number))

    def _held_up(self, shares: Matrix) -> _Lack | None:
        """Return a way around a port that holds too little to go on with while the memory refreshes itself, else None."""
        pace = self.graph.pace
        if pace.refresh is None:
            return None
        gap = pace.refresh.gap / self.base
        for read in self.graph.load.reads:
            if read.most * gap < 1:  # it reads nothing, or less than one line in that time
                continue
            wanted = gap - (pace.prefetch / read.most if read.port.in_order else 0.0)
            if hidden_work(shares, read.stage) * TOLERANCE >= wanted:
                continue
            before, after = np.isfinite(shares[read.stage]), np.isfinite(shares[:, read.stage])
            before[read.stage] = False
            ways = np.where(after[:, None] & before[None, :], shares, inf)
            end, begin = divmod(int(ways.argmin()), len(ways))
            return _Lack(begin, end, wanted)
        return None

    def _way(self, shares: Matrix, slots: Sequence[float], lack: _Lack) -> list[int]:
        """Return the FIFOs of the way between the ends of `lack` that holds the least."""
        way, node = list[int](), lack.end
        while node != lack.begin:
            inputs = [at for at, fifo in enumerate(self.loops.fifos) if fifo.target == node]

            def held(at: int) -> float:
                fifo = self.loops.fifos[at]
                before = 0.0 if fifo.source == lack.begin else shares[fifo.source, lack.begin] + self.loops.held[fifo.source]
                return float(before + slots[at] / max(1, fifo.tokens))

            way.append(min(inputs, key=held))
            node = self.loops.fifos[way[-1]].source
        return way


@dataclass(frozen=True, slots=True)
class MachineBounds:
    """The work of a graph on a machine, its bounds, and its load of the memory."""

    machine: Machine
    work: Work
    bound: Bound
    load: MemoryLoad
    chip: ScratchpadLoad


@dataclass(slots=True, eq=False)
class GraphBounds:
    """A counted graph, with its work and bounds on machines."""

    counts: GraphCounts
    memo: CountMemo
    _kept: dict[Hashable, Any] = field(default_factory=dict)
    _latest: MachineBounds | None = None

    def with_depths_of(self, graph: Graph) -> GraphBounds:
        """Return the bounds of the same graph with the depths of FIFOs that `graph` states. Results that ignore depths are
        shared."""
        return GraphBounds(replace(self.counts, graph=graph), self.memo, self._kept)

    def on(self, machine: Machine) -> MachineBounds:
        """Return the work and the bounds on a machine. The ones on the machine of the last call are kept."""
        if self._latest is None or self._latest.machine is not machine:
            graph, work, key = self._cycles(machine)
            busiest = max(work.nodes, key=lambda node: node.occupied).name
            bound = graph.bound(self._loops(machine, graph, key), busiest)
            self._latest = MachineBounds(machine, work, bound, graph.load, graph.chip)
        return self._latest

    def depths(self, machine: Machine) -> Mapping[Edge, int]:
        """Return the depths of the FIFOs that need more slots than the graph and the machine say, so that no FIFO holds the graph
        up."""
        if machine.first_depth is None:
            return {}
        cycles, _, key = self._cycles(machine)
        graph, pipeline, (loops, work) = self.counts.graph, cycles.pipeline, self._fifo_loops(machine, cycles.occupied, key)
        nodes = tuple(zip(graph.nodes, pipeline.of_node, strict=True))
        places = {Edge(node.name, k): (stage, k) for node, stage in nodes for k in range(len(node.inputs))}
        total = Counter[tuple[int, int]]()
        for node, stage in nodes:
            total.update({(stage, k): token_bytes(graph, port) for k, port in enumerate(node.inputs)})
        bytes_ = tuple(total.get((fifo.target, fifo.input), 1) for fifo in loops.fifos)
        choice = DepthChoice(cycles, loops, work, bytes_, float(max(cycles.bound(None, "").stages, 1)))
        first = pipeline.slots(graph, machine)
        slots = zip(loops.fifos, choice.slots(first), first, strict=True)
        deeper = {(fifo.target, fifo.input): int(most) for fifo, most, before in slots if most > before}
        return {edge: deeper[place] for edge, place in places.items() if place in deeper}

    def _cycles(self, machine: Machine) -> tuple[GraphCycles, Work, Hashable]:
        """Return the cycles of stages, the work of nodes, and a key of the settings of the machine that the work depends on."""
        timings = node_timings(self.counts, machine)
        paces = tuple(timing.paces for timing in timings)
        pipeline = self._once("pipeline", lambda: Pipeline.of(self.counts))
        # What decides how often nodes fire, and how many cycles that takes.
        line = None if isinstance(machine.memory, IdealMemory) else machine.memory.line
        key = machine.rules, machine.memory.model, line, machine.scratchpad, paces
        work = self._once(("work", key), lambda: work_on(self.counts, paces, machine))
        busy = pipeline.most([node.occupied for node in work.nodes])
        answer = memory_pace(machine).latency
        own = pipeline.most([timing.latency for timing in timings])
        latency = [cycles + answer * stage.answers for cycles, stage in zip(own, pipeline.stages, strict=True)]
        graph = GraphCycles(
            machine,
            pipeline,
            latency,
            busy,
            self._memory_load(machine),
            max(0, self._largest_stages(key, work, paces, machine) - max(busy)),
            machine.rules != "comal",
            ScratchpadLoad.of(self.counts, machine),
        )
        return graph, work, key

    def _loops(self, machine: Machine, graph: GraphCycles, key: Hashable) -> BusyLoops | None:
        """Return the loops of FIFOs, None if no FIFO is ever full."""
        if machine.first_depth is None and (machine.rules == "comal" or not (self.counts.graph.depths or self.counts.graph.hops)):
            return None
        loops, work = self._fifo_loops(machine, graph.occupied, key)
        slots = graph.pipeline.slots(self.counts.graph, machine)
        shares = self._once(("shares", lines_ahead(machine), slots), lambda: graph.pipeline.through_links(loops.shares(slots)))
        return BusyLoops.of(shares, loops.longest(graph.loaded_latency, graph.line_waits, work, graph.occupied))

    def _fifo_loops(self, machine: Machine, busy: Sequence[Number], key: Hashable) -> tuple[FifoLoops, Matrix]:
        """Return the loops of FIFOs without latencies and slots, and the work on their ways, given the cycles of each stage."""
        pipeline: Pipeline = self._kept["pipeline"]
        ahead = lines_ahead(machine)
        loops = self._once(("loops", ahead), lambda: pipeline.loops(*ahead))
        return loops, self._once(("busy", key, ahead), lambda: loops.work(busy))

    def _memory_load(self, machine: Machine) -> MemoryLoad:
        """Return the load of the memory by the graph."""
        memory, pace = machine.memory, memory_pace(machine)

        def load() -> MemoryLoad:
            counts, pipeline = self.counts, self._kept["pipeline"]
            stages = dict(zip((node.name for node in counts.graph.nodes), pipeline.of_node, strict=True))
            written = lines_written(counts, pace.line)
            buffers = buffered_ports(counts.graph, memory.line) if isinstance(memory, TimedMemory) else {}
            ports = read_lines(counts.graph, counts.flows, pace.line, counts.array_bytes, buffers)
            return MemoryLoad.of(ports, stages, counts.array_bytes, written, pace)

        return self._once(("load", pace.line, pace.open_bytes, pace.channels), load)

    def _largest_stages(self, key: Hashable, work: Work, paces: tuple[Paces, ...], machine: Machine) -> Number:
        """Return the cycles of the largest stages of all batches. They are 0 where a stage never waits, or was not counted."""
        depth = machine.first_depth
        if depth is None:
            return 0

        def measure() -> tuple[LevelStages, ...] | None:
            try:
                return measure_stages(self.counts, work, paces, machine, self.memo)
            except Uncountable:
                return None

        stages = self._once(("stages", key), measure)
        return 0 if stages is None else self._once(("largest", key, depth), lambda: total_cycles(self.memo, stages, depth))

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
    written = (row for row in counts.traffic if row.direction == "write" and not declared[row.tensor].scratchpad)
    return [WrittenLines.of(row.bytes, parts.get(row.tensor), declared[row.tensor].value_bits, line) for row in written]
