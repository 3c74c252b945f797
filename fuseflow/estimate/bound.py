"""The cycles of a graph: the bounds, and the cycles that are expected from them together.

The *compute* bound is the cycles that the busiest node takes for its firings; no run takes fewer. The *imbalance* is how much longer the
largest stages of all batches take than that node. The *memory* bound is the bytes moved, divided by the bandwidth of the memory. The
*control* bound is the time that nodes wait for their first tokens, and the time that is left after their last: latencies along the graph,
and whole workspaces where a reduction emits nothing before its fiber ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from fuseflow.estimate.flows import Number
from fuseflow.estimate.graph_counts import GraphCounts
from fuseflow.estimate.memory_bound import memory_answers
from fuseflow.samml import nodes as n

Limit = Literal["compute", "imbalance", "control", "memory"]
"""The names of the bounds."""


@dataclass(frozen=True, slots=True)
class Bound:
    """The bounds of a graph, in cycles.

    `node` is the busiest node. `refresh` is the share of the time in which the memory does not answer because it refreshes itself.
    """

    compute: Number
    control: Number
    memory: Number
    node: str
    refresh: float = 0.0
    imbalance: Number = 0

    @property
    def cycles(self) -> Number:
        """The cycles that the graph is expected to take."""
        return (max(self.compute + self.imbalance, self.memory) + self.control) / (1 - self.refresh)

    @property
    def limit(self) -> Limit:
        """The largest of the bounds."""
        bounds: dict[Limit, Number] = {
            "compute": self.compute,
            "imbalance": self.imbalance,
            "memory": self.memory,
            "control": self.control,
        }
        return max(bounds, key=lambda name: bounds[name])


@dataclass(frozen=True, slots=True, eq=False)
class Pipeline:
    """A graph as its latencies and the cycles of its nodes add up along it, whatever machine it runs on. Nodes are numbered in order.

    `producers` are the nodes that each node reads. `batches` is how often each node emits what it holds back, and `emitted` the tokens
    that it emits then. Both are 0 for a node that emits as it goes. `answers` are the answers of the memory for which an element waits
    on its way through the node, one after the other.
    """

    names: tuple[str, ...]
    producers: tuple[tuple[int, ...], ...]
    batches: tuple[Number, ...]
    emitted: tuple[Number, ...]
    answers: tuple[int, ...]

    @classmethod
    def of(cls, counts: GraphCounts) -> Pipeline:
        graph, declared = counts.graph, counts.graph.declared
        place = {node.name: at for at, node in enumerate(graph.nodes)}
        inner = [numbers.inputs[0].inner if numbers.inputs else 0 for numbers in counts.nodes]
        return cls(
            tuple(place),
            tuple(tuple(dict.fromkeys(place[port.node] for port in node.inputs)) for node in graph.nodes),
            tuple(max(1, number) if node.holds_back else 0 for node, number in zip(graph.nodes, inner, strict=True)),
            tuple(
                numbers.outputs[-1].tokens if isinstance(node, n.Workspace) else 0
                for node, numbers in zip(graph.nodes, counts.nodes, strict=True)
            ),
            tuple(memory_answers(node, declared) for node in graph.nodes),
        )

    def control(self, latency: Sequence[int], occupied: Sequence[Number], emission_takes_time: bool) -> Number:
        """Return the cycles of the longest way through the graph beyond those of the busiest node.

        `occupied` are the cycles that the firings of each node take. Where emission takes no time, the nodes behind a workspace wait for
        its contents only as long as their own work on these takes.
        """
        count = len(self.names)
        starts, upstream = [0.0] * count, list(occupied)
        for at, producers in enumerate(self.producers):
            for before in producers:
                upstream[at] = max(upstream[at], upstream[before])
                batches = self.batches[before]
                start = starts[before] + latency[before] + (upstream[before] / batches if batches else 0)
                starts[at] = max(starts[at], start)
        ends, downstream = [0.0] * count, [0.0] * count
        for at in reversed(range(count)):
            batches = self.batches[at]
            behind = max(downstream[at], self.emitted[at] if emission_takes_time else 0)  # the work on what it emits
            remaining = latency[at] + ends[at] + (behind / batches if batches else 0)
            work = behind if batches else max(behind, occupied[at])
            for before in self.producers[at]:
                ends[before] = max(ends[before], remaining)
                downstream[before] = max(downstream[before], work)
        return max(map(sum, zip(starts, occupied, ends, strict=True))) - max(occupied)
