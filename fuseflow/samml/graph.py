"""The SAMML graph: dataflow nodes joined by typed token streams. `tokens` defines the tokens, `primitives` the nodes.

A node names its inputs as ports of other nodes. Its method `outputs` returns the kind and the depth of each of its output
streams.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod

from fuseflow.float32.operator_precision import computing_precision, precision_of_number, result_precision, widest
from fuseflow.notebook_table import SummaryTable
from fuseflow.ops import Precision
from fuseflow.samml.compute import Alu
from fuseflow.samml.hops import Hops, NodeHops, Turn
from fuseflow.samml.moves import Link
from fuseflow.samml.node import TensorReader, TensorUser, operand_bits, settings
from fuseflow.samml.primitives import Primitive
from fuseflow.samml.stream_tensor_types import UNBOUNDED as UNBOUNDED
from fuseflow.samml.stream_tensor_types import Port, StreamType, TensorDecl


@dataclass(frozen=True, slots=True)
class Edge:
    """One reader of a stream: input `input` of node `node`."""

    node: str
    input: int


@dataclass(frozen=True, slots=True)
class GraphStructure:
    """A graph without its names. Graphs that are equal up to names have equal `key`s, and their tensors stand in the same places of
    `tensors`.
    """

    tensors: tuple[str, ...]
    key: Hashable


@dataclass(frozen=True)  # with a place for values that are computed once
class Graph:
    """A dataflow graph, its nodes in an order in which every input is defined before it is used.

    `tensors` declares all tensors that are read or written, and `outputs` names those that are written. `fiber_fifos` lists the edges
    that must hold a whole fiber, because a value is used before and after a reduction of itself: a small FIFO would deadlock there.
    `depths` overrides the machine's FIFO depth for single edges, and `hops` are those of the edges that have any. `turns` has those of
    the nodes that share a port to the memory. `node_hops` are those of nodes of several tiles, and to ports.
    """

    name: str
    tensors: tuple[TensorDecl, ...]
    nodes: tuple[Primitive, ...]
    outputs: tuple[str, ...]
    fiber_fifos: tuple[Edge, ...] = ()
    depths: tuple[tuple[Edge, int], ...] = ()
    hops: tuple[tuple[Edge, Hops], ...] = ()
    turns: tuple[tuple[str, Turn], ...] = ()
    node_hops: tuple[tuple[str, NodeHops], ...] = ()

    def __repr__(self) -> str:
        return f"<Graph {self.name}: {len(self.nodes)} nodes, reads {', '.join(self.inputs)}, writes {', '.join(self.outputs)}>"

    def _repr_html_(self) -> str:
        kinds = Counter(type(node).__name__ for node in self.nodes)
        title = f"{self.name}: {len(self.nodes)} nodes"
        return SummaryTable(title, ("primitive", "nodes"), tuple(sorted(kinds.items()))).to_html()

    @cached_property
    def by_name(self) -> Mapping[str, Primitive]:
        """The nodes, by name."""
        return {n.name: n for n in self.nodes}

    @cached_property
    def declared(self) -> Mapping[str, TensorDecl]:
        """The declarations of the tensors, by name."""
        return {t.name: t for t in self.tensors}

    @cached_property
    def inputs(self) -> tuple[str, ...]:
        """The names of the tensors that the graph reads."""
        return tuple(t.name for t in self.tensors if t.name not in self.outputs)

    @cached_property
    def structure(self) -> GraphStructure:
        """The structure of the graph: all of it but its names."""
        place = {node.name: n for n, node in enumerate(self.nodes)}
        used = dict.fromkeys(node.tensor for node in self.nodes if isinstance(node, TensorUser))
        tensors = tuple(dict.fromkeys((*used, *self.declared)))
        number = {name: n for n, name in enumerate(tensors)}
        nodes = tuple(
            [
                (
                    settings(node),
                    tuple([(place[port.node], port.output) for port in node.inputs]),
                    number[node.tensor] if isinstance(node, TensorUser) else None,
                )
                for node in self.nodes
            ]
        )
        # The text of a number tells 0 from -0, and is the same for every NaN.
        read = map(self.declared.__getitem__, tensors)
        declared = tuple(
            [
                (t.shape, t.format, t.dtype, repr(t.fill), t.tile, t.outer and (number[t.outer[0]], t.outer[1]), *t.placement)
                for t in read
            ]
        )
        depths = tuple((place[edge.node], edge.input, depth) for edge, depth in self.depths)
        hops = tuple((place[edge.node], edge.input, hops.count, hops.slots) for edge, hops in self.hops)
        turns = tuple((place[name], turn) for name, turn in self.turns)
        inner = tuple((place[name], hops) for name, hops in self.node_hops)
        written = tuple(number[name] for name in self.outputs)
        return GraphStructure(tensors, (repr(nodes), declared, written, depths, hops, turns, inner))

    def with_structure_of(self, other: Graph, tensors: Mapping[str, str]) -> Graph:
        """Return this graph, which equals `other` up to names, with the structure of `other` stored, so that it is not computed
        again. `tensors` maps the names of tensors in `other` to those here."""
        structure = other.structure
        vars(self)["structure"] = GraphStructure(tuple([tensors[name] for name in structure.tensors]), structure.key)
        return self

    def with_depths(self, depths: Mapping[Edge, int]) -> Graph:
        """Return the graph with these FIFO depths; the depths of other FIFOs do not change."""
        return replace(self, depths=tuple({**dict(self.depths), **depths}.items()))

    def with_hops(self, hops: Mapping[Edge, Hops], node_hops: Mapping[str, NodeHops] | None = None) -> Graph:
        """Return the graph with these hops of edges and of nodes, and no others. What has none may be left out."""
        some = {edge: those for edge, those in hops.items() if those.count}
        inside = {name: those for name, those in (node_hops or {}).items() if those != NodeHops()}
        return replace(self, hops=tuple(some.items()), node_hops=tuple(inside.items()))

    def with_turns(self, turns: Mapping[str, Turn]) -> Graph:
        """Return the graph with these turns of nodes, by name, and no others. Nodes with a port of their own may be left out."""
        return replace(self, turns=tuple((node, turn) for node, turn in turns.items() if turn.of > 1))

    def types(self) -> dict[Port, StreamType]:
        """Return the type of every stream of a verified graph."""
        return self._types

    @cached_property
    def _types(self) -> dict[Port, StreamType]:
        types: dict[Port, StreamType] = {}
        tensors = self.declared
        for node in self.nodes:
            for k, kind in enumerate(node.typed([types[p] for p in node.inputs], tensors)):
                types[Port(node.name, k)] = kind
        return types

    @cached_property
    def element_bits(self) -> Mapping[Port, int]:
        """The bits of an element of every stream of values: those of the tensor that is read, or of the widest operand."""
        bits: dict[Port, int] = {}
        for node in self.nodes:
            made = self.declared[node.tensor].element_bits if isinstance(node, TensorReader) else operand_bits(node, bits)
            bits |= {port: made for port in node.ports if self._types[port].kind == "val"}
        return bits

    @cached_property
    def precisions(self) -> Mapping[Port, Precision]:
        """The precision of the numbers of every stream of values, from the tensor that is read or from the operator."""
        precisions: dict[Port, Precision] = {}
        for node in self.nodes:
            if isinstance(node, TensorReader):
                made = self.declared[node.tensor].precision
            elif isinstance(node, Alu):
                made = result_precision(node.function, *_operand_precisions(node, precisions))
            else:
                made = widest([precisions[port] for port in node.inputs if port in precisions])
            precisions |= {port: made for port in node.ports if self._types[port].kind == "val"}
        return precisions

    def computing_precision(self, node: Primitive) -> Precision:
        """Return the precision in which a node computes: the widest of its inputs, or the one that its operator requires."""
        if isinstance(node, Alu):
            return computing_precision(node.function, *_operand_precisions(node, self.precisions))
        return widest([self.precisions[port] for port in node.inputs if port in self.precisions])

    @cached_property
    def hops_of(self) -> Mapping[str, NodeHops]:
        """The hops of the nodes that have any, by name."""
        return dict(self.node_hops)

    @cached_property
    def hop_count(self) -> int:
        """The hops of all edges, and the links, each of which is a hop."""
        return sum(hops.count for _, hops in self.hops) + sum(isinstance(node, Link) for node in self.nodes)

    @property
    def node_count(self) -> int:
        """The nodes that are no links."""
        return sum(not isinstance(node, Link) for node in self.nodes)

    def maker(self, port: Port) -> Primitive:
        """Return the node that made a stream, before links that pass it on."""
        node = self.by_name[port.node]
        while isinstance(node, Link):
            node = self.by_name[node.inputs[0].node]
        return node

    def readers(self) -> dict[Port, tuple[Edge, ...]]:
        """Return the readers of each stream, in node order."""
        readers: dict[Port, list[Edge]] = {}
        for node in self.nodes:
            for k, port in enumerate(node.inputs):
                readers.setdefault(port, []).append(Edge(node.name, k))
        return {port: tuple(edges) for port, edges in readers.items()}


def _operand_precisions(node: Alu, precisions: Mapping[Port, Precision]) -> tuple[list[Precision], list[float | None]]:
    """Return the precisions of the operands of an operator, and each operand's value if it is a constant, else None. `precisions`
    has those of streams."""
    streams = iter(node.inputs)
    constants = [operand.value if operand.constant else None for operand in node.operands]
    return [precisions[next(streams)] if c is None else precision_of_number(c) for c in constants], constants


def stream_bounds(graph: Graph) -> dict[Port, int]:
    """Return an exclusive upper bound of the coordinates of every stream of a verified graph."""
    limits: dict[Port, int] = {}
    declared = graph.declared
    for node in graph.nodes:
        for k, bound in enumerate(node.bounds([limits[port] for port in node.inputs], declared)):
            limits[Port(node.name, k)] = bound
    return limits


LEAST_INDEX_BITS, MOST_INDEX_BITS = 8, 32
"""The least and the most bits of a coordinate or a reference in a circuit: the two levels of a stop, and a word in memory."""


def index_bits(graph: Graph, bounds: Mapping[Port, int]) -> int:
    """Return the width of coordinates and references in the circuit of a graph, given the bounds of its streams: enough to number
    the entries of its largest tensor, if every coordinate has an entry."""
    entries = [prod(max(size, 1) for size in tensor.shape) for tensor in graph.tensors]
    most = max((*entries, *(bound for bound in bounds.values() if bound < UNBOUNDED)), default=0)
    return min(max((most + 1).bit_length(), LEAST_INDEX_BITS), MOST_INDEX_BITS)
