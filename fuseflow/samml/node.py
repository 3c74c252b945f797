"""The facts that every primitive declares.

A primitive is a class of `primitives`. Everything that the rest of the compiler must know of it is declared there once, as xDSL's
operations declare their traits: as a base class (`Pointwise`, `Filter`, `Workspace`, `TensorReader`, `TensorWriter`), as a class attribute,
or as a small method. Verification, bounds, tile indices, transformations, text, MLIR, protobuf, estimates and simulators read
these facts.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache
from importlib import import_module
from operator import attrgetter
from pkgutil import iter_modules
from typing import Any, ClassVar, Final, Literal, TypeAlias, TypeVar

from fuseflow.errors import GraphError
from fuseflow.samml.node_check import NodeCheck, OutputFacts
from fuseflow.samml.stream_tensor_types import UNBOUNDED, Port, StreamType, TensorDecl, input_kinds, output_names, output_types

T = TypeVar("T")
L = TypeVar("L")
"""A mark of a level, which `Node.levels` passes from inputs to outputs."""

# Attributes -----------------------------------------------------------------------------------------------------------------

AttributeType: TypeAlias = Literal[
    "tensor", "level", "values", "word", "integer", "integers", "number", "number or none", "flag", "slots"
]
"""How the written forms show a field. A `level` is written after its tensor (`A.0`), and `values` is the name of a tensor whose
values are written (`A.vals`). A `flag` is written if it is set, and a `number or none` unless it is None. `slots` are the
operands of an operator."""


@dataclass(frozen=True, slots=True)
class Attribute:
    """A field of a primitive in its written forms. If it is `keyed`, the text form writes `field=value`."""

    field: str
    type: AttributeType
    keyed: bool = False


def attribute(type: AttributeType, *, keyed: bool = False) -> Mapping[str, Any]:
    """Return the metadata of a dataclass field that the written forms show as an attribute; `keyed` as in `Attribute`."""
    return {"attribute": (type, keyed)}


def attributes_of(primitive: type[Node]) -> tuple[Attribute, ...]:
    """Return the attributes of a primitive, in the order in which they are written."""
    return tuple(Attribute(f.name, *f.metadata["attribute"]) for f in fields(primitive) if "attribute" in f.metadata)


# Hardware -------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Unit:
    """The hardware that a node runs on.

    `latency` names the key of the machine's latency table. `function` names the operator whose work a tile takes; it is "" where tiles
    take no longer than scalars. A `pipelined` unit starts a scalar every cycle, whatever its latency is.
    """

    latency: str = "default"
    function: str = ""
    pipelined: bool = False


@dataclass(frozen=True, slots=True)
class Area:
    """The area of the rules of a primitive, in gate equivalents. `at_memory` is that of one that asks a memory that takes time. A fork, a
    merge and a join have as much for each branch.

    The areas are means of what yosys makes of the modules of small models, and of random graphs for what these lack:
    `tools/area_weights.py` writes them. A `select` has no circuit, and counts like an accumulator.
    """

    at_once: int
    at_memory: int = 0


DEFAULT_UNIT = Unit()
MEMORY_UNIT = Unit("memory")
HOP_UNIT = Unit("hop")
"""The unit of a node that takes a cycle on every machine."""

Grain: TypeAlias = Literal["element", "fiber", "fold", "tensor"]
"""The part of a stream that a node must see as a whole, so that lanes cannot share it: an element, a fiber, a fiber that it folds
in any grouping, or the whole tensor."""

Role: TypeAlias = Literal["source", "level", "value", "join", "move", "lane", "compute", "write"]
"""The purpose of a node: it starts the streams, emits coordinates or references of a level, reads values, combines or separates
coordinates, moves elements, deals lanes, computes, or writes."""


# Nodes ----------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Node:
    """The base class of all primitives. The `name` of a node is unique in its graph.

    The facts below have no defaults where a wrong default would be a silent error: a primitive that lacks one is refused by
    `tests/samml/test_primitives.py`, and by `NotImplementedError` where it is asked for.
    """

    op: ClassVar[str] = ""
    """The name of the primitive in MLIR, in statistics and in messages."""
    word: ClassVar[str] = ""
    """The name of the primitive in the text form, if that is not `op`; else ""."""
    streams: ClassVar[str] = ""
    """The inputs and outputs by name, kind and depth, as `stream_patterns` reads them, with the names in the MLIR."""
    role: ClassVar[Role]
    """The purpose of the primitive, which drawings and reports show."""
    grain: ClassVar[Grain]
    """The part of a stream that the primitive must see as a whole."""
    holds_back: ClassVar[bool] = False
    """Whether the primitive emits nothing of a fiber before the fiber has ended."""
    gives_parents: ClassVar[bool] = False
    """Whether the primitive emits references in the order of a level, so that a memory may prefetch the data at them."""
    area: ClassVar[Area]
    """The area of the primitive's rules in a circuit."""
    stage_slots: ClassVar[int] = 0
    """The slots of the FIFO of each input where the graph states no depth, beside one for each cycle of its writer's latency after the
    first; 0: as many as the machine says."""
    beyond_comal: ClassVar[str] = ""
    """The work of the primitive as text, if the simulator Comal (`rules: comal`) has no cycles for it; else ""."""

    name: str
    inputs: tuple[Port, ...]

    def check(self, c: NodeCheck) -> Sequence[OutputFacts]:
        """Return the facts of the outputs, given the facts of the inputs in `c`. Refuse a node that docs/reference/streams.md does not
        allow by `c`, which raises `GraphError`."""
        raise NotImplementedError(f"primitive `{self.op}` does not say what a well-formed one is")

    # Streams ----------------------------------------------------------------------------------------------------------------

    def takes(self) -> tuple[str, ...]:
        """Return the kinds that each input may have, such as `crd` or `ref or val`, one for each input."""
        if not self.streams:
            raise NotImplementedError(f"primitive `{self.op}` does not declare what it takes")
        return input_kinds(self.streams)

    def outputs(self, inputs: Sequence[StreamType]) -> tuple[StreamType, ...]:
        """Return the types of the outputs, given the types of the inputs, which `verify` has checked: those that `streams` declares, if
        the depth of the first input is `d` there, and values are those of an input."""
        if not self.streams:
            raise NotImplementedError(f"primitive `{self.op}` does not declare its outputs")
        depth = inputs[0].depth if inputs else 0
        types = output_types(self.streams)
        return tuple([inputs[kind] if isinstance(kind, int) else StreamType(kind, depth + more) for kind, more in types])

    def typed(self, inputs: Sequence[StreamType], tensors: Mapping[str, TensorDecl]) -> tuple[StreamType, ...]:
        """Return the types of the outputs, where values that are read from `tensors` have the tiles of their tensors."""
        return self.outputs(inputs)

    def port_names(self) -> tuple[str, ...]:
        """Return the names of the outputs, for printing."""
        return output_names(self.streams)

    @property
    def ports(self) -> tuple[Port, ...]:
        """The outputs, by number."""
        return tuple(Port(self.name, k) for k in range(len(self.port_names())))

    def carries(self) -> tuple[tuple[int, ...], ...]:
        """Return, for each output, the inputs whose elements it passes on unchanged, perhaps repeated, dealt out or in another
        order. With several inputs, each element comes from one of them. With no input, the node makes the elements."""
        raise NotImplementedError(f"primitive `{self.op}` does not declare what it carries")

    def bounds(self, inputs: Sequence[int], tensors: Mapping[str, TensorDecl]) -> tuple[int, ...]:
        """Return an exclusive upper bound of the coordinates of each output, given those of the inputs; for a full level, its size."""
        return tuple(max([inputs[k] for k in carried]) if carried else UNBOUNDED for carried in self.carries())

    def nested(self, around: tuple[T, ...], depth: int, own: T, mixed: T) -> tuple[T, ...]:
        """Return labels for the levels of the deepest output, outermost first; other outputs have the outer of these levels.

        `around` labels the levels of the inputs, and `depth` is the depth of the first input. `own` is the label of a level that
        this node makes, and `mixed` the label of a level made of two levels or of a part of one."""
        return around

    def watched(self, inputs: int) -> Sequence[int]:
        """Return which of the first `inputs` inputs every firing inspects, whether or not it takes a token from them."""
        return ()

    # Work -------------------------------------------------------------------------------------------------------------------

    def unit(self, tensors: Mapping[str, TensorDecl]) -> Unit:
        """Return the hardware that the node runs on."""
        return DEFAULT_UNIT

    @property
    def operator(self) -> str:
        """The operator that the node applies to every value, whose FLOPs are counted; "" if it computes nothing."""
        return ""

    @property
    def rounds(self) -> bool:
        """Whether the exact result of the node's operator on 32-bit floats may need rounding to such a float."""
        return bool(self.operator)

    @property
    def by_value(self) -> bool:
        """Whether values, and not coordinates alone, decide how often the node fires and which tokens it passes on."""
        return False


