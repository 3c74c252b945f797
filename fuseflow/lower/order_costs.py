"""The cost of a region in one order after another. Nodes that its tables share are computed once, and no graph is made.

The cost is exactly the cost of the graph (`graphs.region_graph`): the nodes are the same, and their costs are added in the same
order. A table is not finished if the nodes that it needs so far cost more than a limit.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import NamedTuple

from fuseflow.costs import Estimate, TensorStatistics
from fuseflow.costs.cost import NodeCost, expected_rank, node_cost, total_cost
from fuseflow.costs.stream_shapes import ExpectedStream, output_shapes, result_statistics
from fuseflow.fusion import FusedRegion
from fuseflow.fusion.order_search import CostBound
from fuseflow.lower.graphs import readable_statistics, region_graph
from fuseflow.lower.state import LoweringState, PricedTable
from fuseflow.samml.node import TensorUser, with_names, work
from fuseflow.samml.nodes import Port, Primitive, StreamType, TensorDecl, TensorReader, WriteLevel, WriteValues
from fuseflow.table import TableNodes
from fuseflow.table.builder import TableBuilder
from fuseflow.table.memo import TableMemo
from fuseflow.table.node_interning import Cells, NodeNames
from fuseflow.table.results import write_results

UNTILED_BITS = 32
"""The bits of elements if no tensor is tiled: then they do not matter, since an operator takes a scalar of any width in one
cycle."""
ROUNDING = 1 - 1e-9
"""The factor by which a bound is lowered, since it adds the costs of nodes in another order than the exact cost does."""


class _AboveLimit(Exception):
    """A table costs more than its limit, however it goes on. `rank` is a bound of its rank."""

    def __init__(self, rank: float) -> None:
        self.rank = rank


class PricedStream(NamedTuple):
    """The facts about a stream that decide the costs of its readers. `bits` is the width of its elements, and `type` has the tile
    of its values if a tensor is tiled: the work of an operator on a tile follows from both."""

    type: StreamType
    shape: ExpectedStream
    bits: int = UNTILED_BITS


@dataclass(slots=True)
class PricedCells(Cells):
    """The cells of tables that read the same tensors. The cost of each node is computed as soon as it is made.

    `statistics` and `tensors` describe the tensors that are read. `tiled` says whether any of them is tiled. `costs` has the
    costs of nodes in the order in which they were made, and `upstream` a bit for each node that a node needs, directly or
    indirectly, and for the node itself: bit n is for `costs[n]`.

    Streams are numbered: `numbers` has the number of each port, and equal streams have the same number. So nodes that do the same
    with equal streams are priced once: `priced` has them. `used` has the name that each node wants, and `ambiguous` has the nodes
    for which several names are wanted.

    `counted` has the bits of the nodes that the table in progress is known to need, and `bound` their cycles, firings and bytes.
    A table whose rank is beyond the `limit` is given up.
    """

    statistics: Mapping[str, TensorStatistics] = field(default_factory=dict)
    tensors: Mapping[str, TensorDecl] = field(default_factory=dict)
    tiled: bool = False
    streams: list[PricedStream] = field(default_factory=list)
    numbers: dict[Port, int] = field(default_factory=dict)
    priced: dict[Hashable, tuple[NodeCost, tuple[int, ...]]] = field(default_factory=dict)
    costs: list[NodeCost] = field(default_factory=list)
    upstream: dict[str, int] = field(default_factory=dict)
    ambiguous: set[str] = field(default_factory=set)
    limit: float = math.inf
    counted: int = 0
    bound: tuple[float, float, float] = (0.0, 0.0, 0.0)
    _number: dict[PricedStream, int] = field(default_factory=dict)

    def price(self, region: FusedRegion, memo: TableMemo, limit: float) -> Estimate | CostBound:
        """Return the cost of the graph of a region in its order, or a bound of it, if its rank is above `limit`. `memo` has what
        its tables share, with these cells. Raises `FusionError` if no table can be made in this order."""
        try:
            tensors, writes = self._filled(region, memo, limit)
        except _AboveLimit as above:
            return CostBound(above.rank)
        return self._total(tensors, writes)

    def table(self, region: FusedRegion, memo: TableMemo) -> PricedTable:
        """Return the nodes of the table of a region in its order, as `build_table` names them. `memo` is as for `price`."""
        tensors, writes = self._filled(region, memo, math.inf)
        fresh = NodeNames()
        names = {name: fresh.fresh(wanted) for name, wanted in self.used.items()}
        shown = TableNodes(
            region=region.name,
            order=tuple([v for v in region.order if v not in memo.single]),
            nodes=tuple([_renamed(self.nodes[name], names[name], names) for name in self.used]),
            writes=tuple([_renamed(node, node.name, names) for node in writes]),
            tensors=tuple([tensors[name] for name in sorted(tensors)]),
            outputs=tuple([result.name for result in region.results]),
        )
        return PricedTable(shown, self._total(tensors, writes), self._written(tensors, writes))

    def _filled(self, region: FusedRegion, memo: TableMemo, limit: float) -> tuple[dict[str, TensorDecl], tuple[Primitive, ...]]:
        """Fill the table of a region in its order, as `write_results` does. Raises `_AboveLimit` if its rank is above the limit."""
        self.limit, self.counted, self.bound = limit, 0, (0.0, 0.0, 0.0)
        self.tensors = memo.read_tensors
        return write_results(TableBuilder(region, memo))

    def _written(self, tensors: Mapping[str, TensorDecl], writes: Iterable[Primitive]) -> dict[str, TensorStatistics]:
        """Return the statistics of the tensors that `writes` write, whose nodes are in the order of the levels."""
        levels: dict[str, list[ExpectedStream]] = {}
        for node in writes:
            if isinstance(node, WriteLevel):
                levels.setdefault(node.tensor, []).append(self._inputs(node)[0].shape)
            elif isinstance(node, WriteValues):  # a scalar has no levels
                levels.setdefault(node.tensor, [])
        return {name: result_statistics(tensors[name], shapes, self.statistics) for name, shapes in levels.items()}

    def _total(self, tensors: Mapping[str, TensorDecl], writes: Sequence[Primitive]) -> Estimate:
        """Return the cost of the table that was filled, whose results the nodes `writes` write."""
        ends = [self._cost(node, self._inputs(node), [], tensors) for node in writes]
        digits = bin(self.needed(writes))[:1:-1]  # digit n says whether node n is needed
        costs = [self.costs[n] for n in map(int, self.used) if digits[n : n + 1] == "1"]
        costs += ends
        return total_cost(costs, sorted({cost.tensor for cost in costs if cost.tensor}))

    def use(self, name: str, wanted: str) -> None:
        """Record that the table uses a node, under a wanted name, and whether several names are wanted for it."""
        self.used.setdefault(name, wanted)
        if wanted != self.nodes[name].name:
            self.ambiguous.add(name)

    def use_all(self, used: Mapping[str, str]) -> None:
        """Record that the table uses the nodes of a step, each under a wanted name: the first name that is wanted stays."""
        if used.keys().isdisjoint(self.ambiguous):
            self.used.update(used)
        else:
            for name, wanted in used.items():
                self.used.setdefault(name, wanted)

    def claim(self, stage: str) -> None:
        """Do nothing: a table that is only priced needs no stages."""

    def needed(self, writes: Iterable[Primitive]) -> int:
        """Return the bits of all nodes that the writers of the results need, directly or indirectly."""
        bits = 0
        for port in chain.from_iterable(node.inputs for node in writes):
            bits |= self.upstream[port.node]
        return bits

    def needs(self, port: Port) -> None:
        """Add the nodes that a stream needs to the bound. Raises `_AboveLimit` if the table costs too much with them."""
        new = self.upstream[port.node] & ~self.counted
        if self.limit == math.inf or not new:
            return
        self.counted |= new
        costs, (cycles, firings, bytes) = self.costs, self.bound
        while new:
            lowest = new & -new
            busy, fired, _, _, moved = costs[lowest.bit_length() - 1]
            cycles, firings, bytes = busy if busy > cycles else cycles, firings + fired, bytes + moved
            new ^= lowest
        self.bound = cycles, firings, bytes
        if (rank := ROUNDING * expected_rank(cycles, firings, bytes)) > self.limit:
            raise _AboveLimit(rank)

    def _added(self, node: Primitive) -> tuple[Port, ...]:
        name, bits, upstream = str(len(self.nodes)), 1 << len(self.costs), self.upstream
        self.nodes[name] = node
        for source, _ in node.inputs:
            bits |= upstream[source]
        upstream[name] = bits
        cost, outputs = self._priced(node)
        self.costs.append(cost)
        ports = tuple([Port(name, k) for k in range(len(outputs))])
        for port, number in zip(ports, outputs, strict=True):
            self.numbers[port] = number
            self.types[port] = self.streams[number].type
        return ports

    def _priced(self, node: Primitive) -> tuple[NodeCost, tuple[int, ...]]:
        """Return the cost of a node and the numbers of its output streams, the same for equal nodes on equal streams."""
        numbers = self.numbers
        key = work(node), *[numbers[port] for port in node.inputs]
        priced = self.priced.get(key)
        if priced is None:
            inputs = self._inputs(node)
            outputs = self._outputs(node, inputs)
            cost = self._cost(node, inputs, [stream.shape for stream in outputs], self.tensors)
            priced = self.priced[key] = cost, tuple([self._numbered(stream) for stream in outputs])
        return priced

    def _inputs(self, node: Primitive) -> list[PricedStream]:
        return [self.streams[self.numbers[port]] for port in node.inputs]

    def _outputs(self, node: Primitive, inputs: list[PricedStream]) -> list[PricedStream]:
        """Return the output streams of a node."""
        shapes = output_shapes(node, [stream.shape for stream in inputs], self.tensors, self.statistics)
        if not self.tiled:
            types = node.outputs([stream.type for stream in inputs])
            return [PricedStream(type, shape) for type, shape in zip(types, shapes, strict=True)]
        types = node.typed([stream.type for stream in inputs], self.tensors)
        bits = self.tensors[node.tensor].element_bits if isinstance(node, TensorReader) else _operand_bits(inputs)
        return [PricedStream(type, shape, bits) for type, shape in zip(types, shapes, strict=True)]

    def _cost(
        self, node: Primitive, inputs: list[PricedStream], outputs: list[ExpectedStream], tensors: Mapping[str, TensorDecl]
    ) -> NodeCost:
        shapes = [stream.shape for stream in inputs]
        if not self.tiled:
            return node_cost(node, shapes, outputs, [()] * len(inputs), UNTILED_BITS, tensors, self.statistics)
        tiles = [stream.type.tile for stream in inputs]
        return node_cost(node, shapes, outputs, tiles, _operand_bits(inputs), tensors, self.statistics)

    def _numbered(self, stream: PricedStream) -> int:
        """Return the number of a stream, a new one if no equal stream has one."""
        if stream not in self._number:
            self._number[stream] = len(self.streams)
            self.streams.append(stream)
        return self._number[stream]


def _renamed(node: Primitive, name: str, names: Mapping[str, str]) -> Primitive:
    """Return a node under another name, whose inputs have the names that `names` maps theirs to."""
    inputs = tuple([Port(names[port.node], port.output) for port in node.inputs])
    return with_names(node, name, inputs, node.tensor if isinstance(node, TensorUser) else "")


def _operand_bits(inputs: Iterable[PricedStream]) -> int:
    """Return the bits of the elements of the widest stream of values among these, as `samml.node.operand_bits` does."""
    return max([stream.bits for stream in inputs if stream.type.kind == "val"], default=UNTILED_BITS)


@dataclass(frozen=True, slots=True)
class OrderCosts:
    """The costs of one region in the orders that are compared, and in other ways to fuse it. What tables share is computed once:
    their nodes if they read the same copies, and the steps that make them if they differ in their order alone.

    If the schedule asks for public primitives, each graph is made, since its public form has another cost.
    """

    state: LoweringState
    cells: dict[Hashable, PricedCells] = field(default_factory=dict)
    memos: dict[Hashable, TableMemo] = field(default_factory=dict)

    def cost(self, region: FusedRegion, limit: float = math.inf) -> Estimate | CostBound:
        """Return the cost of the graph of a region in its order, or a bound or an error, as a `RegionCost` does."""
        if self.state.partitioned.schedule.primitives == "public":
            return region_graph(self.state, region).cost
        copies, cells = self._cells(region)
        return cells.price(region, self._memo(region, copies), limit)

    def table(self, region: FusedRegion) -> PricedTable | None:
        """Return the table of a region in its order. None if the schedule asks for public primitives, or if the region reads
        copies: the statistics of copies are known only once they are made."""
        if region.copies or self.state.partitioned.schedule.primitives == "public":
            return None
        copies, cells = self._cells(region)
        return cells.table(region, self._memo(region, copies))

    def _cells(self, region: FusedRegion) -> tuple[Hashable, PricedCells]:
        """Return the copies that a region reads in its order, and the cells of the tables that read the same."""
        copies = tuple([(copy.name, copy.source, copy.order(region.order)) for copy in region.copies])
        if copies not in self.cells:
            tiled = any(tensor.tile for tensor in region.declared.values())
            self.cells[copies] = PricedCells(recorder=None, statistics=readable_statistics(self.state, region), tiled=tiled)
        return copies, self.cells[copies]

    def _memo(self, region: FusedRegion, copies: Hashable) -> TableMemo:
        """Return the memo that the tables of a region in all its orders share. `copies` are the copies that it reads."""
        trees, settings = (region.trees, copies), (region.locate, region.rescan, region.repeat)
        if (trees, settings) not in self.memos:
            if trees not in self.memos:
                self.memos[trees] = TableMemo.of(region, self.cells[copies])
            self.memos[trees, settings] = replace(self.memos[trees], starts={})  # facts of the trees alone are shared
        return self.memos[trees, settings]
