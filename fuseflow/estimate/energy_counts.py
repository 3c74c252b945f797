"""The events of a graph that take energy, for an estimate: counted where the streams of the graph are counted, else expected."""

from __future__ import annotations

from fuseflow.energy.counts import DramEvents, EnergyCounts, NodeEvents, energy_counts, with_preloads
from fuseflow.energy.energy import PARTS
from fuseflow.estimate.flows import Number
from fuseflow.estimate.graph_counts import GraphCounts
from fuseflow.estimate.graph_work import Work
from fuseflow.estimate.held_entries import held_entries
from fuseflow.estimate.memory_bound import request_bytes
from fuseflow.estimate.memory_load import MemoryLoad
from fuseflow.estimate.node_work import node_values
from fuseflow.machine.machine import Machine
from fuseflow.memory.mapping import FIELD_WIDTHS
from fuseflow.memory.settings import Hbm2Memory, IdealMemory
from fuseflow.samml.nodes import Edge, Workspace

ROW_BYTES = 1 << (FIELD_WIDTHS["byte"] + FIELD_WIDTHS["column"])
"""The bytes of a row of a pseudo channel of HBM2."""


def estimated_counts(
    counts: GraphCounts, work: Work, load: MemoryLoad, machine: Machine, area: int | None, cycles: Number
) -> EnergyCounts:
    """Return the events of a graph that is expected to take `cycles` on `area`. Leakage follows from the cycles, and the rows
    that a DRAM opens are expected, so neither is counted, nor are hits of reuse buffers. Raises `EnergyError` for `rules:
    comal`."""
    graph, numbers = counts.graph, tuple(zip(counts.graph.nodes, counts.nodes, strict=True))
    events = NodeEvents(
        {node.name: node.firings for node in work.nodes},
        {node.name: node_values(node, own.inputs) for node, own in numbers if node.operator},
        {Edge(node.name, k): flow.tokens for node, own in numbers for k, flow in enumerate(own.inputs)},
    )
    is_ideal = isinstance(machine.memory, IdealMemory)
    expected = {"leakage"} if is_ideal else {"leakage", "dram"}
    held = held_entries(counts)
    uncounted = any(isinstance(node, Workspace) and node.name not in held for node in graph.nodes)  # it may be SRAM or not
    if uncounted or (not is_ideal and any(tensor.buffer for tensor in graph.tensors)):
        expected.add("workspaces")
    dram = _dram(work, load, machine)
    if not is_ideal:
        dram = with_preloads(dram, graph, work.traffic)
    parts = frozenset(expected if work.exact else PARTS)
    return energy_counts(graph, machine, events, dram, area, cycles, held, expected=parts)


def _dram(work: Work, load: MemoryLoad, machine: Machine) -> DramEvents:
    """Return the expected events of the DRAM. Lines in order open a row once for all its bytes, and each jump opens one."""
    memory = machine.memory
    if isinstance(memory, IdealMemory):
        return DramEvents(0, 8 * (sum(row.bytes for row in work.traffic) + work.config_bytes))
    moved = (load.lines_read + load.written) * request_bytes(memory)
    rows = moved / ROW_BYTES + load.jumps if isinstance(memory, Hbm2Memory) else 0
    line, buffered = 8 * memory.line, [read for read in load.reads if read.asked > read.most]
    fetches, hits = sum(read.lines for read in buffered), sum((read.asked - read.most) * read.ports for read in buffered)
    return DramEvents(rows, 8 * (moved + work.config_bytes), line * fetches, line * hits)
