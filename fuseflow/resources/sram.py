"""The memories on the chip that are SRAM: all memories of more than 64 words. Smaller memories are made of gates, or are register
files."""

from __future__ import annotations

from collections.abc import Mapping

from fuseflow.resources.area import AreaCount
from fuseflow.resources.graph_resources import HeldEntries
from fuseflow.samml import nodes as n
from fuseflow.tensors.levels.base import bytes_of

MOST_SMALL_WORDS = 64
"""The most words of a memory that is no SRAM. A word is a slot of a FIFO, or an entry of a workspace."""


def entries_of(areas: AreaCount, node: n.Primitive, held: Mapping[str, HeldEntries]) -> HeldEntries:
    """Return the most entries that a node holds at once: those in `held`, or all coordinates that its levels can have."""
    return held[node.name] if node.name in held else HeldEntries(areas.count.most_entries(node), False)


def holds_sram(areas: AreaCount, node: n.Primitive, held: Mapping[str, HeldEntries]) -> bool:
    """Return whether a node holds entries back in SRAM. `held` has the most entries of nodes that were counted."""
    return bool(areas.count.entry_bits(node)) and entries_of(areas, node, held).most > MOST_SMALL_WORDS


def has_sram_fifo(areas: AreaCount, edge: n.Edge) -> bool:
    """Return whether the FIFO of an edge is SRAM at the depth with which a run starts. A FIFO without a bound is not."""
    depth = dict(areas.count.graph.depths).get(edge, areas.count.machine.first_depth)
    return depth is not None and depth > MOST_SMALL_WORDS


def sram_bits(areas: AreaCount, held: Mapping[str, HeldEntries], slots: Mapping[n.Edge, int] | None) -> int:
    """Return the bits of all memories of a graph that are SRAM: workspaces, reuse buffers, preloaded tensors, FIFOs, and the
    links of ports. `held` and `slots` are as in `graph_resources`."""
    count = areas.count
    bits = 8 * count.buffer_bytes()
    for node in count.graph.nodes:
        if holds_sram(areas, node, held):
            bits += 8 * count.buffers(node) * entries_of(areas, node, held).most * bytes_of(1, count.entry_bits(node))
        if (link := areas.link_slots(node)) > MOST_SMALL_WORDS:
            bits += areas.ports(node) * link * areas.link_form.width
    for edge, depth in count.fifos(slots) or ():
        if depth > MOST_SMALL_WORDS:
            bits += depth * areas.fifo_form(count.graph.by_name[edge.node], edge.input).width
    return bits
