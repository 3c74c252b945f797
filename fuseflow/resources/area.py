"""The area of a graph as a circuit, in gate equivalents, from the table of areas of units, without synthesis.

For example, a multiplier of 32 bits takes as much as 6,566 NAND gates, and the FIFO of 8 slots before it 2,921. `fuseflow area`
makes the gates of a graph. The table has means of areas from that command for small models, so both agree within some percent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from math import prod
from types import MappingProxyType
from typing import Literal, NamedTuple, TypeAlias, assert_never

from fuseflow.firing_rules.rules import KIND_BITS
from fuseflow.machine.machine import Machine
from fuseflow.machine.timing import node_timing
from fuseflow.memory.buffer_assignment import buffered_ports, preloaded_readers, preloading_nodes
from fuseflow.memory.settings import IdealMemory, TimedMemory
from fuseflow.ops import operator
from fuseflow.resources.gate_areas import GATE_EQUIVALENT, MEMORY_BIT
from fuseflow.resources.unit_areas import FIFO, OPERATOR, PORT, SHALLOW_SLOTS
from fuseflow.samml import nodes as n
from fuseflow.samml.graph import LEAST_INDEX_BITS, index_bits, stream_bounds
from fuseflow.samml.node import operand_bits
from fuseflow.tensors.levels.base import WORD_BITS, bytes_of
from fuseflow.tile_ops import TILE_OPERATORS, flops, work_count

Arithmetic: TypeAlias = Literal["mul", "add", "special"]
"""The components that are lanes of arithmetic."""

ARITHMETIC: Mapping[str, Arithmetic] = MappingProxyType(
    {"add": "add", "logic": "add", "mul": "mul", "div": "special", "transcendental": "special"}
)
"""The component on which the operators of each latency class run. A comparison is a subtraction that keeps only the sign."""


@dataclass(frozen=True)  # with places for values that are computed once
class ResourceCount:
    """The nodes and FIFOs of a graph on a machine, with their resources. Coordinates and references have 32 bits."""

    graph: n.Graph
    machine: Machine
    _ports: dict[str, int] = field(default_factory=dict, compare=False)

    @cached_property
    def bounds(self) -> Mapping[n.Port, int]:
        """The exclusive upper bounds of the coordinates of every stream."""
        return stream_bounds(self.graph)

    def lanes(self, node: n.Node) -> dict[str, int]:
        """Return the number of lanes of arithmetic of a node, by component. An operator without FLOPs, such as a choice, has
        none.

        An operator on tiles has a lane for each element, or multiply-accumulate, that is computed at once: for all of a tile, or
        for as many as the machine computes in a cycle if these are fewer.
        """
        if not node.operator:
            return {}
        types, is_fold = self.graph.types(), node.grain == "fold"
        tiles = [types[port].tile for port in node.inputs if types[port].kind == "val"]
        if not is_fold and not flops(node.operator, tiles):
            return {}
        work = prod(tiles[-1]) if is_fold else work_count(node.operator, tiles)
        at_once = self.machine.lanes.of(operand_bits(node, self.graph.element_bits)) if any(tiles) else 1
        lanes = min(-(-work // at_once), self.machine.tile_macs)
        component = ARITHMETIC[node.unit(self.graph.declared).latency]
        row = TILE_OPERATORS.get(node.operator)
        multiplies_and_adds = row is not None and row.flops_per_work == 2
        return {component: lanes, "add": lanes} if multiplies_and_adds else {component: lanes}

    def ports(self, node: n.Primitive) -> int:
        """Return the number of ports of a node: the arrays that it reads from the memory, or writes there."""
        if node.name not in self._ports:
            self._ports[node.name] = self._arrays(node)
        return self._ports[node.name]

    def _arrays(self, node: n.Primitive) -> int:
        declared = self.graph.declared
        if not isinstance(node, n.TensorUser) or not node.asks_memory(declared):
            return 0
        tensor = declared[node.tensor]
        match node:
            case n.Load() if node.name in self.preloaded and isinstance(self.machine.memory, TimedMemory):
                return self.preloading.get(node.name, 0)
            case n.Load() | n.WriteValues():
                return 1
            case n.Scan():
                return sum(bool(array.scanned or array.entry) for array in tensor.stored_arrays(node.level))
            case n.Locate():
                return 1
            case n.WriteLevel():
                return len(tensor.stored_arrays(node.level))
            case unknown:
                assert_never(unknown)

    def entry_bits(self, node: n.Primitive) -> int:
        """Return the bits of an entry that a node holds back: its coordinates and its value; 0 if the node holds nothing back."""
        if isinstance(node, n.Locate) and node.keeps(self.graph.declared):
            return WORD_BITS
        if not isinstance(node, n.Workspace):
            return 0
        coordinates = len(node.port_names()) - 1
        return WORD_BITS * coordinates + token_bits(self.graph, node.inputs[-1])

    def entry_bytes(self, node: n.Primitive) -> int:
        """Return the bytes for an entry that a node holds back, in two buffers that alternate or one that is filled once."""
        is_alternating = isinstance(node, n.Workspace) and self.machine.rules != "comal"
        return (2 if is_alternating else 1) * bytes_of(1, self.entry_bits(node))

    @cached_property
    def preloaded(self) -> Mapping[str, int]:
        """The bytes of a preloaded tensor that a node keeps, by node, for the nodes that keep one."""
        return preloaded_readers(self.graph)

    @cached_property
    def preloading(self) -> Mapping[str, int]:
        """The number of ports that preload a tensor, by the node to which the ports belong."""
        return preloading_nodes(self.graph)

    @cached_property
    def node_buffers(self) -> Mapping[str, int]:
        """The bytes of each node's reuse buffers and kept preloaded tensors. There are none where the memory answers at once."""
        memory, sizes = self.machine.memory, Counter[str]()
        if isinstance(memory, TimedMemory):
            for (node, _), lines in buffered_ports(self.graph, memory.line).items():
                sizes[node] += lines * memory.line
            for node, size in self.preloaded.items():
                sizes[node] += -(-size // memory.line) * memory.line
        return sizes

    def buffer_bytes(self) -> int:
        """Return the bytes of all reuse buffers, and of all preloaded tensors."""
        return sum(self.node_buffers.values())

    def most_entries(self, node: n.Primitive) -> int:
        """Return the most entries that a node can hold at once: all coordinates of its levels."""
        if isinstance(node, n.Locate):
            return self.graph.declared[node.tensor].size(node.level)
        return prod(self.bounds[port] for port in node.ports[:-1])

    def fifos(self, slots: Mapping[n.Edge, int] | None) -> list[tuple[n.Edge, int]] | None:
        """Return each FIFO and its slots, None if unbounded, by the given depths or those of the graph and the machine."""
        depths = dict(self.graph.depths) if slots is None else slots
        fifos = []
        for node in self.graph.nodes:
            for k in range(len(node.inputs)):
                edge = n.Edge(node.name, k)
                depth = depths.get(edge, self.machine.first_depth)
                if depth is None:
                    return None
                fifos.append((edge, depth))
        return fifos


def token_bits(graph: n.Graph, port: n.Port) -> int:
    """Return the bits of an element of a stream, without the bits that distinguish an element from a stop."""
    type = graph.types()[port]
    return graph.element_bits[port] * prod(type.tile) if type.kind == "val" else WORD_BITS


def token_bytes(graph: n.Graph, port: n.Port) -> int:
    """Return the bytes of a slot of a FIFO of a stream."""
    return bytes_of(1, token_bits(graph, port))


BIT = MEMORY_BIT / GATE_EQUIVALENT
"""The area of a bit of an on-chip memory."""


CLASS_UNIT: Mapping[str, str] = MappingProxyType(
    {"add": "add", "mul": "mul", "div": "div", "transcendental": "exp", "logic": "where"}
)
"""For each latency class, the operator whose unit's area is used for operators that were never synthesized."""

BRANCHING = n.Fork | n.Merge | n.Join
"""The primitives whose rules occur once for each branch."""

SHALLOW_TILES = 2
"""The most slots of a FIFO of tiles that are flip-flops."""


class FifoForm(NamedTuple):
    """The form of a FIFO: the bits of a token, its cycles in registers before it, and the most slots that are flip-flops."""

    width: int
    latency: int
    shallow: int = SHALLOW_SLOTS


@lru_cache(maxsize=4096)
def fifo_area(form: FifoForm, depth: int) -> int:
    """Return the area of a FIFO with `depth` slots. Up to `form.shallow` slots are flip-flops; the slots of a deeper FIFO are in a memory.

    >>> fifo_area(FifoForm(34, 1), 8) > fifo_area(FifoForm(34, 1), 16)
    True
    """
    bits, is_deep = form.width * depth, depth > form.shallow
    words = FIFO.deep + bits * BIT if is_deep else FIFO.slot_bit * bits
    address = max(1, (depth - 1).bit_length())
    return round(FIFO.fixed + FIFO.address_bit * address + words + FIFO.latency_bit * (form.latency - 1) * (form.width + 1))


def branches(node: n.Primitive) -> int:
    """Return the number of lanes that a node deals or merges, or of sides that it joins; 1 for another node."""
    match node:
        case n.Fork():
            return len(node.port_names())
        case n.Merge():
            return len(node.inputs)
        case n.Join():
            return len(node.sides())
        case n.Root() | n.Scan() | n.Range() | n.Align() | n.Repeat() | n.Pointwise() | n.Reduce():
            return 1
        case n.Accumulate() | n.Permute() | n.Drop() | n.Select() | n.Flatten() | n.SplitLevel() | n.TensorWriter():
            return 1
        case unknown:
            assert_never(unknown)


@dataclass(frozen=True)  # with a place for a value that is computed once
class AreaCount(ResourceCount):
    """The nodes and FIFOs of a graph on a machine, with their resources, and their areas as whole numbers of gate equivalents."""

    @cached_property
    def index_bits(self) -> int:
        """The bits of coordinates and references."""
        return index_bits(self.graph, self.bounds)

    def control(self, node: n.Primitive) -> int:
        """Return the area of the rules of a node."""
        return self._rules(node) * branches(node)

    def branch(self, node: n.Primitive) -> int:
        """Return the area of the rules for each branch of a node that deals lanes or joins sides, and 0 for another node."""
        return self._rules(node) if isinstance(node, BRANCHING) else 0

    def _rules(self, node: n.Primitive) -> int:
        """Return the area of one branch of the rules of a node, which has more at a memory that takes time."""
        return node.area.at_memory if self.timed_ports(node) else node.area.at_once

    def timed_ports(self, node: n.Primitive) -> int:
        """Return the number of ports of a node at a memory that takes time, 0 where the memory answers at once."""
        return 0 if self.machine.memory.model == "ideal" else self.ports(node)

    def node(self, node: n.Primitive) -> int:
        """Return the area of a node: of its rules, its lanes of arithmetic, and its ports at a memory that takes time."""
        lanes = max(self.lanes(node).values(), default=1)
        arithmetic = lanes * sum(map(unit_area, operator_units(node))) if node.operator else 0
        slots = self.link_slots(node)
        link = fifo_area(self.link_form, slots) if slots else 0
        return self.control(node) + arithmetic + self.timed_ports(node) * (PORT + link)

    def link_slots(self, node: n.Primitive) -> int:
        """Return the slots of the link in a node that reads, from the process that makes requests to the process that waits for
        answers. The link has room for the elements of all unanswered lines. The number is 0 where nothing waits."""
        memory = self.machine.memory
        if isinstance(memory, IdealMemory) or not isinstance(node, n.TensorReader):
            return 0
        return memory.outstanding * (8 * memory.line // WORD_BITS)

    @property
    def link_form(self) -> FifoForm:
        """The form of the link of a port: a token has an element and the number of its line."""
        return FifoForm(2 * (KIND_BITS + self.index_bits), 1)

    def token_bits(self, port: n.Port) -> int:
        """Return the bits of a token of a stream, with the bits of its kind."""
        is_value = self.graph.types()[port].kind == "val"
        return KIND_BITS + (token_bits(self.graph, port) if is_value else self.index_bits)

    def fifo_form(self, reader: n.Node, k: int) -> FifoForm:
        """Return the form of the FIFO at input `k` of a node. Tiles are in their slots already during the latency. References of a root are
        all zero, so their kind is enough. A repeat uses only kinds and levels of its signal."""
        graph, port, types = self.graph, reader.inputs[k], self.graph.types()
        writer, bits = graph.by_name[port.node], self.token_bits(port)
        if types[port].tile:
            return FifoForm(bits, 1, SHALLOW_TILES)
        if isinstance(writer, n.Root):
            bits = KIND_BITS
        elif isinstance(reader, n.Repeat) and k == 1:
            bits = KIND_BITS + LEAST_INDEX_BITS
        tiles = [types[read].tile for read in writer.inputs if types[read].kind == "val"]
        return FifoForm(bits, node_timing(writer, graph, self.machine, tiles).latency)


def memory_area(size: float) -> int:
    """Return the area of `size` bytes of memory on the chip."""
    return round(8 * size * BIT)


def unit_area(name: str) -> int:
    """Return the area of the unit of an operator. If it was never synthesized, the area of its class (`CLASS_UNIT`) is used."""
    return OPERATOR[name if name in OPERATOR else CLASS_UNIT[operator(name).unit]]


def operator_units(node: n.Node) -> tuple[str, ...]:
    """Return the names of the units of one lane of a node, as in the table. A product of tiles multiplies and adds; another
    operator that exists on tiles only has the unit of its class."""
    if node.grain == "fold":
        return (f"fold_{node.operator}",)
    row = TILE_OPERATORS.get(node.operator)
    if row is None:
        return (node.operator,)
    return ("mul", "add") if row.flops_per_work == 2 else (CLASS_UNIT[row.unit],)
