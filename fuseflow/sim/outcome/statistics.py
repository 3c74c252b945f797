"""What a simulator hands over, and what a simulation says about itself: values without behaviour, the same from every simulator."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from fuseflow.samml import nodes as n
from fuseflow.samml.tokens import Stream
from fuseflow.sim.memory.layout import Kind
from fuseflow.sim.memory.statistics import Direction, MemoryStatistics
from fuseflow.sim.outcome.writer_streams import WriterStream
from fuseflow.tensors import DTYPES, Tensor
from fuseflow.tensors.levels.base import WORD_BYTES
from fuseflow.tile_ops import flops, work_count

Array: TypeAlias = Kind
ARRAYS: tuple[Array, ...] = ("pos", "crd", "val")


@dataclass(frozen=True, slots=True)
class NodeStatistics:
    """What a node did: how often it fired, in which cycles first and last (-1: never), and why it did not in the cycles until then.

    Starved: it waited for a token; before its first firing always. Waited: for an answer of the memory, and nothing else (a scan that
    waits for positions and for coordinates at once counts both, up to all cycles without a token). Blocked: for anything else, be it room
    for a token, a workspace or its own initiation interval. The two processes of an accumulator are added up. `occupied`: the cycles
    that its firings take at least, of its busier process.
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

    @property
    def busy(self) -> int:
        """Cycles in which it fired; for an accumulator, of its two processes."""
        return self.firings


@dataclass(frozen=True, slots=True)
class EdgeStatistics:
    """The stream of one reader: all tokens, and the most slots that were in use at once.

    A token is in a slot from the firing that produces it up to and including the cycle in which this reader takes it. With
    `peak` slots instead of its depth the run is the same.
    """

    node: str
    input: int
    tokens: int
    peak: int


@dataclass(frozen=True, slots=True)
class Traffic:
    """Elements requested from one array of a tensor, and their bytes; equal on every machine."""

    tensor: str
    kind: Array
    direction: Direction
    words: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Recording:
    """All tokens of a stream and the cycle from which each is visible."""

    tokens: Stream
    visible: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """A run that came to its end, as a simulator hands it over. Two simulators of one graph on one machine agree in every field."""

    cycles: int
    nodes: tuple[NodeStatistics, ...]
    """In graph order."""
    edges: tuple[EdgeStatistics, ...]
    """In the order of `edges`."""
    tokens: Mapping[n.Port, int]
    """Produced on every stream, read or not."""
    values: Mapping[str, int]
    """By node: values that an operator was applied to or a reduction folded (`alu`, `reduce`, `accumulate`)."""
    elements: Mapping[tuple[str, Array], int]
    """Requested from memory by each node that reads, of each of its arrays."""
    written: Mapping[str, WriterStream]
    """By output."""
    memory: MemoryStatistics | None
    """None where memory answers at once."""
    streams: Mapping[n.Port, Recording]
    """Empty unless asked for."""


def node_statistics(
    node: n.Node, waited: int, firings: int, starved: int, blocked: int, first: int, last: int, occupied: int
) -> NodeStatistics:
    """Of a node whose processes waited so long for the memory: a writer is blocked meanwhile, any other starved."""
    if isinstance(node, n.Writes):
        blocked -= waited
    else:
        waited = min(waited, starved)
        starved -= waited
    return NodeStatistics(node.name, node.op, firings, starved, blocked, first, last, waited, occupied)


def edges(graph: n.Graph) -> tuple[n.Edge, ...]:
    """Every reader of a stream, in graph order."""
    return tuple(n.Edge(node.name, k) for node in graph.nodes for k in range(len(node.inputs)))


def flops_by_operator(graph: n.Graph, values: Mapping[str, int]) -> dict[str, int]:
    """FLOPs by function name, sorted: those of the operator table, one for a value that a reduction folds. None without FLOPs."""
    found: Counter[str] = Counter()
    types = graph.types()
    for node in graph.nodes:
        tiles = [types[port].tile for port in node.inputs if types[port].kind == "val"]
        if node.operator:
            found[node.operator] += (work_count if node.grain == "fold" else flops)(node.operator, tiles) * values[node.name]
    return {function: count for function, count in sorted(found.items()) if count}


def traffic(graph: n.Graph, outcome: Outcome, outputs: Mapping[str, Tensor]) -> tuple[Traffic, ...]:
    """What was read and written of every array, in tensor order. `outputs`: as assembled."""
    reads = {node.name: node.tensor for node in graph.nodes if isinstance(node, n.Names)}
    read: Counter[tuple[str, Array]] = Counter()
    for (node, array), count in outcome.elements.items():
        read[reads[node], array] += count
    wrote: Counter[tuple[str, Array]] = Counter()
    for name, tensor in outputs.items():
        wrote[name, "pos"] = tensor.words("pos")
        wrote[name, "crd"] = tensor.words("crd")
        wrote[name, "val"] = len(outcome.written[name].values)
    directions: tuple[tuple[Direction, Counter[tuple[str, Array]]], ...] = ("read", read), ("write", wrote)
    return tuple(
        Traffic(decl.name, array, direction, words, words * _word_bytes(decl, array))
        for decl in graph.tensors
        for array in ARRAYS
        for direction, counts in directions
        if (words := counts[decl.name, array])
    )


def _word_bytes(decl: n.TensorDecl, array: Array) -> int:
    return DTYPES[decl.dtype].itemsize if array == "val" else WORD_BYTES[array]
