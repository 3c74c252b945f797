"""The input and the result of the check of a node: facts of streams, and the refusals that primitives share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NoReturn

from fuseflow.errors import GraphError, did_you_mean
from fuseflow.samml.stream_alignment import StreamShape, StreamShapes
from fuseflow.samml.stream_tensor_types import UNBOUNDED, Port, StreamType, TensorDecl


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

    type: StreamType
    shape: StreamShape
    nullable: bool = False
    position: Position | None = None
    bound: int = UNBOUNDED


@dataclass(frozen=True, slots=True)
class OutputFacts:
    """What the check of a node says of an output. The node itself gives the type of the output and its bound."""

    shape: StreamShape
    nullable: bool = False
    position: Position | None = None


@dataclass(slots=True)
class GraphContext:
    """What is known of a graph while its nodes are checked: its declarations, and of the nodes so far the names of their streams,
    those that give references as they lie in a level (`parents`), and the streams that links only pass on, with those that these
    are (`passed`)."""

    graph: str
    tensors: Mapping[str, TensorDecl]
    outputs: frozenset[str]
    shapes: StreamShapes = field(default_factory=StreamShapes)
    names: dict[str, Callable[[int], str]] = field(default_factory=dict)
    parents: set[str] = field(default_factory=set)
    passed: dict[Port, Port] = field(default_factory=dict)

    def add(self, node: str, names: Callable[[int], str], parents: bool) -> None:
        """Record a checked node: its outputs' names, and whether it emits references in the order of a level (`parents`)."""
        self.names[node] = names
        if parents:
            self.parents.add(node)


