"""How many cycles a graph takes: three bounds, and what is expected of them together.

*Compute*: the firings of the busiest node. No run is below it. *Memory*: the bytes moved over what memory can move. *Control*: what
a node waits for its first tokens, and what is left to do when it is through with its last: latencies along the graph, and whole
workspaces where a reduction gives nothing before its fiber ends.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import Literal

from fuseflow.estimate.flows import Flow, Number
from fuseflow.estimate.roofline import memory_latency, refresh_share
from fuseflow.samml import nodes as n
from fuseflow.sim.machine.machine import Machine
from fuseflow.sim.machine.timing import node_timing

Limit = Literal["compute", "control", "memory"]


@dataclass(frozen=True, slots=True)
class Bound:
    """In cycles. `node` is the busiest; `refresh` the share of the time in which the memory gives nothing, since it refreshes itself;
    `cycles` what is expected of all of them."""

    compute: Number
    control: Number
    memory: Number
    node: str
    refresh: float = 0.0

    @property
    def cycles(self) -> Number:
        return (max(self.compute, self.memory) + self.control) / (1 - self.refresh)

    @property
    def limit(self) -> Limit:
        """The largest of the three."""
        named: dict[Limit, Number] = {"compute": self.compute, "memory": self.memory, "control": self.control}
        return max(named, key=lambda name: named[name])


def bound(
    graph: n.Graph, machine: Machine, occupied: Mapping[str, Number], flows: Mapping[n.Port, Flow], bytes_: Number, peak: float
) -> Bound:
    """`occupied`: the cycles that the firings of each node take; `bytes_`: those that memory moves, `peak` of them in a cycle."""
    types, declared = graph.types(), graph.declared
    latency = {
        node.name: node_timing(node, graph, machine, [types[p].tile for p in node.inputs if types[p].kind == "val"])[0]
        + memory_latency(node, declared.get(getattr(node, "tensor", "")), machine)
        for node in graph.nodes
    }
    batches = {node.name: _batch_count(node, flows) for node in graph.nodes}
    starts, upstream = dict[str, Number](), dict[str, Number]()
    for node in graph.nodes:
        above = [port.node for port in node.inputs]
        upstream[node.name] = max([occupied[node.name], *(upstream[name] for name in above)])
        starts[node.name] = max(
            (starts[name] + latency[name] + _batch_cycles(upstream[name], batches[name]) for name in above), default=0
        )
    ends: dict[str, Number] = dict.fromkeys(starts, 0)
    downstream: dict[str, Number] = dict.fromkeys(starts, 0)
    for node in reversed(graph.nodes):
        behind = max(downstream[node.name], _emission_cycles(node, flows, machine))  # what is done with what it gives
        left = latency[node.name] + ends[node.name] + _batch_cycles(behind, batches[node.name])
        for name in {port.node for port in node.inputs}:
            ends[name] = max(ends[name], left)
            downstream[name] = max(downstream[name], behind, 0 if batches[node.name] else occupied[node.name])
    busiest = max(graph.nodes, key=lambda node: occupied[node.name]).name
    whole = max(starts[name] + occupied[name] + ends[name] for name in starts)
    memory = 0.0 if peak == inf else bytes_ / peak
    return Bound(occupied[busiest], whole - occupied[busiest], memory, busiest, refresh_share(machine) if bytes_ else 0.0)


def _batch_count(node: n.Node, flows: Mapping[n.Port, Flow]) -> Number:
    """How often a node gives something: once for each workspace, or as it goes (0)."""
    if node.holds_back:
        return max(1, flows[node.inputs[0]].inner)
    return 0


def _emission_cycles(node: n.Node, flows: Mapping[n.Port, Flow], machine: Machine) -> Number:
    """Cycles in which a workspace is written out, of all of them; by the rules of `comal` that takes none."""
    if isinstance(node, n.Workspace) and machine.rules != "comal":
        return flows[n.Port(node.name, len(node.port_names()) - 1)].tokens
    return 0


def _batch_cycles(work: Number, batches: Number) -> Number:
    return work / batches if batches else 0
