"""The resources of a graph that was simulated. The simulation knows the entries that nodes held back, and the depths of FIFOs."""

from __future__ import annotations

from fuseflow.machine.machine import Machine
from fuseflow.resources.graph_resources import HeldEntries, Resources, graph_resources
from fuseflow.samml.nodes import Edge, Graph
from fuseflow.sim import Simulation


def simulated_resources(graph: Graph, machine: Machine, simulation: Simulation) -> Resources:
    """Return the resources that a graph occupied in a run."""
    return graph_resources(graph, machine, simulated_entries(simulation), simulated_slots(graph, machine, simulation))


def simulated_entries(simulation: Simulation) -> dict[str, HeldEntries]:
    """Return the most entries that each node held back in a run."""
    held = {node.name: HeldEntries(node.workspace) for node in simulation.nodes if node.workspace is not None}
    return held | {name: HeldEntries(count) for name, count in simulation.kept.items()}


def simulated_slots(graph: Graph, machine: Machine, simulation: Simulation) -> dict[Edge, int]:
    """Return the slots of each FIFO in a run. An unbounded FIFO counts with the most slots that were in use at once: at that
    depth, the run is the same."""
    depth = machine.first_depth
    slots = {Edge(edge.node, edge.input): edge.peak if depth is None else depth for edge in simulation.edges}
    return {**slots, **dict(graph.depths), **simulation.depths}