MOST_STREAMS: Final = 1 << 12
"""The most streams that a node may have on one side."""


def require_streams(node: str, count: int) -> None:
    """Raise `GraphError` if a node has more than `MOST_STREAMS` inputs, or outputs, before any code enumerates them."""
    if count > MOST_STREAMS:
        raise GraphError(f"node `{node}` has {count:,} streams on one side; {MOST_STREAMS:,} are the most")


@dataclass(frozen=True, slots=True)
class Pointwise(Node):
    """A trait of a node whose inputs and single output are all aligned token by token: every firing makes one token."""

    grain: ClassVar[Grain] = "element"

    def carries(self) -> tuple[tuple[int, ...], ...]:
        return ((),)


@dataclass(frozen=True, slots=True)
class Workspace(Node):
    """A trait of a node that takes coordinates of several levels, outermost first, and values. It collects each fiber of the outermost
    level (or a part of it) in a workspace, and emits what that then holds, in the order of the coordinates, when the fiber ends."""

    holds_back: ClassVar[bool] = True

    def watched(self, inputs: int) -> Sequence[int]:
        return (inputs - 1,)


@dataclass(frozen=True, slots=True)
class Filter(Node):
    """A trait of a node that takes coordinates of several levels, outermost first, and a stream that is aligned with the innermost. It
    gives the same streams without some of the entries."""

    def outputs(self, inputs: Sequence[StreamType]) -> tuple[StreamType, ...]:
        return tuple(inputs)

    def port_names(self) -> tuple[str, ...]:
        crds = len(self.inputs) - 1
        return (*(["crd"] if crds == 1 else [f"crd{k}" for k in range(crds)]), "val")

    def carries(self) -> tuple[tuple[int, ...], ...]:
        return tuple((k,) for k in range(len(self.inputs)))

    def watched(self, inputs: int) -> Sequence[int]:
        return (inputs - 1,)


