"""The outcome of a run and its statistics: plain data, equal from every simulator."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fuseflow.machine.comal import ENDING_OPS
from fuseflow.machine.machine import Machine
from fuseflow.memory.layout import ArrayKind, ArrayName
from fuseflow.memory.memory_interface import Controller
from fuseflow.memory.statistics import Direction, MemoryStatistics
from fuseflow.samml import nodes as n
from fuseflow.samml.tokens import Stream
from fuseflow.sim.outcome.output_tensors import WriterStream
from fuseflow.tensors import Tensor
from fuseflow.tensors.levels.base import Kind, bytes_of
from fuseflow.tile_ops import flops, work_count

ARRAY_KINDS: tuple[ArrayKind, ...] = ("pos", "crd", "val")


@dataclass(frozen=True, slots=True)
class NodeStatistics:
    """The statistics of a node: how often it fired, in which cycles first and last (-1 if it never did), and why it did not fire
    in other cycles.

    A node is starved in cycles in which it waits for a token, and always before its first firing. It has waited in cycles in which only
    an answer of the memory was missing. (A scan that waits for positions and for coordinates at once counts both, up to all cycles
    without a token.) It is blocked in cycles in which it waits for anything else: room for a token, a workspace, or its own initiation
    interval. The numbers of the two processes of an accumulator are added up. `occupied` is the number of cycles that the firings of its
    busier process take at least. `workspace` is the most entries that one workspace held; a
    node without workspaces has none.
    """

    name: str
    op: str
    firings: int
    starved: int
    blocked: int
    first: int
    last: int
    waited: int = 0
    occupied: int = 0
    workspace: int | None = None

    @property
    def busy(self) -> int:
        """The cycles in which the node fired. For an accumulator these are the cycles of both of its processes."""
        return self.firings

    @property
    def processes(self) -> int:
        """The processes whose cycles are added up in the other numbers: a node with workspaces fills one while it empties another."""
        return 1 if self.workspace is None else 2


@dataclass(frozen=True, slots=True)
class EdgeStatistics:
    """The stream of one reader: the number of its tokens, and the most slots that were in use at once.

    A token is in a slot from the firing that produces it up to and including the cycle in which this reader takes it. With a FIFO
    of `peak` slots the run is the same.
    """

    node: str
    input: int
    tokens: int
    peak: int


@dataclass(frozen=True, slots=True)
class Traffic:
    """The elements requested from one array of a tensor in memory, and their bytes. These are equal on every machine."""

    tensor: str
    kind: ArrayKind
    direction: Direction
    words: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Recording:
    """All tokens of a stream, and the cycle from which each is visible."""

    tokens: Stream
    visible: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a finished run, as a simulator returns it. Two simulators of one graph on one machine agree in every
    field."""

    cycles: int
    nodes: tuple[NodeStatistics, ...]
    """The nodes stand in graph order."""
    edges: tuple[EdgeStatistics, ...]
    """The edges stand in the order of the function `edges`."""
    tokens: Mapping[n.Port, int]
    """The number of tokens produced on every stream, whether it is read or not."""
    values: Mapping[str, int]
    """The number of values, by node, that an operator was applied to or that a reduction folded (`alu`, `reduce`, `accumulate`)."""
    elements: Mapping[tuple[str, ArrayKind], int]
    """The number of elements that each node that reads requested, for each of its arrays."""
    written: Mapping[str, WriterStream]
    """The streams that the writers of each output received."""
    memory: MemoryStatistics | None
    """The statistics of the memory are None if the memory answers at once."""
    streams: Mapping[n.Port, Recording]
    """The recorded streams are empty unless the run was asked to record them."""


def node_statistics(
    node: n.Node,
    waited: int,
    firings: int,
    starved: int,
    blocked: int,
    first: int,
    last: int,
    occupied: int,
    workspace: int | None = None,
) -> NodeStatistics:
    """Return the statistics of a node whose processes waited for the memory for `waited` cycles. These are taken off its blocked cycles
    if it writes, and off its starved cycles otherwise."""
    if isinstance(node, n.TensorWriter):
        blocked -= waited
    else:
        waited = min(waited, starved)
        starved -= waited
    return NodeStatistics(node.name, node.op, firings, starved, blocked, first, last, waited, occupied, workspace)


