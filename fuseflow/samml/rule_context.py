"""What the rule of a primitive takes and returns: facts of streams, and a context that refuses a node in the words of the graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NoReturn, TypeAlias

from fuseflow.errors import GraphError, did_you_mean
from fuseflow.samml import nodes as n
from fuseflow.samml.coordinate_bounds import UNBOUNDED
from fuseflow.samml.stream_shapes import StreamShape, StreamShapes


@dataclass(frozen=True, slots=True)
class Position:
    """What references index: the fibers of storage level `level` of `tensor`, or its values where `level` is its rank.

    References of the root, `tensor` "", index level 0 of every tensor.
    """

    tensor: str
    level: int

    def __str__(self) -> str:
        return f"{self.tensor}.{self.level}" if self.tensor else "the root"


ROOT = Position("", 0)


@dataclass(frozen=True, slots=True)
class StreamFacts:
    """What the verifier knows of a stream. A `nullable` stream may hold `N`. `position` says what its references index, and is None for
    other streams. All coordinates are below `bound`."""

    type: n.StreamType
    shape: StreamShape
    nullable: bool = False
    position: Position | None = None
    bound: int = UNBOUNDED


@dataclass(frozen=True, slots=True)
class OutputFacts:
    """What a rule says of an output. The node itself gives the type of the output and its bound."""

    shape: StreamShape
    nullable: bool = False
    position: Position | None = None


InputFacts: TypeAlias = Sequence[StreamFacts]


@dataclass(slots=True)
class RuleContext:
    """The graph around the node that is being checked, with the refusals that rules share."""

    graph: str
    tensors: Mapping[str, n.TensorDecl]
    outputs: frozenset[str]
    shapes: StreamShapes = field(default_factory=StreamShapes)
    nodes: dict[str, n.Node] = field(default_factory=dict)  # those that were checked

    def refuse(self, node: n.Node, why: str, hint: str = "") -> NoReturn:
        raise GraphError(f"graph `{self.graph}`, node `{node.name}` ({node.op}): {why}", hint=hint)

    def stream(self, node: n.Node, k: int) -> str:
        """Return the name of input `k` in errors."""
        port = node.inputs[k]
        return f"input {k} (`{n.stream_name(self.nodes[port.node], port.output)}`)"

    def kinds(self, node: n.Node, streams: InputFacts) -> None:
        """Refuse inputs of another number or other kinds than the node takes."""
        wanted = node.takes()
        if len(streams) != len(wanted):
            self.refuse(node, f"takes {show_count(len(wanted), 'input')} ({', '.join(wanted)}), not {len(streams)}")
        for k, (stream, kinds) in enumerate(zip(streams, wanted, strict=True)):
            if kinds != "any" and stream.type.kind not in kinds.split(" or "):
                self.refuse(node, f"{self.stream(node, k)} is {stream.type}; this node takes {kinds} there")

    def aligned(self, node: n.Node, streams: InputFacts, *which: int) -> None:
        """Refuse inputs that are not provably aligned token by token."""
        first = streams[which[0]]
        for k in which[1:]:
            self._depth(node, k, streams[k].type, first.type.depth)
            if streams[k].shape is not first.shape:
                self.refuse(node, f"{self.stream(node, k)} is not aligned with {self.stream(node, which[0])}")

    def nested(self, node: n.Node, streams: InputFacts, outer: int, inner: int) -> None:
        """Refuse an input whose innermost lists are not one for each element of another."""
        self._depth(node, inner, streams[inner].type, streams[outer].type.depth + 1)
        if streams[inner].shape.parent is not streams[outer].shape:
            self.refuse(node, f"{self.stream(node, inner)} does not hang below {self.stream(node, outer)}")

    def _depth(self, node: n.Node, k: int, type: n.StreamType, depth: int) -> None:
        if type.depth != depth:
            self.refuse(node, f"{self.stream(node, k)} is {type}; this node takes depth {depth} there")

    def solid(self, node: n.Node, streams: InputFacts, k: int) -> None:
        if streams[k].nullable:
            self.refuse(node, f"{self.stream(node, k)} may hold `N`", hint="put an `alu copy` with its implicit value before it")

    def deep(self, node: n.Node, streams: InputFacts, k: int, least: int = 1) -> StreamShape:
        """Return the shape above input `k`. Refuse an input that is less than `least` deep."""
        shape = streams[k].shape.parent
        if shape is None or streams[k].type.depth < least:
            self.refuse(node, f"{self.stream(node, k)} is {streams[k].type}; this node takes depth {least} or more")
        return shape

    def function(self, node: n.Node, name: str, table: Mapping[str, object]) -> None:
        if name not in table:
            self.refuse(node, f"unknown function `{name}`", hint=did_you_mean(name, table))

    def declared(self, node: n.Node, name: str, written: bool) -> n.TensorDecl:
        if name not in self.tensors:
            self.refuse(node, f"tensor `{name}` is not declared", hint=did_you_mean(name, self.tensors))
        if written != (name in self.outputs):
            self.refuse(node, f"writes `{name}`, which is not an output" if written else f"reads output `{name}`")
        return self.tensors[name]

    def level(self, node: n.Node, name: str, level: int, written: bool = False) -> n.TensorDecl:
        tensor = self.declared(node, name, written)
        if not 0 <= level < tensor.format.rank:
            self.refuse(node, f"`{name}` has no level {level}: it has {show_count(tensor.format.rank, 'level')} {tensor.format}")
        return tensor

    def position(self, tensor: str, level: int) -> Position:
        """Return what references into a level index. They follow from the levels above, which may be those of another tensor."""
        return Position(self.tensors[tensor].level_tensor(level - 1), level)

    def indexes(self, node: n.Node, streams: InputFacts, k: int, tensor: str, level: int) -> None:
        """Refuse references that index something else. Those into a full level of one coordinate are those into what is below it."""
        position, declared, above = streams[k].position, self.tensors[tensor], level
        while above and position != self.position(tensor, above) and declared.is_single(above - 1):
            above -= 1
        if position != self.position(tensor, above) and not (above == 0 and position == ROOT):
            holds = f"references into {position}" if position else "coordinates, not references"
            wanted = self.position(tensor, level)
            self.refuse(node, f"{self.stream(node, k)} holds {holds}; this node takes references into {wanted}")

    def inside(self, node: n.Node, streams: InputFacts, k: int, size: int, limit: str) -> None:
        """Refuse coordinates that are not provably below the size of what they address."""
        if streams[k].bound > size:
            self.refuse(
                node,
                f"{self.stream(node, k)} holds coordinates below {streams[k].bound}; {limit} is {size}",
                hint=f"intersect them with a `range` of {size}",
            )

    def access(self, node: n.Scan | n.Load) -> None:
        """Refuse `sequential` where the references come another way than straight from the parent level."""
        if node.sequential and not isinstance(self.nodes[node.inputs[0].node], n.Scan | n.Root):
            self.refuse(node, f"is sequential, but {self.stream(node, 0)} is not the parent level's own scan")


def show_count(number: int, thing: str) -> str:
    return f"{number} {thing}" + ("" if number == 1 else "s")
