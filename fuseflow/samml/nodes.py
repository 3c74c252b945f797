"""The primitives: one class a node type.

The meaning of every primitive is in the project's stream contract (docs/streams.md), its time in `fuseflow.sim.reference`;
`fuseflow.sim.engine` is the same, fast. Adding a primitive is adding a class here, a rule there. What a graph is made of besides
them (`graph`) is found here too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from fuseflow.samml.graph import Edge as Edge
from fuseflow.samml.graph import Graph as Graph
from fuseflow.samml.graph import Kind as Kind
from fuseflow.samml.graph import Node as Node
from fuseflow.samml.graph import Port as Port
from fuseflow.samml.graph import StreamType as StreamType
from fuseflow.samml.graph import TensorDecl as TensorDecl
from fuseflow.samml.graph import show_tile as show_tile
from fuseflow.samml.graph import stream_name as stream_name
from fuseflow.samml.graph import upstream as upstream
from fuseflow.tile_ops import result_tile


@dataclass(frozen=True, slots=True)
class Root(Node):
    """`0 D`: one reference to the whole of every tensor."""

    op: ClassVar[str] = "root"
    ports: ClassVar[tuple[str, ...]] = ("ref",)

    def outputs(self, inputs: Sequence[StreamType]) -> tuple[StreamType, ...]:
        return (StreamType("ref", 0),)


@dataclass(frozen=True, slots=True)
class Scan(Node):
    """ref(d) -> crd(d+1), ref(d+1): the fiber of `tensor` at storage level `level` for every reference.

    `sequential`: the references come straight from this tensor's own parent scan, so a memory may prefetch.
    """

    op: ClassVar[str] = "scan"
    ports: ClassVar[tuple[str, ...]] = ("crd", "ref")

    tensor: str
    level: int
    sequential: bool = False

    def outputs(self, inputs: Sequence[StreamType]) -> tuple[StreamType, ...]:
        d = inputs[0].depth + 1
        return StreamType("crd", d), StreamType("ref", d)


@dataclass(frozen=True, slots=True)
class Range(Node):
    """ref(d) -> crd(d+1): all coordinates 0..size-1 for every reference (`N` included); no tensor, no memory."""

    op: ClassVar[str] = "range"
    ports: ClassVar[tuple[str, ...]] = ("crd",)

    size: int

    def outputs(self, inputs: Sequence[StreamType]) -> tuple[StreamType, ...]:
        return (StreamType("crd", inputs[0].depth + 1),)


@dataclass(frozen=True, slots=True)
class Locate(Node):
    """crd(d), ref(d) -> ref(d): random access into a dense level, parent * size + coordinate, token by token; `N` where either is.

    Without its second input it locates the outermost level, whose only parent is reference 0: the coordinate is the reference.
    """

    op: ClassVar[str] = "locate"
    ports: ClassVar[tuple[str, ...]] = ("ref",)

    tensor: str
    level: int

    def outputs(self, inputs: Sequence[StreamType]) -> tuple[StreamType, ...]:
        return (StreamType("ref", inputs[0].depth),)


@dataclass(frozen=True, slots=True)
class Join(Node):
    """Sorted merge of several sides at one loop. Side s brings a coordinate stream and `payloads[s]` payload streams.

    Inputs: crd, payloads of side 0, crd, payloads of side 1, ... Outputs: crd, then every payload in that order.
    `intersect`: coordinates on all sides; `union`: on any; `left`: those of side 0. Absent payloads are `N`.
    """

    op: ClassVar[str] = "join"

    kind: Literal["intersect", "union", "left"]
    payloads: tuple[int, ...]

    def sides(self) -> tuple[tuple[int, tuple[int, ...]], ...]:
        """For each side: input position of its coordinates, and of its payloads."""
        found, at = [], 0
        for count in self.payloads:
            found.append((at, tuple(range(at + 1, at + 1 + count))))
            at += 1 + count
        return tuple(found)

    def outputs(self, inputs: Sequence[StreamType]) -> tuple[StreamType, ...]:
        payloads = [inputs[p] for _, side in self.sides() for p in side]
        return (StreamType("crd", inputs[0].depth), *payloads)

    def port_names(self) -> tuple[str, ...]:
        return ("crd", *(f"out{k}" for k in range(sum(self.payloads))))


@dataclass(frozen=True, slots=True)
class Align(Node):
    """old crd(d), new crd(d), x(d+e) -> x(d+e): carries the subtree of x below each coordinate of `old` to the same coordinate of
    `new`. A coordinate only in `old` loses its subtree, one only in `new` gets an empty one."""

    op: ClassVar[str] = "align"
    ports: ClassVar[tuple[str, ...]] = ("out",)

    def outputs(self, inputs: Sequence[StreamType]) -> tuple[StreamType, ...]:
        return (inputs[2],)


@dataclass(frozen=True, slots=True)
class Repeat(Node):
    """x(d-1), signal(d) -> x(d): x once for every value of the signal's fiber; the stops are the signal's."""

    op: ClassVar[str] = "repeat"
    ports: ClassVar[tuple[str, ...]] = ("out",)

    def outputs(self, inputs: Sequence[StreamType]) -> tuple[StreamType, ...]:
        # A repeated coordinate need not ascend: it is of kind ref.
        return (StreamType("val" if inputs[0].kind == "val" else "ref", inputs[1].depth, inputs[0].tile),)


@dataclass(frozen=True, slots=True)
class Load(Node):
    """ref(d) -> val(d): the value array of `tensor`; `N` gives its implicit value."""

    op: ClassVar[str] = "load"
    ports: ClassVar[tuple[str, ...]] = ("val",)

    tensor: str
    sequential: bool = False

    def outputs(self, inputs: Sequence[StreamType]) -> tuple[StreamType, ...]:
        return (StreamType("val", inputs[0].depth),)

    def typed(self, inputs: Sequence[StreamType], tensors: Mapping[str, TensorDecl]) -> tuple[StreamType, ...]:
        tile = tensors[self.tensor].tile if self.tensor in tensors else ()
        return (StreamType("val", inputs[0].depth, tile),)


@dataclass(frozen=True, slots=True)
class Operand:
    """An operand slot of an `Alu`: the next input stream with the implicit value that `N` takes, or a constant."""

    value: float
    constant: bool = False


@dataclass(frozen=True, slots=True)
class Alu(Node):
    """val(d)... -> val(d): a pointwise operator, or one on tiles (`tile_ops`); inputs are aligned token by token."""

    op: ClassVar[str] = "alu"
    ports: ClassVar[tuple[str, ...]] = ("val",)

    function: str
    operands: tuple[Operand, ...]

    def outputs(self, inputs: Sequence[StreamType]) -> tuple[StreamType, ...]:
        tile = result_tile(self.function, [x.tile for x in inputs])
        return (StreamType("val", inputs[0].depth, tile or ()),)


@dataclass(frozen=True, slots=True)
class Reduce(Node):
    """val(d) -> val(d-1): folds each innermost fiber in token order; an empty one gives the identity."""

    op: ClassVar[str] = "reduce"
    ports: ClassVar[tuple[str, ...]] = ("val",)

    function: str

    def outputs(self, inputs: Sequence[StreamType]) -> tuple[StreamType, ...]:
        return (StreamType("val", inputs[0].depth - 1, inputs[0].tile),)


@dataclass(frozen=True, slots=True)
class Accumulate(Node):
    """crd_0(d) .. crd_k(d+k), val(d+k) -> crd_1(d) .. crd_k(d+k-1), val(d+k-1): the higher-order reduction over crd_0, one
    workspace for each fiber of crd_0, keyed by the other coordinates and emitted in sorted order when that fiber ends."""

    op: ClassVar[str] = "accumulate"

    function: str
    order: int

    def outputs(self, inputs: Sequence[StreamType]) -> tuple[StreamType, ...]:
        d = inputs[0].depth
        return (*(StreamType("crd", d + k) for k in range(self.order)), StreamType("val", d + self.order - 1, inputs[-1].tile))

    def port_names(self) -> tuple[str, ...]:
        return (*(["crd"] if self.order == 1 else [f"crd{k}" for k in range(1, self.order + 1)]), "val")


@dataclass(frozen=True, slots=True)
class Permute(Node):
    """crd_0(d) .. crd_m-1(d+m-1), val(d+m-1) -> the same types, m >= 2: the same entries with their m innermost levels in another
    order. Level p of the output is level `order[p]` of the input, 0 being the outermost of the m. One workspace for each fiber of crd_0
    (so for each element of the level around it), keyed by all m coordinates, emitted in sorted order when that fiber ends."""

    op: ClassVar[str] = "permute"

    order: tuple[int, ...]

    def outputs(self, inputs: Sequence[StreamType]) -> tuple[StreamType, ...]:
        return tuple(inputs)

    def port_names(self) -> tuple[str, ...]:
        return (*(f"crd{k}" for k in range(len(self.inputs) - 1)), "val")


@dataclass(frozen=True, slots=True)
class Drop(Node):
    """crds (outermost first), val -> same. `value` None: `N` values leave, else entries equal to it too. A coordinate below which
    nothing is left leaves with it, all levels at once. The last stream may be of any kind, aligned with the innermost crds."""

    op: ClassVar[str] = "drop"

    value: float | None = None

    def outputs(self, inputs: Sequence[StreamType]) -> tuple[StreamType, ...]:
        return tuple(inputs)

    def port_names(self) -> tuple[str, ...]:
        crds = len(self.inputs) - 1
        return (*(["crd"] if crds == 1 else [f"crd{k}" for k in range(crds)]), "val")


@dataclass(frozen=True, slots=True)
class Flatten(Node):
    """crd(d), crd(d+1) -> crd(d): two levels as one, coordinate outer * size + inner."""

    op: ClassVar[str] = "flatten"
    ports: ClassVar[tuple[str, ...]] = ("crd",)

    size: int

    def outputs(self, inputs: Sequence[StreamType]) -> tuple[StreamType, ...]:
        return (StreamType("crd", inputs[0].depth),)


@dataclass(frozen=True, slots=True)
class SplitLevel(Node):
    """crd(d) -> crd(d), crd(d+1): one level as two, outer = coordinate // size, inner = coordinate % size."""

    op: ClassVar[str] = "split"
    ports: ClassVar[tuple[str, ...]] = ("outer", "inner")

    size: int

    def outputs(self, inputs: Sequence[StreamType]) -> tuple[StreamType, ...]:
        d = inputs[0].depth
        return StreamType("crd", d), StreamType("crd", d + 1)


