"""Chooses how deep FIFOs have to be. Those on short ways get enough slots that no loop of FIFOs takes longer than the slowest
stage of the graph, and that no refresh of the memory holds up a stage that could go on.

Example: a residual of 49 tokens a row goes around two products of 9,400 cycles each. Two rows must be under way at once, so its
FIFO gets 98 slots, and all others keep the slots of the machine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, inf

import numpy as np

from fuseflow.estimate.fifo_loops import FifoLoops, Matrix, hidden_work, loop_cycles
from fuseflow.estimate.graph_cycles import REFRESH_GAP, GraphCycles
from fuseflow.memory.settings import Hbm2Memory, clock_ratio
from fuseflow.resources.resource_count import token_bytes
from fuseflow.samml.nodes import Edge, Graph

TOLERANCE = 1.02
"""How many times as long as the slowest stage a loop may take."""
MOST_STEPS = 400
"""The most FIFOs that are deepened for one graph, one after the other."""


@dataclass(frozen=True, slots=True)
class _Lack:
    """A way through FIFOs that holds too little: the stages where it begins and ends, and the share of all work that it has to
    hold."""

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
        longest = self.loops.longest(self.graph.latency, self.work, self.graph.occupied)
        for _ in range(MOST_STEPS):
            shares = self.loops.shares(slots)
            lack = self._largest_loop(shares, loop_cycles(shares, longest), longest.batches, longest.latency)
            lack = lack or self._held_up(shares)
            if lack is None:
                break
            at = self._cheapest(self._way(shares, slots, lack))
            tokens = max(1, self.loops.fifos[at].tokens)
            slots[at] = ceil(slots[at] + (lack.share - shares[lack.end, lack.begin]) * tokens)
        return tuple(slots)

    def _largest_loop(self, shares: Matrix, cycles: Matrix, batches: Matrix, latency: Matrix) -> _Lack | None:
        """Return the way that makes the slowest loop, and the share of all work that it must hold to slow nothing down. None if
        no loop is slow."""
        end, begin = divmod(int(cycles.argmax()), len(cycles))
        if cycles[end, begin] <= TOLERANCE * self.base:
            return None
        number = batches[end, begin]
        if not np.isfinite(number):
            return _Lack(begin, end, float(latency[end, begin] / self.base))
        wanted = ceil(number * latency[end, begin] / (TOLERANCE * self.base))
        return _Lack(begin, end, (wanted + 1e-6) / float(number))

    def _held_up(self, shares: Matrix) -> _Lack | None:
        """Return a way around a port that holds too little to go on with while the memory refreshes itself, None if there is
        none."""
        memory = self.graph.machine.memory
        if not isinstance(memory, Hbm2Memory):
            return None
        gap = REFRESH_GAP / float(clock_ratio(memory.clock_ghz, self.graph.machine.clock_ghz)) / self.base
        for read in self.graph.load.reads:
            if read.most * gap < 1:  # it reads nothing, or less than one line in that time
                continue
            wanted = gap - (memory.prefetch / read.most if read.in_order else 0.0)
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

    def _cheapest(self, way: Sequence[int]) -> int:
        """Return the FIFO of a way that takes the fewest bytes for the same share of all work."""
        return min(way, key=lambda at: self.bytes[at] * self.loops.fifos[at].tokens)


def edge_depths(graph: Graph, of_node: Sequence[int], choice: DepthChoice, first: Sequence[float]) -> Mapping[Edge, int]:
    """Return the depths of the FIFOs of a graph that need more slots than the `first` that they have. `of_node` has the stage of
    each node."""
    deeper = {
        (fifo.target, fifo.input): int(slots)
        for fifo, slots, before in zip(choice.loops.fifos, choice.slots(first), first, strict=True)
        if slots > before
    }
    return {
        Edge(node.name, k): deeper[stage, k]
        for node, stage in zip(graph.nodes, of_node, strict=True)
        for k in range(len(node.inputs))
        if (stage, k) in deeper
    }


def fifo_bytes(graph: Graph, of_node: Sequence[int], loops: FifoLoops) -> tuple[int, ...]:
    """Return the bytes of a token of each FIFO between stages, in all lanes together. `of_node` has the stage of each node."""
    total: dict[tuple[int, int], int] = {}
    for node, stage in zip(graph.nodes, of_node, strict=True):
        for k, port in enumerate(node.inputs):
            total[stage, k] = total.get((stage, k), 0) + token_bytes(graph, port)
    return tuple(total.get((fifo.target, fifo.input), 1) for fifo in loops.fifos)
