"""The SAMML graph: dataflow nodes joined by typed token streams. Values only; see `streams` for tokens, `nodes` for the primitives.

A node names its inputs as ports of other nodes; `outputs` gives the kind and depth of each of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, TypeAlias

from fuseflow.tensors import Format
from fuseflow.tile_ops import Tile

Kind: TypeAlias = Literal["crd", "ref", "val"]


@dataclass(frozen=True, slots=True)
class Port:
    """One output of a node."""

    node: str
    output: int = 0


@dataclass(frozen=True, slots=True)
class StreamType:
    """What a stream carries and how deep its lists are nested. `tile`: the shape of its values, () for scalars."""

    kind: Kind
    depth: int
    tile: Tile = ()

    def __str__(self) -> str:
        tile = f", {show_tile(self.tile)}" if self.tile else ""
        return f"{self.kind}({self.depth}{tile})"


def show_tile(tile: Tile) -> str:
    """`2x3`."""
    return "x".join(map(str, tile))


@dataclass(frozen=True, slots=True)
class TensorDecl:
    """A tensor that the graph reads or writes. With a `tile`, `shape` counts tiles: the levels address them, every value is one."""

    name: str
    shape: tuple[int, ...]
    format: Format
    dtype: str = "f32"
    fill: float = 0.0
    tile: Tile = ()


@dataclass(frozen=True, slots=True)
class Node:
    """Base of all primitives. `name` is unique in the graph."""

    op: ClassVar[str] = ""
    ports: ClassVar[tuple[str, ...]] = ()
    """Names of the outputs, for printing; variadic nodes compute theirs in `port_names`."""

    name: str
    inputs: tuple[Port, ...]

    def outputs(self, inputs: Sequence[StreamType]) -> tuple[StreamType, ...]:
        """Types of the outputs, given the types of the inputs (which `verify` has checked)."""
        raise NotImplementedError

    def typed(self, inputs: Sequence[StreamType], tensors: Mapping[str, TensorDecl]) -> tuple[StreamType, ...]:
        """The same, with the tiles of what is read from `tensors`."""
        return self.outputs(inputs)

    def port_names(self) -> tuple[str, ...]:
        return self.ports


def upstream(made: Mapping[str, Node], ports: Iterable[Port]) -> set[str]:
    """Names of the nodes that `ports` belong to, and of everything that these read, directly or not."""
    found: set[str] = set()
    waiting = [port.node for port in ports]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += [port.node for port in made[name].inputs]
    return found


def stream_name(node: Node, output: int) -> str:
    """The name of an output stream: `A_i.crd`, or the node's own name where it has one output."""
    names = node.port_names()
    return node.name if len(names) == 1 else f"{node.name}.{names[output]}"


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
    nodes: tuple[Node, ...]
    outputs: tuple[str, ...]
    fiber_fifos: tuple[Edge, ...] = ()
    depths: tuple[tuple[Edge, int], ...] = ()

    @property
    def by_name(self) -> dict[str, Node]:
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
        found: dict[Port, StreamType] = {}
        tensors = self.declared
        for node in self.nodes:
            for k, kind in enumerate(node.typed([found[p] for p in node.inputs], tensors)):
                found[Port(node.name, k)] = kind
        return found

    def readers(self) -> dict[Port, tuple[Edge, ...]]:
        """Who reads each stream, in node order."""
        found: dict[Port, list[Edge]] = {}
        for node in self.nodes:
            for k, port in enumerate(node.inputs):
                found.setdefault(port, []).append(Edge(node.name, k))
        return {port: tuple(edges) for port, edges in found.items()}
