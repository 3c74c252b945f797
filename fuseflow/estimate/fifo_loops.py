"""The cycles that FIFOs of few slots cost: a node whose tokens come together again on two ways waits for the slots of the short one.

Example: the residual of a decoder goes around two products. A row of it is 49 tokens, and the first result of the row's products comes
18,900 cycles after the row. A FIFO of 64 slots holds one such row, so that a row begins every 18,900 cycles, though either product takes
9,400. With 128 slots two rows are under way at once, and a row begins every 9,450.

So for every two nodes with two ways between them, the first can be ahead of the second by as many tokens as the way with the fewest slots
holds, and the second begins a batch of work as late as the longest way lets it. The theory is that of marked graphs: a loop of a long way,
forward, and of the slots of a short one, backward, takes its latency divided by the batches that it holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fuseflow.estimate.flows import Number

Matrix = npt.NDArray[np.float64]
NOWHERE = -1


class Fifo(NamedTuple):
    """A FIFO between two nodes, which are numbers, and the tokens that go through it in the whole run."""

    source: int
    target: int
    input: int
    tokens: Number


@dataclass(frozen=True, slots=True, eq=False)
class Ways:
    """The ways between nodes, by the node where they end and that where they begin.

    `share` is the part of all work that the way with the fewest slots holds, infinite where there is no way. `latency` are the cycles from
    a token at the beginning of the longest way to the first that follows from it at the end. `batches` is how many batches the nodes on
    that way hold back, the fewest of them, and infinite if they hold nothing back. `last` is the FIFO at the end of the way with the fewest
    slots.
    """

    share: Matrix
    latency: Matrix
    batches: Matrix
    last: npt.NDArray[np.int64]


class Loop(NamedTuple):
    """The loop that takes most cycles: where its two ways begin and end, how many batches it may hold, and the cycles of all batches."""

    begin: int
    end: int
    held: float
    cycles: float


@dataclass(frozen=True, slots=True, eq=False)
class FifoLoops:
    """A graph as its ways compare. Nodes are numbered in order.

    `batches` is how often each node emits what it holds back, `emitted` the tokens that it emits then, and `buffers` how many batches it
    holds; all are 0 for a node that emits as it goes. `inside` are the tokens that a node holds while it waits for the memory.
    """

    fifos: tuple[Fifo, ...]
    batches: tuple[Number, ...]
    emitted: tuple[Number, ...]
    buffers: tuple[int, ...]
    inside: tuple[Number, ...]

    def ways(self, latency: Sequence[float], occupied: Sequence[Number], slots: Sequence[Number]) -> Ways:
        """Return the ways, given the latency of each node, the cycles of its firings, and the slots of each FIFO."""
        count = len(self.batches)
        inputs: list[list[int]] = [[] for _ in range(count)]
        for at, fifo in enumerate(self.fifos):
            inputs[fifo.target].append(at)
        share, longest = np.full((count, count), np.inf), np.full((count, count), -np.inf)
        fewest, upstream = np.full((count, count), np.inf), np.zeros((count, count))
        last = np.full((count, count), NOWHERE)
        for node in range(count):
            for at in inputs[node]:
                source, _, _, tokens = self.fifos[at]
                own = slots[at] / max(1, tokens)
                held = share[source] + self._held(source)
                held[source] = 0.0
                shorter = held + own < share[node]
                share[node][shorter], last[node][shorter] = (held + own)[shorter], at
                batches = self.batches[source]
                arrival = longest[source] + latency[source] + (upstream[source] / batches if batches else 0.0)
                arrival[source] = 0.0
                whole = np.minimum(fewest[source], batches) if batches else fewest[source].copy()
                whole[source] = np.inf
                later = arrival > longest[node]
                longest[node][later], fewest[node][later] = arrival[later], whole[later]
                work = np.full(count, float(self.emitted[source])) if batches else upstream[source].copy()
                work[source] = 0.0
                upstream[node] = np.maximum(upstream[node], np.where(np.isfinite(arrival), work, 0.0))
            upstream[node] = np.where(np.isfinite(longest[node]), np.maximum(upstream[node], occupied[node]), 0.0)
        return Ways(share, longest, fewest, last)

    def _held(self, node: int) -> float:
        """Return the part of all work that a node holds itself."""
        if self.batches[node]:
            return self.buffers[node] / self.batches[node]
        return self.inside[node]


def loop_cycles(ways: Ways) -> Matrix:
    """Return the cycles of all batches for every loop, by its end and its beginning; 0 where there is none.

    A loop of which a node holds batches back takes whole batches, and one at least: where no batch fits, a machine deepens the FIFO.
    """
    with np.errstate(all="ignore"):
        whole = np.isfinite(ways.batches)
        batches = np.where(whole, ways.batches, 1.0)
        held = np.maximum(1.0, np.floor(ways.share * batches + 1e-9))
        cycles = np.where(whole, batches * ways.latency / held, ways.latency / ways.share)
        return np.where(np.isfinite(ways.share) & np.isfinite(ways.latency), cycles, 0.0)


def largest_loop(ways: Ways) -> Loop | None:
    """Return the loop that takes most cycles, None if there is none."""
    cycles = loop_cycles(ways)
    if not cycles.size or not cycles.any():
        return None
    end, begin = divmod(int(cycles.argmax()), len(cycles))
    held = ways.share[end, begin] * (ways.batches[end, begin] if np.isfinite(ways.batches[end, begin]) else 1.0)
    return Loop(begin, end, float(held), float(cycles[end, begin]))


__all__ = ["Fifo", "FifoLoops", "Loop", "Ways", "largest_loop", "loop_cycles"]