def edges(graph: n.Graph) -> tuple[n.Edge, ...]:
    """Return the edges of a graph: each input of each node, in graph order."""
    return tuple(n.Edge(node.name, k) for node in graph.nodes for k in range(len(node.inputs)))


def flops_by_operator(graph: n.Graph, values: Mapping[str, int]) -> dict[str, int]:
    """Return the FLOPs of a run by operator, sorted by name: for each value as the operator table says, and one for each value
    that a reduction folds. `values` has the values of each node. Operators without FLOPs are left out."""
    flop_counts: Counter[str] = Counter()
    types = graph.types()
    for node in graph.nodes:
        tiles = [types[port].tile for port in node.inputs if types[port].kind == "val"]
        if node.operator:
            flop_counts[node.operator] += (work_count if node.grain == "fold" else flops)(node.operator, tiles) * values[
                node.name
            ]
    return {function: count for function, count in sorted(flop_counts.items()) if count}


def traffic(graph: n.Graph, outcome: Outcome, outputs: Mapping[str, Tensor]) -> tuple[Traffic, ...]:
    """Return the reads and writes of every array in memory, in tensor order. `outputs` are the assembled output tensors."""
    by_name, declared = graph.by_name, graph.declared
    read: Counter[ArrayName] = Counter()
    for (name, kind), count in outcome.elements.items():
        node = by_name[name]
        assert isinstance(node, n.Scan | n.Locate | n.Load)
        if declared[node.tensor].resident:
            continue
        read[node.tensor, -1 if isinstance(node, n.Load) else node.level, kind] += count
    words: Counter[tuple[str, ArrayKind, Direction]] = Counter()
    bytes_: Counter[tuple[str, ArrayKind, Direction]] = Counter()
    for (name, level, kind), count in read.items():
        words[name, kind, "read"] += count
        bytes_[name, kind, "read"] += bytes_of(count, _bits(declared[name], level, kind))
    kinds: tuple[Kind, ...] = "pos", "crd"
    for name, tensor in outputs.items():
        for kind in () if declared[name].like else kinds:
            words[name, kind, "write"], bytes_[name, kind, "write"] = tensor.words(kind), tensor.bytes(kind)
        padded = declared[name].room(-1) is not None  # beside what was received, its writers wrote pads
        values = tensor.values.size if padded else len(outcome.written[name].values)
        words[name, "val", "write"], bytes_[name, "val", "write"] = values, bytes_of(values, declared[name].element_bits)
    directions: tuple[Direction, ...] = "read", "write"
    return tuple(
        Traffic(decl.name, kind, direction, count, bytes_[decl.name, kind, direction])
        for decl in graph.tensors
        for kind in ARRAY_KINDS
        for direction in directions
        if (count := words[decl.name, kind, direction])
    )


def _bits(decl: n.TensorDecl, level: int, kind: ArrayKind) -> int:
    """Return the bits of an element of an array."""
    if kind == "val":
        return decl.element_bits
    (bits,) = (array.bits for array in decl.stored_arrays(level) if array.kind == kind)
    return bits


def run_cycles(nodes: Sequence[NodeStatistics], machine: Machine, controller: Controller | None) -> int:
    """Return the cycles of a run of these nodes. It ends with its last firing, or with the last acknowledgement of the memory, or when
    the results that belong into the memory are stored from the scratchpad. With
    `rules: comal`, it ends with its last node: the firing on `D` is the last of a node, and takes a cycle in roots and value
    writers only."""
    acknowledged = -1 if controller is None else controller.acknowledged()
    if machine.rules == "comal":
        return max(node.last + (node.op in ENDING_OPS) for node in nodes)
    end = 1 + max(acknowledged, *(node.last for node in nodes))
    return end if controller is None else end + controller.store(end)