@dataclass(frozen=True, slots=True)
class TensorUser(Node):
    """A trait of a node that uses a declared tensor."""

    tensor: str = field(metadata=attribute("tensor"))

    def uses_storage(self, tensors: Mapping[str, TensorDecl]) -> bool:
        """Return whether the node reads or writes stored data of the tensor, in memory or in the configuration."""
        return True

    def asks_memory(self, tensors: Mapping[str, TensorDecl]) -> bool:
        """Return whether the data that the node reads or writes are in the memory, and not in the configuration."""
        return self.uses_storage(tensors) and not tensors[self.tensor].resident

    def unit(self, tensors: Mapping[str, TensorDecl]) -> Unit:
        return MEMORY_UNIT if self.asks_memory(tensors) else DEFAULT_UNIT


@dataclass(frozen=True, slots=True)
class TensorReader(TensorUser):
    """A trait of a node that reads its tensor, from memory or from the configuration."""


@dataclass(frozen=True, slots=True)
class TensorWriter(TensorUser):
    """A trait of a node that writes its tensor to memory and makes no streams."""

    role: ClassVar[Role] = "write"
    grain: ClassVar[Grain] = "tensor"

    def carries(self) -> tuple[tuple[int, ...], ...]:
        return ()

    def unit(self, tensors: Mapping[str, TensorDecl]) -> Unit:
        return MEMORY_UNIT


