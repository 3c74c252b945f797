"""The resources of a graph, added up node by node and FIFO by FIFO.

The product of two values of 32 bits, behind FIFOs of 64 slots, takes one lane of `mul` and 2 x 64 x 4 bytes of FIFO.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, NamedTuple

from fuseflow.machine.machine import Machine
from fuseflow.resources.area import AreaCount, ResourceCount, fifo_area, memory_area, token_bytes
from fuseflow.samml import nodes as n

MOST_SMALL_WORDS = 64
"""The most words (slots of a FIFO, or entries of a workspace) of a memory of gates or a register file, which is no SRAM."""


@dataclass(frozen=True, slots=True)
class Resources:
    """The resources of a graph. A region has the whole accelerator while it runs, so the resources of regions do not add up.

    `mul`, `add` and `special` are lanes of floating-point arithmetic: multipliers, adders (they subtract and compare, too), and
    units for division, roots and transcendental functions. `port` is the number of ports of the memory, one for each array that a
    node reads or writes. `stream` is the number of nodes without arithmetic. `fifo` is the bytes of all FIFOs, or None if a FIFO
    is unbounded. `workspace` is the bytes that nodes hold back, and `buffer` the bytes of reuse buffers. `area` is the area of
    the circuit in gate equivalents, from the table of areas of units, or None if a FIFO is unbounded.

    `fifo_grows` says that a run may deepen FIFOs: `fifo` and `area` are then lower bounds. `workspace_bound` says that no run
    counted the entries that are held back: `workspace` is then an upper bound.

    `tiles` has the tiles of each kind that the graph takes on an array, by the name of their limit in a budget; empty without an array.
    """

    mul: int = 0
    add: int = 0
    special: int = 0
    port: int = 0
    stream: int = 0
    fifo: int | None = 0
    workspace: int = 0
    buffer: int = 0
    area: int | None = 0
    fifo_grows: bool = False
    workspace_bound: bool = False
    tiles: tuple[tuple[str, int], ...] = ()

    def amount(self, name: str) -> int | None:
        """Return the amount of a component, or of a kind of tiles; None for a FIFO without a bound."""
        amount: int | None = getattr(self, name) if name in COMPONENTS else dict(self.tiles).get(name, 0)
        return amount

    @classmethod
    def most_of(cls, regions: Iterable[Resources]) -> Resources:
        """Return the most of each component over regions that run one after the other."""
        regions = tuple(regions)
        kinds = dict.fromkeys(name for region in regions for name, _ in region.tiles)
        amounts: dict[str, list[Any]] = {name: [getattr(region, name) for region in regions] for name in COMPONENTS}
        most: dict[str, Any] = {name: None if None in each else max(each, default=0) for name, each in amounts.items()}
        return cls(
            **most,
            fifo_grows=any(region.fifo_grows for region in regions),
            workspace_bound=any(region.workspace_bound for region in regions),
            tiles=tuple((name, max(dict(region.tiles).get(name, 0) for region in regions)) for name in kinds),
        )

    def to_json(self) -> dict[str, Any]:
        """Return the components as a JSON object, with `fifo_grows`, `workspace_bound` and `tiles` where they are set."""
        values = {**asdict(self), "tiles": dict(self.tiles)}
        return {name: value for name, value in values.items() if name in COMPONENTS or value}


COMPONENTS: tuple[str, ...] = tuple(field.name for field in fields(Resources) if field.type in ("int", "int | None"))
"""The names of the components, as budgets and tables have them."""


class HeldEntries(NamedTuple):
    """The most entries that a node holds at once. They were counted in a run, or (not `exact`) are an upper bound."""

    most: int
    exact: bool = True

    @classmethod
    def of(cls, count: ResourceCount, node: n.Primitive, held: Mapping[str, HeldEntries]) -> HeldEntries:
        """Return the entries in `held` of a node, or all coordinates that its levels can have."""
        return held[node.name] if node.name in held else cls(count.most_entries(node), False)


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
    count, area = AreaCount(graph, machine), 0
    lanes, port, stream = Counter[str](), 0, 0
    workspace, bound = 0, False
    for node in graph.nodes:
        node_lanes = count.lanes(node)
        lanes.update(node_lanes)
        stream += node.role != "source" and not node_lanes
        port += count.ports(node)
        area += count.node(node)
        if entry_bytes := count.entry_bytes(node):
            entries = HeldEntries.of(count, node, held)
            workspace += entry_bytes * entries.most
            bound |= not entries.exact
    fifos, buffer, fifo_bytes, total = count.fifos(slots), count.buffer_bytes(), None, None
    if fifos is not None:
        ends = [(graph.by_name[edge.node], edge.input, depth) for edge, depth in fifos]
        fifo_bytes = sum(depth * token_bytes(graph, node.inputs[k]) for node, k, depth in ends)
        total = (
            area + memory_area(workspace + buffer) + sum(fifo_area(count.fifo_form(node, k), depth) for node, k, depth in ends)
        )
    return Resources(
        lanes["mul"],
        lanes["add"],
        lanes["special"],
        port,
        stream,
        fifo_bytes,
        workspace,
        buffer,
        total,
        fifo_grows=slots is None and machine.fifo_depth == "auto",
        workspace_bound=bound,
    )


def arithmetic_lanes(graph: n.Graph, machine: Machine) -> Mapping[str, Mapping[str, int]]:
    """Return the number of lanes of arithmetic of each node, by component, for the nodes that have any."""
    count = ResourceCount(graph, machine)
    lanes = {node.name: count.lanes(node) for node in graph.nodes}
    return {name: of_node for name, of_node in lanes.items() if of_node}


def holds_sram(areas: AreaCount, node: n.Primitive, held: Mapping[str, HeldEntries]) -> bool:
    """Return whether a node holds entries back in SRAM. `held` has the most entries of nodes that were counted."""
    return bool(areas.entry_bits(node)) and HeldEntries.of(areas, node, held).most > MOST_SMALL_WORDS


def has_sram_fifo(areas: AreaCount, edge: n.Edge) -> bool:
    """Return whether the FIFO of an edge is SRAM at the depth with which a run starts. A FIFO without a bound is not."""
    depth = dict(areas.graph.depths).get(edge, areas.machine.first_depth)
    return depth is not None and depth > MOST_SMALL_WORDS


def sram_bits(areas: AreaCount, held: Mapping[str, HeldEntries], slots: Mapping[n.Edge, int] | None) -> int:
    """Return the bits of all memories of a graph that are SRAM: workspaces, reuse buffers, preloaded tensors, FIFOs, and the
    links of ports. `held` and `slots` are as in `graph_resources`."""
    bits = 8 * areas.buffer_bytes()
    for node in areas.graph.nodes:
        if holds_sram(areas, node, held):
            bits += 8 * areas.entry_bytes(node) * HeldEntries.of(areas, node, held).most
        if (link := areas.link_slots(node)) > MOST_SMALL_WORDS:
            bits += areas.timed_ports(node) * link * areas.link_form.width
    for edge, depth in areas.fifos(slots) or ():
        if depth > MOST_SMALL_WORDS:
            bits += depth * areas.fifo_form(areas.graph.by_name[edge.node], edge.input).width
    return bits
