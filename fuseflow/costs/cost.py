"""The cost of a graph, estimated from tensor statistics: firings of every node, FLOPs, bytes and a bound on its cycles."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import prod
from typing import Final, NamedTuple, TypeAlias, assert_never

from fuseflow import tile_ops
from fuseflow.costs.statistics import TensorStatistics
from fuseflow.costs.stream_shapes import ExpectedStream, expected_read, result_statistics, stream_shapes
from fuseflow.machine.machine import Lanes
from fuseflow.samml.node import operand_bits
from fuseflow.samml.nodes import Graph, Join, Load, Locate, Node, Port, Scan, TensorDecl, Workspace, WriteLevel, WriteValues
from fuseflow.tensors.levels.base import bytes_of
from fuseflow.tile_ops import TileShape

OVERLAPPED_SHARE = 0.9
"""The share of the work outside of the busiest node that is assumed to overlap with the work of that node."""
BANDWIDTH = 256
"""The bytes that a memory moves in a cycle, on any machine: the peak of that of `rda`. Here costs only compare the loop orders of one
region, and no machine is known, so that a schedule has the same graphs on every machine. What is expected of a machine is estimated in
`fuseflow.estimate`, which asks its memory. The default cut and the searches compare these estimates."""

TILE_MACS = 256
"""The multiply-accumulates on tiles that a unit does in a cycle, those of `rda`."""
TILE_LANES = Lanes()
"""The lanes of the units for tiles, those of `rda`."""

Mover: TypeAlias = Scan | Locate | Load | WriteLevel | WriteValues
"""A node that moves bytes of a tensor."""
MOVERS: Final = (Scan, Locate, Load, WriteLevel, WriteValues)
"""The classes of `Mover` as a tuple, made once: a union that is written inside of `isinstance` is made again for every node."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """The expected cost of a graph. `cycles` is how long its busiest node works: a node fires at most once a cycle."""

    cycles: float
    firings: float
    flops: float
    bytes: float

    @property
    def rank(self) -> float:
        """The expected cycles by which loop orders are compared."""
        return expected_rank(self.cycles, self.firings, self.bytes)

    def __add__(self, other: Estimate) -> Estimate:
        """Return the cost of one graph run after the other."""
        return Estimate(
            self.cycles + other.cycles, self.firings + other.firings, self.flops + other.flops, self.bytes + other.bytes
        )


def expected_rank(cycles: float, firings: float, bytes: float) -> float:
    """Return the expected cycles of a graph: the cycles of its busiest node or of its memory traffic, whichever are more, and the
    share of the other work that does not overlap with them.
    """
    moving = bytes / BANDWIDTH
    bound = max(cycles, moving)
    return bound + (1 - OVERLAPPED_SHARE) * (firings + moving - bound)


def estimate_graph(graph: Graph, statistics: Mapping[str, TensorStatistics]) -> tuple[Estimate, dict[str, TensorStatistics]]:
    """Return the estimated cost of `graph`, and the statistics of its results, from the statistics of the tensors that it
    reads."""
    shapes, types = stream_shapes(graph, statistics), graph.types()
    written: dict[str, dict[int, ExpectedStream]] = {name: {} for name in graph.outputs}  # a scalar has no levels
    costs = []
    for node in graph.nodes:
        inputs, outputs = _streams(node, shapes)
        if isinstance(node, WriteLevel):
            written[node.tensor][node.level] = inputs[0]
        tiles, bits = [types[p].tile for p in node.inputs], operand_bits(node, graph.element_bits)
        costs.append(node_cost(node, inputs, outputs, tiles, bits, graph.declared, statistics))
    results = {
        name: result_statistics(graph.declared[name], [levels[p] for p in range(len(levels))], statistics)
        for name, levels in written.items()
    }
    return total_cost(costs, graph.declared), results


class NodeCost(NamedTuple):
    """The expected cost of a node. It is busy for `cycles`, and moves `bytes` of `tensor`, which is empty if it moves none."""

    cycles: float
    firings: float
    flops: float
    tensor: str
    bytes: float


def node_cost(
    node: Node,
    inputs: list[ExpectedStream],
    outputs: list[ExpectedStream],
    tiles: list[TileShape],
    bits: int,
    declared: Mapping[str, TensorDecl],
    statistics: Mapping[str, TensorStatistics],
) -> NodeCost:
    """Return the expected cost of a node with these `inputs` and `outputs`. The elements of its inputs have the shapes `tiles`,
    and at most `bits` bits. `statistics` has the statistics of the tensors that it reads."""
    inputs = _filled_up(node, inputs, declared)
    kept = expected_read(node, outputs[0], statistics) if isinstance(node, Locate) and node.keeps(declared) else 0.0
    firings = _firings(node, inputs, outputs) + kept
    cycles, flops = firings, 0.0
    if node.operator:
        is_fold = node.grain == "fold"
        work = prod(tiles[-1]) if is_fold else tile_ops.work_count(node.operator, tiles)
        cycles = firings * max(1.0, work / (TILE_MACS * TILE_LANES.of(bits)))
        flops = inputs[-1].elements * work if is_fold else tile_ops.flops(node.operator, tiles) * inputs[0].elements
    if isinstance(node, MOVERS):
        return NodeCost(cycles, firings, flops, node.tensor, _traffic(node, inputs, outputs, declared[node.tensor], statistics))
    return NodeCost(cycles, firings, flops, "", 0.0)


def total_cost(costs: Iterable[NodeCost], tensors: Iterable[str]) -> Estimate:
    """Return the cost of a graph whose nodes have these `costs`. `tensors` are those that it uses."""
    busiest = total = flops = 0.0
    bytes_by_tensor = dict.fromkeys(tensors, 0.0)
    for node in costs:
        busiest, total, flops = max(busiest, node.cycles), total + node.firings, flops + node.flops
        if node.tensor:
            bytes_by_tensor[node.tensor] += node.bytes
    return Estimate(busiest, total, flops, sum(bytes_by_tensor.values()))


def expected_traffic(
    graph: Graph, shapes: Mapping[Port, ExpectedStream], statistics: Mapping[str, TensorStatistics]
) -> dict[str, float]:
    """Return the bytes that are expected to be read or written of every tensor of `graph`, given the shapes of its streams."""
    bytes_by_tensor = dict.fromkeys(graph.declared, 0.0)
    for node in graph.nodes:
        if isinstance(node, MOVERS):
            inputs, outputs = _streams(node, shapes)
            inputs = _filled_up(node, inputs, graph.declared)
            bytes_by_tensor[node.tensor] += _traffic(node, inputs, outputs, graph.declared[node.tensor], statistics)
    return bytes_by_tensor


def _traffic(
    node: Mover,
    inputs: list[ExpectedStream],
    outputs: list[ExpectedStream],
    tensor: TensorDecl,
    statistics: Mapping[str, TensorStatistics],
) -> float:
    """Return the bytes that a node reads or writes of its tensor in memory."""
    if tensor.resident:
        return 0.0
    match node:
        case Load() | WriteValues():
            return bytes_of(inputs[0].stored, tensor.value_bits)
        case Scan():
            arrays, refs, read = tensor.stored_arrays(node.level), inputs[0].stored, outputs[0].elements
            return sum(bytes_of(refs * array.scanned + read * array.entry, array.bits) for array in arrays)
        case Locate() if node.keeps({node.tensor: tensor}):
            read = expected_read(node, outputs[0], statistics)
            return sum(bytes_of(read * array.entry, array.bits) for array in tensor.stored_arrays(node.level))
        case Locate():
            return sum(bytes_of(inputs[-1].stored, array.bits) for array in tensor.stored_arrays(node.level) if array.told)
        case WriteLevel():
            arrays, fibers, entries = tensor.stored_arrays(node.level), inputs[0].fibers, inputs[0].elements
            return sum(bytes_of(fibers * array.fiber + entries * array.entry, array.bits) for array in arrays)
        case unknown:
            assert_never(unknown)


def _streams(node: Node, shapes: Mapping[Port, ExpectedStream]) -> tuple[list[ExpectedStream], list[ExpectedStream]]:
    return [shapes[p] for p in node.inputs], [shapes[p] for p in node.ports if p in shapes]


def _filled_up(node: Node, inputs: list[ExpectedStream], declared: Mapping[str, TensorDecl]) -> list[ExpectedStream]:
    """Return the inputs of a node. The input of a writer that pads fibers includes the entries that it adds."""
    if not isinstance(node, (WriteLevel, WriteValues)):
        return inputs
    room = declared[node.tensor].room(node.level if isinstance(node, WriteLevel) else -1)
    return inputs if room is None else [inputs[0].resized(inputs[0].fibers * room)]


def _firings(node: Node, inputs: list[ExpectedStream], outputs: list[ExpectedStream]) -> float:
    if isinstance(node, Join) and node.kind != "left":
        return max([outputs[0].tokens, *(inputs[crd].tokens for crd, _ in node.sides())])
    if isinstance(node, Workspace):
        return max(inputs[-1].tokens, outputs[-1].tokens)
    return max([s.tokens for s in inputs + outputs])