def operand_bits(node: Node, bits: Mapping[Port, int]) -> int:
    """Return the bits of the elements of the widest stream of values that a node reads, or 32 if it reads none. `bits` has the
    bits of the elements of streams of values."""
    return max([bits[port] for port in node.inputs if port in bits], default=32) if bits else 32


def upstream(nodes: Mapping[str, Node], ports: Iterable[Port]) -> set[str]:
    """Return the names of the nodes of `ports`, and of all nodes that these read, directly or indirectly."""
    names: set[str] = set()
    waiting = [port.node for port in ports]
    while waiting:
        name = waiting.pop()
        if name not in names:
            names.add(name)
            waiting += [port.node for port in nodes[name].inputs]
    return names


def stream_name(node: Node, output: int) -> str:
    """Return the name of an output stream of a node, such as `A_i.crd`, or the name of the node if it has one output."""
    names = node.port_names()
    return node.name if len(names) == 1 else f"{node.name}.{names[output]}"


def family_rows(package: str, path: Iterable[str]) -> dict[type[Node], Any]:
    """Return the joined rows of the tables `RULES` in a package's modules, each with a row for every primitive of a family."""
    modules = [import_module(f"{package}.{found.name}") for found in iter_modules(path)]
    return {primitive: row for module in modules for primitive, row in vars(module).get("RULES", {}).items()}


def require_entry(table: Mapping[type[Node], T], primitive: type[Node], title: str) -> T:
    """Return the row of a primitive in a table; `title` names the row in the `GraphError` if there is none."""
    if primitive not in table:
        raise GraphError(
            f"the primitive `{primitive.op or primitive.__name__}` has no {title}",
            hint="docs/develop/extending.md lists what a primitive needs",
        )
    return table[primitive]


N = TypeVar("N", bound=Node)


def content(node: Node) -> Hashable:
    """Return a key of all of a node but its name. Two nodes with equal contents compute the same streams."""
    return _key(node, ("name",))


def work(node: Node) -> Hashable:
    """Return a key of a node without its name and inputs. Nodes with equal work compute the same from equal streams."""
    return _key(node, ("name", "inputs"))


def settings(node: Node) -> Hashable:
    """Return a key of all of a node but its name, the names of its inputs, and the name of its tensor."""
    return _key(node, ("name", "inputs", "tensor"))


def with_names(node: N, name: str, inputs: tuple[Port, ...], tensor: str = "") -> N:
    """Return a node under another name, with other inputs, and with another `tensor` if it uses one."""
    primitive: Any = type(node)
    own = [getattr(node, field) for field in _fields(primitive, ("name", "inputs", "tensor"))]
    renamed: N = primitive(name, inputs, tensor, *own) if isinstance(node, TensorUser) else primitive(name, inputs, *own)
    return renamed


def _key(node: Node, left_out: tuple[str, ...]) -> Hashable:
    primitive: Any = type(node)
    return _reader(primitive, left_out)(node)


@cache
def _reader(primitive: Any, left_out: tuple[str, ...]) -> Callable[[Node], Hashable]:
    """Return the function that reads the class of a primitive, and its fields."""
    return attrgetter("__class__", *_fields(primitive, left_out))


@cache
def _fields(primitive: Any, left_out: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f.name for f in fields(primitive) if f.name not in left_out)
