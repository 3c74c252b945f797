"""The cycles of a graph: three bounds, and the cycles that are expected from them together.

The *compute* bound is the cycles that the busiest node takes for its firings; no run takes fewer. The *memory* bound is the bytes moved,
divided by the bandwidth of the memory. The *control* bound is the time that nodes wait for their first tokens, and the time that is left
after their last: latencies along the graph, and whole workspaces where a reduction emits nothing before its fiber ends.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import Literal

from fuseflow.estimate.flows import Flow, Number
from fuseflow.estimate.memory_bound import memory_latency, refresh_share
from fuseflow.samml import nodes as n
from fuseflow.sim.machine.machine import Machine
from fuseflow.sim.machine.timing import node_timing

Limit = Literal["compute", "control", "memory"]
"""The names of the three bounds."""


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

    @property
    def cycles(self) -> Number:
        """The cycles that the graph is expected to take."""
        return (max(self.compute, self.memory) + self.control) / (1 - self.refresh)

    @property
    def limit(self) -> Limit:
        """The largest of the three bounds."""
        bounds: dict[Limit, Number] = {"compute": self.compute, "memory": self.memory, "control": self.control}
        return max(bounds, key=lambda name: bounds[name])


def bound(
    graph: n.Graph, machine: Machine, occupied: Mapping[str, Number], flows: Mapping[n.Port, Flow], bytes_: Number, peak: float
) -> Bound:
    """Compute the bounds of a graph.

    `occupied` are the cycles that the firings of each node take. `bytes_` are the bytes that the memory moves, `peak` of them in a cycle.
    """
    types, declared = graph.types(), graph.declared
    latency = {
        node.name: node_timing(node, graph, machine, [types[p].tile for p in node.inputs if types[p].kind == "val"])[0]
        + memory_latency(node, declared.get(getattr(node, "tensor", "")), machine)
        for node in graph.nodes
    }
    batches = {node.name: _batch_count(node, flows) for node in graph.nodes}
    starts, upstream = dict[str, Number](), dict[str, Number]()
    for node in graph.nodes:
        producers = [port.node for port in node.inputs]
        upstream[node.name] = max([occupied[node.name], *(upstream[name] for name in producers)])
        starts[node.name] = max(
            (starts[name] + latency[name] + _batch_cycles(upstream[name], batches[name]) for name in producers), default=0
        )
    ends: dict[str, Number] = dict.fromkeys(starts, 0)
    downstream: dict[str, Number] = dict.fromkeys(starts, 0)
    for node in reversed(graph.nodes):
        work_behind = max(downstream[node.name], _emission_cycles(node, flows, machine))  # the work on what it emits
        remaining = latency[node.name] + ends[node.name] + _batch_cycles(work_behind, batches[node.name])
        for name in {port.node for port in node.inputs}:
            ends[name] = max(ends[name], remaining)
            downstream[name] = max(downstream[name], work_behind, 0 if batches[node.name] else occupied[node.name])
    busiest = max(graph.nodes, key=lambda node: occupied[node.name]).name
    longest = max(starts[name] + occupied[name] + ends[name] for name in starts)
    memory = 0.0 if peak == inf else bytes_ / peak
    return Bound(occupied[busiest], longest - occupied[busiest], memory, busiest, refresh_share(machine) if bytes_ else 0.0)


def _batch_count(node: n.Node, flows: Mapping[n.Port, Flow]) -> Number:
    """Return how often a node emits what it holds back, once for each workspace. It is 0 for a node that emits as it goes."""
    if node.holds_back:
        return max(1, flows[node.inputs[0]].inner)
    return 0


def _emission_cycles(node: n.Node, flows: Mapping[n.Port, Flow], machine: Machine) -> Number:
    """Return the cycles that emitting the contents of all workspaces of a node takes. By the rules of `comal` that takes none."""
    if isinstance(node, n.Workspace) and machine.rules != "comal":
        return flows[n.Port(node.name, len(node.port_names()) - 1)].tokens
    return 0


def _batch_cycles(work: Number, batches: Number) -> Number:
    return work / batches if batches else 0
