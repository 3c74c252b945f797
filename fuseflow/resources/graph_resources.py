"""The resources of a graph, added up node by node and FIFO by FIFO.

The product of two values of 32 bits, behind FIFOs of 64 slots, takes one lane of `mul` and 2 x 64 x 4 bytes of FIFO.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from fuseflow.machine.machine import Machine
from fuseflow.resources.amounts import Resources
from fuseflow.resources.area import AreaCount, memory_area
from fuseflow.resources.resource_count import ResourceCount, token_bytes
from fuseflow.samml import nodes as n
from fuseflow.tensors.levels.base import bytes_of


class HeldEntries(NamedTuple):
    """The most entries that a node holds at once. They were counted in a run, or (not `exact`) are an upper bound."""

    most: int
    exact: bool = True


def graph_resources(
    graph: n.Graph,
    machine: Machine,
    held: Mapping[str, HeldEntries],
    slots: Mapping[n.Edge, int] | None = None,
) -> Resources:
    """Return the resources that a verified graph occupies on a machine.

    `held` has the most entries that each node holds at once. For a node that `held` lacks, they are the product of the sizes of
    its levels. `slots` are the depths of FIFOs in a run, or the most slots that were in use where FIFOs are unbounded. Without
    `slots`, the depths are those of the graph and the machine.
    """
    count = ResourceCount(graph, machine)
    areas, area = AreaCount(count), 0
    lanes, port, stream = Counter[str](), 0, 0
    workspace, bound = 0, False
    for node in graph.nodes:
        node_lanes = count.lanes(node)
        lanes.update(node_lanes)
        stream += node.role != "source" and not node_lanes
        port += count.ports(node)
        area += areas.node(node)
        entry_bits = count.entry_bits(node)
        if entry_bits:
            entries = held[node.name] if node.name in held else HeldEntries(count.most_entries(node), False)
            workspace += count.buffers(node) * entries.most * bytes_of(1, entry_bits)
            bound |= not entries.exact
    fifos, buffer = count.fifos(slots), count.buffer_bytes()
    return Resources(
        lanes["mul"],
        lanes["add"],
        lanes["special"],
        port,
        stream,
        None
        if fifos is None
        else sum(depth * token_bytes(graph, graph.by_name[edge.node].inputs[edge.input]) for edge, depth in fifos),
        workspace,
        buffer,
        None if fifos is None else area + memory_area(workspace + buffer) + sum(areas.fifo(*fifo) for fifo in fifos),
        fifo_grows=slots is None and machine.fifo_depth == "auto",
        workspace_bound=bound,
    )


def arithmetic_lanes(graph: n.Graph, machine: Machine) -> Mapping[str, Mapping[str, int]]:
    """Return the number of lanes of arithmetic of each node, by component, for the nodes that have any."""
    count = ResourceCount(graph, machine)
    lanes = {node.name: count.lanes(node) for node in graph.nodes}
    return {name: of_node for name, of_node in lanes.items() if of_node}
