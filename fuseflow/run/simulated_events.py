"""The events that take energy, of a graph that was simulated. The simulation knows the events of nodes and memory."""

from __future__ import annotations

from fuseflow.energy.counts import DramEvents, EnergyCounts, NodeEvents, energy_counts, with_preloads
from fuseflow.machine.machine import Machine
from fuseflow.memory.settings import IdealMemory
from fuseflow.resources.graph_resources import Resources
from fuseflow.run.simulated_resources import simulated_entries, simulated_slots
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
