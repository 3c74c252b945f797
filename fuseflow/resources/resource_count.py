"""The lanes, ports and bytes that each node and each FIFO of a graph occupies on a machine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from types import MappingProxyType
from typing import Literal, TypeAlias, assert_never

from fuseflow.machine.machine import Machine
from fuseflow.memory.buffer_assignment import buffered_ports, preloaded_readers, preloading_nodes
from fuseflow.memory.settings import TimedMemory
from fuseflow.samml import nodes as n
from fuseflow.samml.coordinate_bounds import stream_bounds
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
        """Return the bytes for an entry that a node holds back, in all buffers of the node: two that alternate, or one that is
        filled once."""
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
        """The bytes of the reuse buffers of each node, and of the preloaded tensors that it keeps. There are none where the
        memory answers at once."""
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
        """Return each FIFO and its slots, or None if a FIFO is unbounded. `slots` are depths by edge, or None for those of the
        graph and the machine."""
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