@dataclass(slots=True)
class NodeCheck:
    """The check of one node: the facts of its `inputs`, which are the streams of `ports`, and the refusals that primitives share."""

    context: GraphContext
    name: str
    op: str
    ports: Sequence[Port]
    inputs: Sequence[StreamFacts]

    @property
    def tensors(self) -> Mapping[str, TensorDecl]:
        return self.context.tensors

    @property
    def shapes(self) -> StreamShapes:
        return self.context.shapes

    def refuse(self, why: str, hint: str = "") -> NoReturn:
        raise GraphError(f"graph `{self.context.graph}`, node `{self.name}` ({self.op}): {why}", hint=hint)

    def stream(self, k: int) -> str:
        """Return the name of input `k` in errors."""
        port = self.ports[k]
        return f"input {k} (`{self.context.names[port.node](port.output)}`)"

    def made(self, k: int) -> Port:
        """Return the stream of input `k` where it was made, before any links."""
        return self.context.passed.get(self.ports[k], self.ports[k])

    def kinds(self, wanted: Sequence[str]) -> None:
        """Refuse inputs whose number or kinds are not the `wanted` ones. A refusal raises `GraphError`, here and below."""
        if len(self.inputs) != len(wanted):
            self.refuse(f"takes {show_count(len(wanted), 'input')} ({', '.join(wanted)}), not {len(self.inputs)}")
        for k, (stream, kinds) in enumerate(zip(self.inputs, wanted, strict=True)):
            if kinds != "any" and stream.type.kind not in kinds.split(" or "):
                self.refuse(f"{self.stream(k)} is {stream.type}; this node takes {kinds} there")

    def aligned(self, *which: int) -> None:
        """Refuse inputs that are not provably aligned token by token."""
        first = self.inputs[which[0]]
        for k in which[1:]:
            self._depth(k, self.inputs[k].type, first.type.depth)
            if self.inputs[k].shape is not first.shape:
                self.refuse(f"{self.stream(k)} is not aligned with {self.stream(which[0])}")

    def nested(self, outer: int, inner: int) -> None:
        """Refuse inputs unless `inner` has provably one innermost list for each element of `outer`."""
        self._depth(inner, self.inputs[inner].type, self.inputs[outer].type.depth + 1)
        if self.inputs[inner].shape.parent is not self.inputs[outer].shape:
            self.refuse(f"{self.stream(inner)} does not hang below {self.stream(outer)}")

    def _depth(self, k: int, type: StreamType, depth: int) -> None:
        if type.depth != depth:
            self.refuse(f"{self.stream(k)} is {type}; this node takes depth {depth} there")

    def solid(self, k: int) -> None:
        if self.inputs[k].nullable:
            self.refuse(f"{self.stream(k)} may hold `N`", hint="put an `alu copy` with its implicit value before it")

    def deep(self, k: int, least: int = 1) -> StreamShape:
        """Return the shape above input `k`. Refuse an input that is less than `least` deep."""
        shape = self.inputs[k].shape.parent
        if shape is None or self.inputs[k].type.depth < least:
            self.refuse(f"{self.stream(k)} is {self.inputs[k].type}; this node takes depth {least} or more")
        return shape

    def function(self, name: str, table: Mapping[str, object]) -> None:
        if name not in table:
            self.refuse(f"unknown function `{name}`", hint=did_you_mean(name, table))

    def declared(self, name: str, written: bool) -> TensorDecl:
        if name not in self.tensors:
            self.refuse(f"tensor `{name}` is not declared", hint=did_you_mean(name, self.tensors))
        if written != (name in self.context.outputs):
            self.refuse(f"writes `{name}`, which is not an output" if written else f"reads output `{name}`")
        return self.tensors[name]

    def level(self, name: str, level: int, written: bool = False) -> TensorDecl:
        tensor = self.declared(name, written)
        if not 0 <= level < tensor.format.rank:
            self.refuse(f"`{name}` has no level {level}: it has {show_count(tensor.format.rank, 'level')} {tensor.format}")
        return tensor

    def position(self, tensor: str, level: int) -> Position:
        """Return the position that references into a level index: in another tensor if the level above is shared with it."""
        return Position(self.tensors[tensor].level_tensor(level - 1), level)

    def indexes(self, k: int, tensor: str, level: int) -> None:
        """Refuse input `k` unless its references index a level of a tensor. A full level of one coordinate keeps them."""
        position, declared, above = self.inputs[k].position, self.tensors[tensor], level
        while above and position != self.position(tensor, above) and declared.is_single(above - 1):
            above -= 1
        if position != self.position(tensor, above) and not (above == 0 and position == ROOT):
            holds = f"references into {position}" if position else "coordinates, not references"
            wanted = self.position(tensor, level)
            self.refuse(f"{self.stream(k)} holds {holds}; this node takes references into {wanted}")

    def inside(self, k: int, size: int, limit: str) -> None:
        """Refuse input `k` unless its coordinates are provably below `size`. `limit` names the size in the error."""
        if self.inputs[k].bound > size:
            self.refuse(
                f"{self.stream(k)} holds coordinates below {self.inputs[k].bound}; {limit} is {size}",
                hint=f"intersect them with a `range` of {size}",
            )

    def access(self, sequential: bool) -> None:
        """Refuse a `sequential` node whose references do not come directly from a scan of the parent level."""
        if sequential and self.made(0).node not in self.context.parents:
            self.refuse(f"is sequential, but {self.stream(0)} is not the parent level's own scan")

    def chain(self) -> None:
        """Refuse coordinates (outermost first) that are not below each other, and a last input not aligned with the innermost."""
        last = len(self.inputs) - 1
        for k in range(1, last):
            self.nested(k - 1, k)
        self.aligned(last - 1, last)

    def reaches(self, depth: int) -> None:
        """Refuse a first input whose depth is not the number of levels that it is written to."""
        self._depth(0, self.inputs[0].type, depth)

    def sized(self, size: int) -> None:
        if size < 1:
            self.refuse(f"the size is {size}")


def show_count(number: int, thing: str) -> str:
    return f"{number} {thing}" + ("" if number == 1 else "s")
