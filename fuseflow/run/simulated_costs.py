"""What a simulated graph occupies, and the events that its energy is made of."""

from __future__ import annotations

from fuseflow.energy.counts import DramEvents, EnergyCounts, NodeEvents, energy_counts, with_preloads
from fuseflow.machine.machine import Machine
from fuseflow.memory.settings import IdealMemory
from fuseflow.resources.graph_resources import HeldEntries, Resources, graph_resources
from fuseflow.samml.nodes import Edge, Graph
from fuseflow.sim import Simulation


def simulated_counts(graph: Graph, machine: Machine, simulation: Simulation, resources: Resources) -> EnergyCounts:
    """Return the events of a run that take energy, given the resources of its graph. Raises `EnergyError` for a machine with
    `rules: comal`."""
    events = NodeEvents(
        {node.name: node.firings for node in simulation.nodes},
        simulation.values,
        {Edge(edge.node, edge.input): edge.tokens for edge in simulation.edges},
    )
    dram = dram_events(machine, simulation)
    if simulation.memory is not None:
        dram = with_preloads(dram, graph, simulation.traffic)
    held, slots = simulated_entries(simulation), simulated_slots(graph, machine, simulation)
    return energy_counts(graph, machine, events, dram, resources.area, simulation.cycles, held, slots)


def dram_events(machine: Machine, simulation: Simulation) -> DramEvents:
    """Return the events of the DRAM in a run: the bits on its buses, or those of requested elements if the memory answers at
    once. Bits that are loaded into the configuration count, too. A reuse buffer keeps the lines that its port fetches. A
    scratchpad reads and writes whole words, and the lines that are moved between it and the memory."""
    memory = simulation.memory
    if memory is None or isinstance(machine.memory, IdealMemory):
        return DramEvents(0, 8 * (sum(row.bytes for row in simulation.traffic) + simulation.config_bytes))
    moved = memory.bus_bytes
    rows, line = memory.total("activations"), 8 * machine.memory.line
    buffered = [statistics for port, statistics in memory.ports if port.buffer]
    fetches, hits = sum(port.fetches for port in buffered), sum(port.hits for port in buffered)
    word = 0 if machine.scratchpad is None else 8 * machine.scratchpad.bytes_a_cycle
    put = word * memory.words("write") + 8 * memory.transferred_bytes("read")
    got = word * memory.words("read") + 8 * memory.transferred_bytes("write")
    return DramEvents(rows, 8 * (moved + simulation.config_bytes), line * fetches + put, line * hits + got)


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