@dataclass(frozen=True, slots=True)
class Fork(Node):
    """x(d) -> one x(d) for each lane: the values go to the lanes in turn, the turn running on across fibers; stops go to all."""

    op: ClassVar[str] = "fork"

    lanes: int

    def outputs(self, inputs: Sequence[StreamType]) -> tuple[StreamType, ...]:
        return (inputs[0],) * self.lanes

    def port_names(self) -> tuple[str, ...]:
        return tuple(f"lane{k}" for k in range(self.lanes))


@dataclass(frozen=True, slots=True)
class Merge(Node):
    """x(d) of each lane -> x(d): the inverse of the fork that dealt the elements `levels` levels above the values of x, in its turn.
    An element is a value (0), or a list of that many levels."""

    op: ClassVar[str] = "merge"
    ports: ClassVar[tuple[str, ...]] = ("out",)

    levels: int

    @property
    def lanes(self) -> int:
        return len(self.inputs)

    def outputs(self, inputs: Sequence[StreamType]) -> tuple[StreamType, ...]:
        return (inputs[0],)


@dataclass(frozen=True, slots=True)
class WriteLevel(Node):
    """crd(d) -> memory: level `level` of `tensor`. Compressed levels append; dense ones address parent * size + coordinate."""

    op: ClassVar[str] = "write"

    tensor: str
    level: int

    def outputs(self, inputs: Sequence[StreamType]) -> tuple[StreamType, ...]:
        return ()


@dataclass(frozen=True, slots=True)
class WriteValues(Node):
    """val(d) -> memory: the values of `tensor`, where its level writers address them."""

    op: ClassVar[str] = "write_values"

    tensor: str

    def outputs(self, inputs: Sequence[StreamType]) -> tuple[StreamType, ...]:
        return ()


NODE_TYPES: tuple[type[Node], ...] = (
    Root, Scan, Range, Locate, Join, Align, Repeat, Load, Alu, Reduce, Accumulate, Permute, Drop, Flatten,
    SplitLevel, Fork, Merge, WriteLevel, WriteValues,
)  # fmt: skip
