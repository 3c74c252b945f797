"""The primitives: one class for each node type, with all facts that the rest of the compiler needs (`node` lists these facts).

The meaning of every primitive is in the project's stream contract (docs/streams.md), its time in `fuseflow.sim.reference`;
`fuseflow.sim.engine` is the same, fast. docs/extending.md says how to add one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal, TypeAlias, TypeVar, get_args

from fuseflow.ops import canonical, reducer
from fuseflow.samml.node import (
    DEFAULT_UNIT,
    MEMORY_UNIT,
    UNBOUNDED,
    Attribute,
    Grain,
    Node,
    Pointwise,
    Role,
    StreamType,
    TensorDecl,
    TensorReader,
    TensorUser,
    TensorWriter,
    Unit,
    Workspace,
    attribute,
    attributes_of,
)
from fuseflow.tile_ops import ALU_FUNCTIONS, result_shape

L = TypeVar("L")


@dataclass(frozen=True, slots=True)
class Root(Node):
    """`0 D`: one reference to the whole of every tensor."""

    op: ClassVar[str] = "root"
    role: ClassVar[Role] = "source"
    grain: ClassVar[Grain] = "element"
    ports: ClassVar[tuple[str, ...]] = ("ref",)

    def outputs(self, inputs: Sequence[StreamType]) -> tuple[StreamType, ...]:
        return (StreamType("ref", 0),)

    def takes(self) -> tuple[str, ...]:
        return ()

    def carries(self) -> tuple[tuple[int, ...], ...]:
        return ((),)


@dataclass(frozen=True, slots=True)
class Scan(TensorReader):
    """ref(d) -> crd(d+1), ref(d+1): the fiber of `tensor` at storage level `level` for every reference.

    `sequential`: the references come straight from this tensor's own parent scan, so a memory may prefetch.
    """

    op: ClassVar[str] = "scan"
    role: ClassVar[Role] = "level"
    grain: ClassVar[Grain] = "element"
    ports: ClassVar[tuple[str, ...]] = ("crd", "ref")

    level: int = field(metadata=attribute("level"))
    sequential: bool = field(default=False, metadata=attribute("flag"))

    def outputs(self, inputs: Sequence[StreamType]) -> tuple[StreamType, ...]:
        d = inputs[0].depth + 1
        return StreamType("crd", d), StreamType("ref", d)

    def takes(self) -> tuple[str, ...]:
        return ("ref",)

    def carries(self) -> tuple[tuple[int, ...], ...]:
        return ((), ())

    def bounds(self, inputs: Sequence[int], tensors: Mapping[str, TensorDecl]) -> tuple[int, ...]:
        return tensors[self.tensor].size(self.level), UNBOUNDED

    def nested(self, around: tuple[L, ...], depth: int, own: L, mixed: L) -> tuple[L, ...]:
        return (*around, own)

    def unit(self, tensors: Mapping[str, TensorDecl]) -> Unit:
        return MEMORY_UNIT if tensors[self.tensor].format.levels[self.level].stored else DEFAULT_UNIT


@dataclass(frozen=True, slots=True)
class Range(Node):
    """ref(d) -> crd(d+1): all coordinates 0..size-1 for every reference (`N` included); no tensor, no memory."""

    op: ClassVar[str] = "range"
    role: ClassVar[Role] = "level"
    grain: ClassVar[Grain] = "element"
    ports: ClassVar[tuple[str, ...]] = ("crd",)

    size: int = field(metadata=attribute("integer"))

    def outputs(self, inputs: Sequence[StreamType]) -> tuple[StreamType, ...]:
        return (StreamType("crd", inputs[0].depth + 1),)

    def takes(self) -> tuple[str, ...]:
        return ("ref",)

    def carries(self) -> tuple[tuple[int, ...], ...]:
        return ((),)

    def bounds(self, inputs: Sequence[int], tensors: Mapping[str, TensorDecl]) -> tuple[int, ...]:
        return (self.size,)

    def nested(self, around: tuple[L, ...], depth: int, own: L, mixed: L) -> tuple[L, ...]:
        return (*around, own)


@dataclass(frozen=True, slots=True)
class Locate(Pointwise, TensorUser):
    """crd(d), ref(d) -> ref(d): random access into a level, token by token: in a dense one parent * size + coordinate; `N` where either is.

    Without its second input it locates the outermost level, whose only parent is reference 0. If that is compressed, the node reads its
    coordinates once, before the first token, and keeps them.
    """

    op: ClassVar[str] = "locate"
    role: ClassVar[Role] = "level"
    ports: ClassVar[tuple[str, ...]] = ("ref",)

    level: int = field(metadata=attribute("level"))

    def outputs(self, inputs: Sequence[StreamType]) -> tuple[StreamType, ...]:
        return (StreamType("ref", inputs[0].depth),)

    def takes(self) -> tuple[str, ...]:
        # A coordinate that was repeated is of kind ref, and indexes nothing.
        return ("crd or ref", "ref")[: max(1, len(self.inputs))]

    def carries(self) -> tuple[tuple[int, ...], ...]:
        return ((),)

    def asks_memory(self, tensors: Mapping[str, TensorDecl]) -> bool:
        return tensors[self.tensor].format.levels[self.level].stored

    def keeps(self, tensors: Mapping[str, TensorDecl]) -> bool:
        """Return whether the node keeps the coordinates of its level, and looks coordinates up in them."""
        return tensors[self.tensor].format.levels[self.level].kept

    def unit(self, tensors: Mapping[str, TensorDecl]) -> Unit:
        return MEMORY_UNIT if self.asks_memory(tensors) else DEFAULT_UNIT


@dataclass(frozen=True, slots=True)
class Join(Node):
    """Sorted merge of several sides at one loop. Side s brings a coordinate stream and `payloads[s]` payload streams.

    Inputs: crd, payloads of side 0, crd, payloads of side 1, ... Outputs: crd, then every payload in that order.
    `intersect`: coordinates on all sides; `union`: on any; `left`: those of side 0. Absent payloads are `N`.
    """

    op: ClassVar[str] = "join"
    role: ClassVar[Role] = "join"
    grain: ClassVar[Grain] = "fiber"

    kind: Literal["intersect", "union", "left"] = field(metadata=attribute("word"))
    payloads: tuple[int, ...]

    def sides(self) -> tuple[tuple[int, tuple[int, ...]], ...]:
        """Return, for each side, the input position of its coordinates and those of its payloads."""
        sides, at = [], 0
        for count in self.payloads:
            sides.append((at, tuple(range(at + 1, at + 1 + count))))
            at += 1 + count
        return tuple(sides)

    def outputs(self, inputs: Sequence[StreamType]) -> tuple[StreamType, ...]:
        payloads = [inputs[p] for _, side in self.sides() for p in side]
        return (StreamType("crd", inputs[0].depth), *payloads)

    def port_names(self) -> tuple[str, ...]:
        return ("crd", *(f"out{k}" for k in range(sum(self.payloads))))

    def takes(self) -> tuple[str, ...]:
        return tuple(kind for count in self.payloads for kind in ("crd", *["ref or val"] * count))

    def carries(self) -> tuple[tuple[int, ...], ...]:
        return ((), *((payload,) for _, payloads in self.sides() for payload in payloads))

    def bounds(self, inputs: Sequence[int], tensors: Mapping[str, TensorDecl]) -> tuple[int, ...]:
        sides = [inputs[crd] for crd, _ in self.sides()]
        joined = {"intersect": min(sides), "union": max(sides), "left": sides[0]}[self.kind]
        return (joined, *(inputs[payload] for _, payloads in self.sides() for payload in payloads))

    def watched(self, inputs: int) -> Sequence[int]:
        return range(inputs)


@dataclass(frozen=True, slots=True)
class Align(Node):
    """old crd(d), new crd(d), x(d+e) -> x(d+e): carries the subtree of x below each coordinate of `old` to the same coordinate of
    `new`. A coordinate only in `old` loses its subtree, one only in `new` gets an empty one."""

    op: ClassVar[str] = "align"
    role: ClassVar[Role] = "join"
    grain: ClassVar[Grain] = "fiber"
    ports: ClassVar[tuple[str, ...]] = ("out",)

    def outputs(self, inputs: Sequence[StreamType]) -> tuple[StreamType, ...]:
        return (inputs[2],)

    def takes(self) -> tuple[str, ...]:
        return ("crd", "crd", "any")

    def carries(self) -> tuple[tuple[int, ...], ...]:
        return ((2,),)

    def watched(self, inputs: int) -> Sequence[int]:
        return 0, 1


@dataclass(frozen=True, slots=True)
class Repeat(Node):
    """x(d-1), signal(d) -> x(d): x once for every value of the signal's fiber; the stops are the signal's."""

    op: ClassVar[str] = "repeat"
    role: ClassVar[Role] = "move"
    grain: ClassVar[Grain] = "element"
    ports: ClassVar[tuple[str, ...]] = ("out",)

    def outputs(self, inputs: Sequence[StreamType]) -> tuple[StreamType, ...]:
        # A repeated coordinate need not ascend: it is of kind ref.
        return (StreamType("val" if inputs[0].kind == "val" else "ref", inputs[1].depth, inputs[0].tile),)

    def takes(self) -> tuple[str, ...]:
        return ("any", "any")

    def carries(self) -> tuple[tuple[int, ...], ...]:
        return ((0,),)

    def watched(self, inputs: int) -> Sequence[int]:
        return (inputs - 1,)


@dataclass(frozen=True, slots=True)
class Load(Pointwise, TensorReader):
    """ref(d) -> val(d): the value array of `tensor`; `N` gives its implicit value."""

    op: ClassVar[str] = "load"
    role: ClassVar[Role] = "value"
    ports: ClassVar[tuple[str, ...]] = ("val",)

    sequential: bool = field(default=False, metadata=attribute("flag"))

    def outputs(self, inputs: Sequence[StreamType]) -> tuple[StreamType, ...]:
        return (StreamType("val", inputs[0].depth),)

    def typed(self, inputs: Sequence[StreamType], tensors: Mapping[str, TensorDecl]) -> tuple[StreamType, ...]:
        tile = tensors[self.tensor].tile if self.tensor in tensors else ()
        return (StreamType("val", inputs[0].depth, tile),)

    def takes(self) -> tuple[str, ...]:
        return ("ref",)

    def carries(self) -> tuple[tuple[int, ...], ...]:
        return ((),)

    def unit(self, tensors: Mapping[str, TensorDecl]) -> Unit:
        return MEMORY_UNIT


@dataclass(frozen=True, slots=True)
class Operand:
    """An operand slot of an `Alu`: the next input stream with the implicit value that `N` takes, or a constant."""

    value: float
    constant: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", canonical(self.value))


@dataclass(frozen=True, slots=True)
class Alu(Pointwise):
    """val(d)... -> val(d): a pointwise operator, or one on tiles (`tile_ops`); inputs are aligned token by token."""

    op: ClassVar[str] = "alu"
    role: ClassVar[Role] = "compute"
    ports: ClassVar[tuple[str, ...]] = ("val",)

    function: str = field(metadata=attribute("word"))
    operands: tuple[Operand, ...] = field(metadata=attribute("slots"))

    def outputs(self, inputs: Sequence[StreamType]) -> tuple[StreamType, ...]:
        tile = result_shape(self.function, [x.tile for x in inputs])
        return (StreamType("val", inputs[0].depth, tile or ()),)

    def takes(self) -> tuple[str, ...]:
        return ("val",) * sum(not slot.constant for slot in self.operands)

    def carries(self) -> tuple[tuple[int, ...], ...]:
        return ((),)

    def unit(self, tensors: Mapping[str, TensorDecl]) -> Unit:
        return Unit(ALU_FUNCTIONS[self.function].unit, self.function)

    @property
    def operator(self) -> str:
        return self.function


@dataclass(frozen=True, slots=True)
class Reduce(Node):
    """val(d) -> val(d-1): folds each innermost fiber in token order; an empty one gives the identity."""

    op: ClassVar[str] = "reduce"
    role: ClassVar[Role] = "compute"
    grain: ClassVar[Grain] = "fold"
    holds_back: ClassVar[bool] = True
    ports: ClassVar[tuple[str, ...]] = ("val",)

    function: str = field(metadata=attribute("word"))

    def outputs(self, inputs: Sequence[StreamType]) -> tuple[StreamType, ...]:
        return (StreamType("val", inputs[0].depth - 1, inputs[0].tile),)

    def takes(self) -> tuple[str, ...]:
        return ("val",)

    def carries(self) -> tuple[tuple[int, ...], ...]:
        return ((0,),)

    def nested(self, around: tuple[L, ...], depth: int, own: L, mixed: L) -> tuple[L, ...]:
        return around[:-1]

    def unit(self, tensors: Mapping[str, TensorDecl]) -> Unit:
        return Unit(reducer(self.function).unit, self.function, pipelined=True)

    @property
    def operator(self) -> str:
        return self.function


@dataclass(frozen=True, slots=True)
class Accumulate(Workspace):
    """crd_0(d) .. crd_k(d+k), val(d+k) -> crd_1(d) .. crd_k(d+k-1), val(d+k-1): the higher-order reduction over crd_0, one
    workspace for each fiber of crd_0, keyed by the other coordinates and emitted in sorted order when that fiber ends."""

    op: ClassVar[str] = "accumulate"
    role: ClassVar[Role] = "compute"
    grain: ClassVar[Grain] = "fold"

    function: str = field(metadata=attribute("word"))
    order: int = field(metadata=attribute("integer", keyed=True))

    def outputs(self, inputs: Sequence[StreamType]) -> tuple[StreamType, ...]:
        d = inputs[0].depth
        return (*(StreamType("crd", d + k) for k in range(self.order)), StreamType("val", d + self.order - 1, inputs[-1].tile))

    def port_names(self) -> tuple[str, ...]:
        return (*(["crd"] if self.order == 1 else [f"crd{k}" for k in range(1, self.order + 1)]), "val")

    def takes(self) -> tuple[str, ...]:
        return (*["crd"] * (self.order + 1), "val")

    def carries(self) -> tuple[tuple[int, ...], ...]:
        return tuple((k,) for k in range(1, self.order + 2))

    def nested(self, around: tuple[L, ...], depth: int, own: L, mixed: L) -> tuple[L, ...]:
        return (*around[: depth - 1], *around[depth:])

    def unit(self, tensors: Mapping[str, TensorDecl]) -> Unit:
        return Unit(reducer(self.function).unit, self.function, pipelined=True)

    @property
    def operator(self) -> str:
        return self.function


@dataclass(frozen=True, slots=True)
class Permute(Workspace):
    """crd_0(d) .. crd_m-1(d+m-1), val(d+m-1) -> the same types, m >= 2: the same entries with their m innermost levels in another
    order. Level p of the output is level `order[p]` of the input, 0 being the outermost of the m. One workspace for each fiber of crd_0
    (so for each element of the level around it), keyed by all m coordinates, emitted in sorted order when that fiber ends."""

    op: ClassVar[str] = "permute"
    role: ClassVar[Role] = "move"
    grain: ClassVar[Grain] = "fiber"
    beyond_comal: ClassVar[str] = "permutes the levels of a tensor"

    order: tuple[int, ...] = field(metadata=attribute("integers", keyed=True))

    def outputs(self, inputs: Sequence[StreamType]) -> tuple[StreamType, ...]:
        return tuple(inputs)

    def port_names(self) -> tuple[str, ...]:
        return (*(f"crd{k}" for k in range(len(self.inputs) - 1)), "val")

    def takes(self) -> tuple[str, ...]:
        return (*["crd"] * len(self.order), "val")

    def carries(self) -> tuple[tuple[int, ...], ...]:
        return (*((level,) for level in self.order), (len(self.order),))

    def nested(self, around: tuple[L, ...], depth: int, own: L, mixed: L) -> tuple[L, ...]:
        outer, inner = around[: depth - 1], around[depth - 1 :]
        return (*outer, *(inner[level] for level in self.order))

    def unit(self, tensors: Mapping[str, TensorDecl]) -> Unit:
        return Unit(reducer("sum").unit, "sum", pipelined=True)  # an accumulator with nothing to add


@dataclass(frozen=True, slots=True)
class Drop(Node):
    """crds (outermost first), val -> same. `value` None: `N` values leave, else entries equal to it too. A coordinate below which
    nothing is left leaves with it, all levels at once. The last stream may be of any kind, aligned with the innermost crds."""

    op: ClassVar[str] = "drop"
    role: ClassVar[Role] = "join"
    grain: ClassVar[Grain] = "fiber"

    value: float | None = field(default=None, metadata=attribute("number or none", keyed=True))

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", None if self.value is None else canonical(self.value))

    def outputs(self, inputs: Sequence[StreamType]) -> tuple[StreamType, ...]:
        return tuple(inputs)

    def port_names(self) -> tuple[str, ...]:
        crds = len(self.inputs) - 1
        return (*(["crd"] if crds == 1 else [f"crd{k}" for k in range(crds)]), "val")

    def takes(self) -> tuple[str, ...]:
        return (*["crd"] * (len(self.inputs) - 1), "any" if self.value is None else "val")

    def carries(self) -> tuple[tuple[int, ...], ...]:
        return tuple((k,) for k in range(len(self.inputs)))

    def watched(self, inputs: int) -> Sequence[int]:
        return (inputs - 1,)

    @property
    def by_value(self) -> bool:
        return self.value is not None


@dataclass(frozen=True, slots=True)
class Flatten(Node):
    """crd(d), crd(d+1) -> crd(d): two levels as one, coordinate outer * size + inner."""

    op: ClassVar[str] = "flatten"
    role: ClassVar[Role] = "join"
    grain: ClassVar[Grain] = "fiber"
    ports: ClassVar[tuple[str, ...]] = ("crd",)

    size: int = field(metadata=attribute("integer"))

    def outputs(self, inputs: Sequence[StreamType]) -> tuple[StreamType, ...]:
        return (StreamType("crd", inputs[0].depth),)

    def takes(self) -> tuple[str, ...]:
        return ("crd", "crd")

    def carries(self) -> tuple[tuple[int, ...], ...]:
        return ((),)

    def bounds(self, inputs: Sequence[int], tensors: Mapping[str, TensorDecl]) -> tuple[int, ...]:
        outer, inner = inputs
        return (max(outer - 1, 0) * self.size + inner,)

    def nested(self, around: tuple[L, ...], depth: int, own: L, mixed: L) -> tuple[L, ...]:
        return (*around[:-2], mixed)

    def watched(self, inputs: int) -> Sequence[int]:
        return (inputs - 1,)


@dataclass(frozen=True, slots=True)
class SplitLevel(Node):
    """crd(d) -> crd(d), crd(d+1): one level as two, outer = coordinate // size, inner = coordinate % size."""

    op: ClassVar[str] = "split"
    role: ClassVar[Role] = "join"
    grain: ClassVar[Grain] = "fiber"
    ports: ClassVar[tuple[str, ...]] = ("outer", "inner")

    size: int = field(metadata=attribute("integer"))

    def outputs(self, inputs: Sequence[StreamType]) -> tuple[StreamType, ...]:
        d = inputs[0].depth
        return StreamType("crd", d), StreamType("crd", d + 1)

    def takes(self) -> tuple[str, ...]:
        return ("crd",)

    def carries(self) -> tuple[tuple[int, ...], ...]:
        return ((), ())

    def bounds(self, inputs: Sequence[int], tensors: Mapping[str, TensorDecl]) -> tuple[int, ...]:
        return -(-inputs[0] // self.size), min(inputs[0], self.size)

    def nested(self, around: tuple[L, ...], depth: int, own: L, mixed: L) -> tuple[L, ...]:
        return (*around[:-1], mixed, mixed)


@dataclass(frozen=True, slots=True)
class Fork(Node):
    """x(d) -> one x(d) for each lane: the values go to the lanes in turn, the turn running on across fibers; stops go to all."""

    op: ClassVar[str] = "fork"
    role: ClassVar[Role] = "lane"
    grain: ClassVar[Grain] = "fiber"

    lanes: int = field(metadata=attribute("integer"))

    def outputs(self, inputs: Sequence[StreamType]) -> tuple[StreamType, ...]:
        return (inputs[0],) * self.lanes

    def port_names(self) -> tuple[str, ...]:
        return tuple(f"lane{k}" for k in range(self.lanes))

    def takes(self) -> tuple[str, ...]:
        return ("any",)

    def carries(self) -> tuple[tuple[int, ...], ...]:
        return ((0,),) * self.lanes


@dataclass(frozen=True, slots=True)
class Merge(Node):
    """x(d) of each lane -> x(d): the inverse of the fork that dealt the elements `levels` levels above the values of x, in its turn.
    An element is a value (0), or a list of that many levels."""

    op: ClassVar[str] = "merge"
    role: ClassVar[Role] = "lane"
    grain: ClassVar[Grain] = "fiber"
    ports: ClassVar[tuple[str, ...]] = ("out",)

    levels: int = field(metadata=attribute("integer", keyed=True))

    @property
    def lanes(self) -> int:
        return len(self.inputs)

    def outputs(self, inputs: Sequence[StreamType]) -> tuple[StreamType, ...]:
        return (inputs[0],)

    def takes(self) -> tuple[str, ...]:
        return ("any",) * len(self.inputs)

    def carries(self) -> tuple[tuple[int, ...], ...]:
        return (tuple(range(len(self.inputs))),)


@dataclass(frozen=True, slots=True)
class WriteLevel(TensorWriter):
    """crd(d) -> memory: level `level` of `tensor`. Compressed levels append; dense ones address parent * size + coordinate."""

    op: ClassVar[str] = "write"

    level: int = field(metadata=attribute("level"))

    def outputs(self, inputs: Sequence[StreamType]) -> tuple[StreamType, ...]:
        return ()

    def takes(self) -> tuple[str, ...]:
        return ("crd",)


@dataclass(frozen=True, slots=True)
class WriteValues(TensorWriter):
    """val(d) -> memory: the values of `tensor`, where its level writers address them."""

    op: ClassVar[str] = "write_values"
    word: ClassVar[str] = "write"

    tensor: str = field(metadata=attribute("values"))

    def outputs(self, inputs: Sequence[StreamType]) -> tuple[StreamType, ...]:
        return ()

    def takes(self) -> tuple[str, ...]:
        return ("val",)


Primitive: TypeAlias = (
    Root | Scan | Range | Locate | Join | Align | Repeat | Load | Alu | Reduce | Accumulate | Permute | Drop | Flatten
    | SplitLevel | Fork | Merge | WriteLevel | WriteValues
)  # fmt: skip
"""The union of all primitives: a `match` over it that ends in `assert_never` is complete."""

NODE_TYPES: tuple[type[Primitive], ...] = get_args(Primitive)

ATTRIBUTES: Mapping[type[Node], tuple[Attribute, ...]] = {kind: attributes_of(kind) for kind in NODE_TYPES}
"""The attributes of each primitive, in the order in which the written forms show them."""
