"""The cost of a region in one order after another. What its tables have in common is computed once, and no graph is made.

The cost is exactly that of the graph (`graphs.region_graph`): the nodes are the same, and their costs are added in the same order.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from fuseflow.estimate import Estimate, TensorStatistics
from fuseflow.estimate.expected.cost import NodeCost, node_cost, total_cost
from fuseflow.estimate.expected.stream_shapes import ExpectedStream, output_shapes
from fuseflow.fusion import FusedRegion
from fuseflow.lower.graphs import readable_statistics, region_graph
from fuseflow.lower.state import LoweringState
from fuseflow.samml.node import operand_bits
from fuseflow.samml.nodes import Port, Primitive, StreamType, TensorDecl, TensorReader
from fuseflow.table.builder import TableBuilder
from fuseflow.table.cells import Cells
from fuseflow.table.memo import TableMemo
from fuseflow.table.results import write_results
from fuseflow.tile_ops import TileShape


class CostedNode(NamedTuple):
    """A node with its cost. `upstream` has the bits of the node and of all nodes that it needs, directly or indirectly."""

    bit: int
    upstream: int
    cost: NodeCost


@dataclass(slots=True)
class SharedNodes:
    """The nodes of tables that read the same tensors, with the shapes of their streams and their costs. The `types` of streams and the bits
    of their elements are kept only if a tensor is `tiled`, since they serve to tell what an operator does with a tile."""

    statistics: Mapping[str, TensorStatistics]
    tiled: bool
    cells: Cells = field(default_factory=lambda: Cells(recorder=None))
    shapes: dict[Port, ExpectedStream] = field(default_factory=dict)
    types: dict[Port, StreamType] = field(default_factory=dict)
    element_bits: dict[Port, int] = field(default_factory=dict)
    costed: dict[str, CostedNode] = field(default_factory=dict)

    def cost(self, region: FusedRegion, memo: TableMemo) -> Estimate:
        """Return the cost of the graph of a region in its order. `memo` has what its tables share, with these nodes. Raises `FusionError`
        if no table can be made in this order.
        """
        tensors, writes = write_results(TableBuilder(region, memo))
        nodes, used, costed = self.cells.nodes, self.cells.used, self.costed
        for name in used:
            if name not in costed:
                costed[name] = self._costed(name, nodes[name], tensors, 1 << len(costed))
        ends = [self._costed(node.name, node, tensors, 0) for node in writes]
        needed = 0
        for end in ends:
            needed |= end.upstream
        costs = [node.cost for name in used if (node := costed[name]).bit & needed]
        costs += [end.cost for end in ends]
        return total_cost(costs, sorted({cost.tensor for cost in costs if cost.tensor}))

    def _costed(self, name: str, node: Primitive, tensors: Mapping[str, TensorDecl], bit: int) -> CostedNode:
        """Return a node with its cost, once the nodes that it reads have theirs."""
        inputs = [self.shapes[port] for port in node.inputs]
        outputs = output_shapes(node, inputs, tensors, self.statistics)
        for k, shape in enumerate(outputs):
            self.shapes[Port(name, k)] = shape
        upstream = bit
        for port in node.inputs:
            upstream |= self.costed[port.node].upstream
        tiles, bits = self._tiles(name, node, tensors)
        return CostedNode(bit, upstream, node_cost(node, inputs, outputs, tiles, bits, tensors, self.statistics))

    def _tiles(self, name: str, node: Primitive, tensors: Mapping[str, TensorDecl]) -> tuple[list[TileShape], int]:
        """Return the tiles of the inputs of a node and the bits of their elements, and keep the types of its outputs if they matter."""
        if not self.tiled:
            return [()] * len(node.inputs), operand_bits(node, {})
        types, bits = [self.types[port] for port in node.inputs], operand_bits(node, self.element_bits)
        made = tensors[node.tensor].element_bits if isinstance(node, TensorReader) else bits
        for k, type in enumerate(node.typed(types, tensors)):
            self.types[Port(name, k)] = type
            if type.kind == "val":
                self.element_bits[Port(name, k)] = made
        return [type.tile for type in types], bits


@dataclass(frozen=True, slots=True)
class OrderCosts:
    """The costs of one region in the orders that are compared, and in other ways to fuse it. What tables have in common is computed once:
    their nodes if they read the same copies, and the steps that make them if they differ in their order alone.

    Where the schedule asks for public primitives, each graph is made, since its public form costs something else.
    """

    state: LoweringState
    nodes: dict[Hashable, SharedNodes] = field(default_factory=dict)
    memos: dict[Hashable, TableMemo] = field(default_factory=dict)

    def cost(self, region: FusedRegion) -> Estimate:
        """Return the cost of the graph of a region in its order. Raises `FusionError` if no table can be made in it."""
        if self.state.partitioned.schedule.primitives == "public":
            return region_graph(self.state, region).cost
        copies = tuple([(copy.name, copy.source, copy.order(region.order)) for copy in region.copies])
        if copies not in self.nodes:
            tiled = any(tensor.tile for tensor in region.declared.values())
            self.nodes[copies] = SharedNodes(readable_statistics(self.state, region), tiled)
        return self.nodes[copies].cost(region, self._memo(region, copies))

    def _memo(self, region: FusedRegion, copies: Hashable) -> TableMemo:
        """Return what the tables of a region have in common with others."""
        trees, settings = (region.trees, copies), (region.locate, region.rescan, region.repeat)
        if (trees, settings) not in self.memos:
            if trees not in self.memos:
                self.memos[trees] = TableMemo.of(region, self.nodes[copies].cells)
            self.memos[trees, settings] = self.memos[trees].of_other_steps()
        return self.memos[trees, settings]
