"""What every primitive declares, and the streams, ports and tensors that it speaks of.

A primitive is a class of `primitives`. Whatever the rest of the compiler must know of it stands there once, as xDSL's operations declare
their traits: as a base class (`Pointwise`, `Workspace`, `TensorReader`, `TensorWriter`), as a class attribute, or as a small method. Verification,
bounds, tile indices, transformations, text, MLIR, protobuf, estimates and simulators read these facts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Literal, TypeAlias, TypeVar

from fuseflow.errors import GraphError
from fuseflow.tensors import Format
from fuseflow.tensors.levels.base import StoredArray
from fuseflow.tile_ops import Tile

T = TypeVar("T")
Kind: TypeAlias = Literal["crd", "ref", "val"]

UNBOUNDED = 1 << 62
"""The bound of streams that hold no coordinates."""


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

    def size(self, level: int) -> int:
        """How many coordinates a storage level has."""
        return self.shape[self.format.order[level]]

    def stored_arrays(self, level: int) -> tuple[StoredArray, ...]:
        """The arrays that a storage level keeps in memory."""
        return self.format.levels[level].arrays(self.size(level))


# Attributes -----------------------------------------------------------------------------------------------------------------

AttributeType: TypeAlias = Literal[
    "tensor", "level", "values", "word", "integer", "integers", "number", "number or none", "flag", "slots"
]
"""What the written forms make of a field. A `level` stands behind its tensor (`A.0`). `values` is a tensor of which the values are meant
(`A.vals`). A `flag` is written if it is set, a `number or none` unless it is None. `slots` are the operands of an operator."""


@dataclass(frozen=True, slots=True)
class Attribute:
    """A field of a primitive in its written forms. `keyed`: the text form says `field=value`."""

    field: str
    type: AttributeType
    keyed: bool = False


def attribute(type: AttributeType, *, keyed: bool = False) -> Mapping[str, Any]:
    """The metadata of a field that is written down as an attribute."""
    return {"attribute": (type, keyed)}


def attributes_of(primitive: type[Node]) -> tuple[Attribute, ...]:
    """The attributes of a primitive, in the order in which they are written."""
    return tuple(Attribute(f.name, *f.metadata["attribute"]) for f in fields(primitive) if "attribute" in f.metadata)


# Hardware -------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Unit:
    """The hardware that a node runs on.

    `latency` is the latency class of the machines. `function` names the operator whose work a tile takes; "" where tiles take no longer
    than scalars. A `pipelined` unit starts a scalar every cycle, whatever its latency is.
    """

    latency: str = "default"
    function: str = ""
    pipelined: bool = False


DEFAULT_UNIT = Unit()
MEMORY_UNIT = Unit("memory")

Grain: TypeAlias = Literal["element", "fiber", "fold", "tensor"]
"""What a node must see together, so what its lanes may not share: an element, a fiber, a fiber that it folds (in any grouping), or
everything."""

Role: TypeAlias = Literal["source", "level", "value", "join", "move", "lane", "compute", "write"]
"""What a node is for: it starts the streams, gives coordinates or references of a level, reads values, brings coordinates together or
takes them apart, puts elements elsewhere, deals lanes, computes, or writes."""


# Nodes ----------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Node:
    """Base of all primitives. `name` is unique in the graph.

    The facts below have no defaults where a wrong default would be a silent error: a primitive that lacks one is refused by
    `tests/samml/test_primitives.py`, and by `NotImplementedError` where it is asked for.
    """

    op: ClassVar[str] = ""
    """The name of the primitive in MLIR, in statistics and in messages."""
    word: ClassVar[str] = ""
    """Its name in the text form, where that is not `op`."""
    ports: ClassVar[tuple[str, ...]] = ()
    """Names of the outputs, for printing; variadic nodes compute theirs in `port_names`."""
    role: ClassVar[Role]
    """What it is for, in drawings and reports."""
    grain: ClassVar[Grain]
    """What it must see together."""
    holds_back: ClassVar[bool] = False
    """Whether it gives nothing of a fiber before the fiber has ended."""
    beyond_comal: ClassVar[str] = ""
    """What it does, where that is nothing that Comal, the simulator behind machines of `rules: comal`, has times for."""

    name: str
    inputs: tuple[Port, ...]

    # Streams ----------------------------------------------------------------------------------------------------------------

    def takes(self) -> tuple[str, ...]:
        """The kinds of its inputs, one text each, such as `crd` or `ref or val`: their number is its arity."""
        raise NotImplementedError(f"primitive `{self.op}` does not declare what it takes")

    def outputs(self, inputs: Sequence[StreamType]) -> tuple[StreamType, ...]:
        """Types of the outputs, given the types of the inputs (which `verify` has checked)."""
        raise NotImplementedError(f"primitive `{self.op}` does not declare its outputs")

    def typed(self, inputs: Sequence[StreamType], tensors: Mapping[str, TensorDecl]) -> tuple[StreamType, ...]:
        """The same, with the tiles of what is read from `tensors`."""
        return self.outputs(inputs)

    def port_names(self) -> tuple[str, ...]:
        return self.ports

    def carries(self) -> tuple[tuple[int, ...], ...]:
        """For each output the inputs whose elements it passes on as they are, perhaps repeated, dealt out or in another order. Of several,
        each element is one of them. None: it makes elements of its own."""
        raise NotImplementedError(f"primitive `{self.op}` does not declare what it carries")

    def bounds(self, inputs: Sequence[int], tensors: Mapping[str, TensorDecl]) -> tuple[int, ...]:
        """A number for each output that its coordinates are all below, given those of the inputs. That of a level with every coordinate is
        its size."""
        return tuple(max([inputs[k] for k in carried]) if carried else UNBOUNDED for carried in self.carries())

    def nested(self, around: tuple[T, ...], depth: int, own: T, mixed: T) -> tuple[T, ...]:
        """What the levels of its deepest output are, outermost first; the other outputs have those above. `around`: what the levels of its
        inputs are, of which the first input has `depth`. `own` is a level that it makes, `mixed` one of two levels or of a part of one."""
        return around

    def watched(self, inputs: int) -> Sequence[int]:
        """Of so many inputs, those at which every firing looks, whether or not it takes from them."""
        return ()

    # Work -------------------------------------------------------------------------------------------------------------------

    def unit(self, tensors: Mapping[str, TensorDecl]) -> Unit:
        """The hardware that it runs on."""
        return DEFAULT_UNIT

    @property
    def operator(self) -> str:
        """The operator that it applies to every value, of which the FLOPs are counted; "" if it computes nothing."""
        return ""

    @property
    def by_value(self) -> bool:
        """Whether values, and not coordinates alone, decide how often it fires and what it passes on."""
        return False


@dataclass(frozen=True, slots=True)
class Pointwise(Node):
    """A trait: all inputs are aligned token by token, and so is the one output, to which every firing gives one token."""

    grain: ClassVar[Grain] = "element"


@dataclass(frozen=True, slots=True)
class Workspace(Node):
    """A trait: takes coordinates of several levels, outermost first, and values; collects each fiber of the outermost level in a
    workspace, and gives its entries in sorted order when the fiber ends."""

    holds_back: ClassVar[bool] = True

    def watched(self, inputs: int) -> Sequence[int]:
        return (inputs - 1,)


@dataclass(frozen=True, slots=True)
class TensorUser(Node):
    """A trait: works with a declared tensor."""

    tensor: str = field(metadata=attribute("tensor"))

    def asks_memory(self, tensors: Mapping[str, TensorDecl]) -> bool:
        """Whether it reads or writes what is stored of the tensor."""
        return True


@dataclass(frozen=True, slots=True)
class TensorReader(TensorUser):
    """A trait: reads the tensor from memory."""


@dataclass(frozen=True, slots=True)
class TensorWriter(TensorUser):
    """A trait: writes the tensor to memory. It makes no streams."""

    role: ClassVar[Role] = "write"
    grain: ClassVar[Grain] = "tensor"

    def outputs(self, inputs: Sequence[StreamType]) -> tuple[StreamType, ...]:
        return ()

    def carries(self) -> tuple[tuple[int, ...], ...]:
        return ()

    def unit(self, tensors: Mapping[str, TensorDecl]) -> Unit:
        return MEMORY_UNIT


def upstream(nodes: Mapping[str, Node], ports: Iterable[Port]) -> set[str]:
    """Names of the nodes that `ports` belong to, and of everything that these read, directly or not."""
    names: set[str] = set()
    waiting = [port.node for port in ports]
    while waiting:
        name = waiting.pop()
        if name not in names:
            names.add(name)
            waiting += [port.node for port in nodes[name].inputs]
    return names


def stream_name(node: Node, output: int) -> str:
    """The name of an output stream: `A_i.crd`, or the node's own name where it has one output."""
    names = node.port_names()
    return node.name if len(names) == 1 else f"{node.name}.{names[output]}"


def require_entry(table: Mapping[type[Node], T], primitive: type[Node], title: str) -> T:
    """What a table says of a primitive. Raises `GraphError` where it says nothing: a primitive that is not complete."""
    if primitive not in table:
        raise GraphError(
            f"the primitive `{primitive.op or primitive.__name__}` has no {title}",
            hint="docs/extending.md lists what a primitive needs",
        )
    return table[primitive]
