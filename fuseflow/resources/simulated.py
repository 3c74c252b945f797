"""The resources of a graph that was simulated: what nodes held back, and how deep its FIFOs were, is known then."""

from __future__ import annotations

from fuseflow.resources.amounts import Resources
from fuseflow.resources.graph_resources import HeldEntries, graph_resources
from fuseflow.samml.nodes import Edge, Graph
from fuseflow.sim import Machine, Simulation


def simulated_resources(graph: Graph, machine: Machine, simulation: Simulation) -> Resources:
    """Return what a graph occupied in a run. An unbounded FIFO counts with the most slots that were in use at once: with as many, the run
    is the same.
    """
    held = {node.name: HeldEntries(node.workspace) for node in simulation.nodes if node.workspace is not None}
    kept = {name: HeldEntries(count) for name, count in simulation.kept.items()}
    depth = machine.first_depth
    slots = {Edge(edge.node, edge.input): edge.peak if depth is None else depth for edge in simulation.edges}
    return graph_resources(graph, machine, held | kept, {**slots, **dict(graph.depths), **simulation.depths})
