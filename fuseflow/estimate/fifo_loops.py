"""The cycles that FIFOs of few slots cost: a node whose tokens come together again on two ways waits for the slots of the short one.

Example: the residual of a decoder goes around two products. A row of it is 49 tokens, and the first result of the row's products comes
18,900 cycles after the row. A FIFO of 64 slots holds one such row, so that a row begins every 18,900 cycles, though either product takes
9,400. With 128 slots two rows are under way at once, and a row begins every 9,450.

So for every two nodes with two ways between them, the first can be ahead of the second by as many tokens as the way with the
fewest slots holds, and the second begins a batch of work as late as the longest way lets it. This is the theory of marked graphs:
a loop of a long way, forward, and of the slots of a short one, backward, takes its latency divided by the batches that it holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fuseflow.estimate.stream_flow import Number, largest

Matrix = npt.NDArray[np.float64]


class Fifo(NamedTuple):
    """A FIFO from one node to an input of another. Nodes are numbers. `tokens` go through it in the whole run, and take `hops` cycles
    longer than without a distance."""

    source: int
    target: int
    input: int
    tokens: Number
    hops: int = 0


class LineWait(NamedTuple):
    """The `cycles` that a token waits in a node for a line of the memory, and those of all lines of the run together (`in_all`)."""

    cycles: float = 0.0
    in_all: Number = 0.0


class LongestWays(NamedTuple):
    """The longest ways between nodes, by the nodes where they end and where they begin.

    `latency` are the cycles from a token at the beginning to the first that follows from it at the end, minus infinity where there is no
    way. `answers` is the part of it for which a line of the memory is awaited, and `lines` that part for all lines together: tokens
    in one line wait for it once. `batches` is how many batches the nodes on that way hold back, the fewest of them, and infinite if
    they hold nothing back. `drained` are the cycles in which the node at the end takes all batches.
    """

    latency: Matrix
    answers: Matrix
    lines: Matrix
    batches: Matrix
    drained: Matrix


@dataclass(frozen=True, slots=True, eq=False)
class BusyLoops:
    """The loops of FIFOs of a graph: the `shares` of all work that ways hold, the longest ways, and the cycles that each loop
    takes for all batches, 0 where there is no loop. Each is a matrix by the end and the beginning of the way."""

    shares: Matrix
    longest: LongestWays
    cycles: Matrix

    @classmethod
    def of(cls, shares: Matrix, longest: LongestWays) -> BusyLoops:
        return cls(shares, longest, loop_cycles(shares, longest))

    def of_graph(self, at: int) -> BusyLoops:
        """Return the loops of graph number `at`, given the loops of many graphs."""
        ways = self.longest
        longest = LongestWays(*(matrix[at] for matrix in ways))
        return BusyLoops(self.shares[at], longest, self.cycles[at])


@dataclass(frozen=True, slots=True, eq=False)
class FifoLoops:
    """A graph in which the FIFOs on different ways between two nodes are compared. Nodes are numbers, and `fifos` are ordered by
    target.

    `batches` is how often each node emits what it holds back, 0 for a node that emits as it goes, and `emitted` the tokens that
    it emits then. `held` is the share of all work that each node holds itself: its batches, or elements that wait for the memory.

    Numbers may be arrays, with one for each of `many` graphs that differ in these alone. Matrices have one more axis then.
    """

    fifos: tuple[Fifo, ...]
    batches: tuple[Number, ...]
    emitted: tuple[Number, ...]
    held: tuple[float, ...]
    many: tuple[int, ...] = ()

    def shares(self, slots: Sequence[Number]) -> Matrix:
        """Return, by the end and the beginning of a way, the smallest share of all work that any such way holds, given the slots
        of each FIFO. It is infinite where there is no way."""
        fewest = self._matrix(np.inf)
        behind = np.empty_like(fewest)  # the share that a way holds up to the FIFO behind its last node
        node = 0
        for fifo, room in zip(self.fifos, slots, strict=True):
            while node < fifo.target:
                np.add(fewest[node], self.held[node], out=behind[node])
                behind[node, node] = 0.0
                node += 1
            np.minimum(fewest[node], behind[fifo.source] + room / largest((1, fifo.tokens)), out=fewest[node])
        return fewest

    def _matrix(self, number: float) -> Matrix:
        """Return a matrix with this number for every two nodes."""
        return np.full((len(self.batches), len(self.batches), *self.many), number)

    def work(self, occupied: Sequence[Number]) -> Matrix:
        """Return, by the end and the beginning of a way, the cycles for which the busiest node works behind the last workspace on
        it, up to its end and with it, given the cycles of the firings of each node."""
        most = self._matrix(-np.inf)
        behind = np.empty_like(most)
        node = 0
        for fifo in (*self.fifos, None):
            end = len(self.batches) if fifo is None else fifo.target
            while node < end:
                reached = most[node] >= 0
                np.maximum(most[node], occupied[node], out=most[node], where=reached)
                behind[node] = np.where(reached, self.emitted[node], -np.inf) if np.any(self.batches[node]) else most[node]
                behind[node, node] = 0.0
                node += 1
            if fifo is not None:
                np.maximum(most[node], behind[fifo.source], out=most[node])
        return most

    def longest(
        self, latency: Sequence[float], waits: Sequence[LineWait], work: Matrix, occupied: Sequence[Number]
    ) -> LongestWays:
        """Return the longest way between every two nodes, given the latency of each node and its waits for lines, the work on the ways,
        and the cycles of the firings of each node."""
        arrival, fewest, drained = self._matrix(-np.inf), self._matrix(np.inf), self._matrix(0.0)
        answers, lines = self._matrix(0.0), self._matrix(0.0)
        awaited, in_all = np.empty_like(answers), np.empty_like(lines)
        for end, cycles in enumerate(occupied):
            drained[end] = cycles
        behind, whole = np.empty_like(arrival), np.empty_like(arrival)
        node = 0
        for fifo in self.fifos:
            while node < fifo.target:
                batches = self.batches[node]
                np.add(arrival[node], latency[node], out=behind[node])
                whole[node] = fewest[node]
                if np.any(batches):
                    behind[node] += np.maximum(work[node], 0.0) / batches
                    np.minimum(whole[node], batches, out=whole[node])
                np.add(answers[node], waits[node].cycles, out=awaited[node])
                np.add(lines[node], waits[node].in_all, out=in_all[node])
                behind[node, node] = latency[node] - waits[node].cycles + 1  # it fires a cycle after a slot is free
                whole[node, node], awaited[node, node], in_all[node, node] = np.inf, 0.0, 0.0
                node += 1
            reached = behind[fifo.source] + fifo.hops
            later = reached > arrival[node]
            np.copyto(arrival[node], reached, where=later)
            for own, before in ((fewest, whole), (answers, awaited), (lines, in_all)):
                np.copyto(own[node], before[fifo.source], where=later)
        return LongestWays(arrival, answers, lines, fewest, drained)


def hidden_work(shares: Matrix, stage: int) -> float:
    """Return the share of all work that other stages can go on with while `stage` stands still, given the shares that ways
    hold."""
    before, after = np.isfinite(shares[stage]), np.isfinite(shares[:, stage])
    before[stage] = False
    around = shares[after][:, before]
    return float(around.min()) if around.size else np.inf


def loop_cycles(shares: Matrix, longest: LongestWays) -> Matrix:
    """Return the cycles of all batches for every loop, by its end and its beginning; 0 where there is none.

    A loop with a node that holds batches back has whole ones under way, and one at least: where none fits, a machine doubles the
    depth of the FIFO until one does. A part of the next batch that fits beside them does not wait for the end to take that part.

    Example: a softmax of rows of 41 tokens has the sum of a row 64 cycles behind the last token of the row. A FIFO of 64 slots holds 23
    tokens of the next row, too. So a row begins 64 + 41 - 23 cycles after the row before it.
    """
    with np.errstate(all="ignore"):
        whole = np.isfinite(longest.batches)
        batches = np.where(whole, longest.batches, 1.0)
        room = shares * batches
        room = np.where(room < 1, room * 2.0 ** np.ceil(-np.log2(room)), room)
        under_way = np.floor(room + 1e-9)
        latency = batches * longest.latency
        ahead = np.minimum((room - under_way) * longest.drained, latency)
        once = np.maximum(0.0, longest.answers / shares - longest.lines)
        cycles = np.where(whole, (latency - ahead) / under_way, latency / shares - once)
    cycles[~(np.isfinite(shares) & np.isfinite(longest.latency))] = 0.0
    return cycles


def fewest_batches(shares: Matrix, longest: LongestWays) -> float:
    """Return the fewest batches for which the FIFOs of a loop have room, infinite if no node of a loop holds batches back. A
    machine that deepens no FIFO stands still with less than one: the long way emits only after the whole batch."""
    loops = np.isfinite(shares) & np.isfinite(longest.latency) & np.isfinite(longest.batches)
    return float((shares[loops] * longest.batches[loops]).min(initial=np.inf))
