"""The SAMML graph: dataflow nodes joined by typed token streams. Values only; see `streams` for tokens, `primitives` for the nodes.

A node names its inputs as ports of other nodes; `outputs` gives the kind and depth of each of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from fuseflow.samml.node import Port, StreamType, TensorDecl
from fuseflow.samml.primitives import Primitive


@dataclass(frozen=True, slots=True)
class Edge:
    """One reader of a stream: input `input` of node `node`."""

    node: str
    input: int


@dataclass(frozen=True, slots=True)
class Graph:
    """Nodes in an order in which every input is defined before it is used.

    `tensors` declares everything read or written; `outputs` names the tensors written. `fiber_fifos` lists the edges that must
    hold a whole fiber (a value used before and after a reduction of itself): where a small FIFO deadlocks. `depths` overrides
    the machine's FIFO depth for single edges.
    """

    name: str
    tensors: tuple[TensorDecl, ...]
    nodes: tuple[Primitive, ...]
    outputs: tuple[str, ...]
    fiber_fifos: tuple[Edge, ...] = ()
    depths: tuple[tuple[Edge, int], ...] = ()

    @property
    def by_name(self) -> dict[str, Primitive]:
        return {n.name: n for n in self.nodes}

    @property
    def declared(self) -> dict[str, TensorDecl]:
        return {t.name: t for t in self.tensors}

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the tensors read from memory."""
        return tuple(t.name for t in self.tensors if t.name not in self.outputs)

    def with_depths(self, depths: Mapping[Edge, int]) -> Graph:
        """These FIFOs as deep, the others as they are."""
        return replace(self, depths=tuple({**dict(self.depths), **depths}.items()))

    def types(self) -> dict[Port, StreamType]:
        """The type of every stream (the graph must have been verified)."""
        types: dict[Port, StreamType] = {}
        tensors = self.declared
        for node in self.nodes:
            for k, kind in enumerate(node.typed([types[p] for p in node.inputs], tensors)):
                types[Port(node.name, k)] = kind
        return types

    def readers(self) -> dict[Port, tuple[Edge, ...]]:
        """Who reads each stream, in node order."""
        readers: dict[Port, list[Edge]] = {}
        for node in self.nodes:
            for k, port in enumerate(node.inputs):
                readers.setdefault(port, []).append(Edge(node.name, k))
        return {port: tuple(edges) for port, edges in readers.items()}
