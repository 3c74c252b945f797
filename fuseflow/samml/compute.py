"""The primitives that read values and compute with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, TypeAlias

from fuseflow.ops import REDUCERS, canonical, reducer
from fuseflow.samml.node import (
    Area,
    Grain,
    L,
    Node,
    Pointwise,
    Role,
    TensorReader,
    Unit,
    Workspace,
    attribute,
    require_streams,
)
from fuseflow.samml.node_check import NodeCheck, OutputFacts, show_count
from fuseflow.samml.stream_tensor_types import StreamType, TensorDecl
from fuseflow.tile_ops import ALU_FUNCTIONS, TILE_OPERATORS, result_shape


@dataclass(frozen=True, slots=True)
class Load(Pointwise, TensorReader):
    """The value array of `tensor` at every reference; `N` gives its implicit value."""

    op: ClassVar[str] = "load"
    streams: ClassVar[str] = "ref: ref(d) -> val: val(d)"
    role: ClassVar[Role] = "value"
    area: ClassVar[Area] = Area(77, 556)

    sequential: bool = field(default=False, metadata=attribute("flag"))

    def check(self, c: NodeCheck) -> Sequence[OutputFacts]:
        c.kinds(self.takes())
        tensor = c.declared(self.tensor, written=False)
        c.indexes(0, self.tensor, tensor.format.rank)
        c.access(self.sequential)
        return [OutputFacts(c.inputs[0].shape)]

    def typed(self, inputs: Sequence[StreamType], tensors: Mapping[str, TensorDecl]) -> tuple[StreamType, ...]:
        tile = tensors[self.tensor].tile if self.tensor in tensors else ()
        return (StreamType("val", inputs[0].depth, tile),)


@dataclass(frozen=True, slots=True)
class Operand:
    """An operand slot of an `Alu`: the next input stream with the implicit value that `N` takes, or a constant."""

    value: float
    constant: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", canonical(self.value))


@dataclass(frozen=True, slots=True)
class Alu(Pointwise):
    """A pointwise operator, or one on tiles; inputs are aligned token by token."""

    op: ClassVar[str] = "alu"
    streams: ClassVar[str] = "streams*: val(d) -> val: val(d)"
    role: ClassVar[Role] = "compute"
    area: ClassVar[Area] = Area(202)

    function: str = field(metadata=attribute("word"))
    operands: tuple[Operand, ...] = field(metadata=attribute("slots"))

    def check(self, c: NodeCheck) -> Sequence[OutputFacts]:
        c.function(self.function, ALU_FUNCTIONS)
        arity = ALU_FUNCTIONS[self.function].arity
        if len(self.operands) != arity:
            c.refuse(f"`{self.function}` takes {show_count(arity, 'operand')}, not {len(self.operands)}")
        streams = sum(not slot.constant for slot in self.operands)
        if streams == 0:
            c.refuse("all operands are constants", hint="use the value that they give")
        c.kinds(self.takes())
        c.aligned(*range(streams))
        if result_shape(self.function, [x.type.tile for x in c.inputs]) is None:
            row = TILE_OPERATORS.get(self.function)
            takes = row.operands if row else "tiles of one shape, rows and columns of it, and scalars"
            c.refuse(f"`{self.function}` takes {takes}, not {' and '.join(str(x.type) for x in c.inputs)}")
        return [OutputFacts(c.inputs[0].shape)]

    def outputs(self, inputs: Sequence[StreamType]) -> tuple[StreamType, ...]:
        tile = result_shape(self.function, [x.tile for x in inputs])
        return (StreamType("val", inputs[0].depth, tile or ()),)

    def takes(self) -> tuple[str, ...]:
        return ("val",) * sum(not slot.constant for slot in self.operands)

    def unit(self, tensors: Mapping[str, TensorDecl]) -> Unit:
        return Unit(ALU_FUNCTIONS[self.function].unit, self.function)

    @property
    def operator(self) -> str:
        return self.function

    @property
    def rounds(self) -> bool:
        return ALU_FUNCTIONS[self.function].rounds


@dataclass(frozen=True, slots=True)
class Folding(Node):
    """A trait of a node that folds values by a reduction, `function`."""

    role: ClassVar[Role] = "compute"
    grain: ClassVar[Grain] = "fold"

    function: str = field(metadata=attribute("word"))

    def unit(self, tensors: Mapping[str, TensorDecl]) -> Unit:
        return Unit(reducer(self.function).unit, self.function, pipelined=True)

    @property
    def operator(self) -> str:
        return self.function

    @property
    def rounds(self) -> bool:
        return reducer(self.function).rounds


@dataclass(frozen=True, slots=True)
class Reduce(Folding):
    """The fold of each innermost fiber in token order; an empty one gives the identity."""

    op: ClassVar[str] = "reduce"
    streams: ClassVar[str] = "stream: val(d) -> val: val(d-1)"
    holds_back: ClassVar[bool] = True
    area: ClassVar[Area] = Area(485)

    def check(self, c: NodeCheck) -> Sequence[OutputFacts]:
        c.kinds(self.takes())
        c.function(self.function, REDUCERS)
        c.solid(0)
        return [OutputFacts(c.deep(0))]

    def outputs(self, inputs: Sequence[StreamType]) -> tuple[StreamType, ...]:
        return (StreamType("val", inputs[0].depth - 1, inputs[0].tile),)

    def carries(self) -> tuple[tuple[int, ...], ...]:
        return ((0,),)

    def nested(self, around: tuple[L, ...], depth: int, own: L, mixed: L) -> tuple[L, ...]:
        return around[:-1]


@dataclass(frozen=True, slots=True)
class Accumulate(Folding, Workspace):
    """The reduction over the outermost of `order` + 1 levels of coordinates: one workspace for each of its fibers, keyed by the other
    coordinates and emitted in sorted order when that fiber ends."""

    op: ClassVar[str] = "accumulate"
    streams: ClassVar[str] = "crd+: crd, stream: val -> out+: crd, val: val"
    area: ClassVar[Area] = Area(690)

    order: int = field(metadata=attribute("integer", keyed=True))

    def __post_init__(self) -> None:
        require_streams(self.name, self.order)

    def check(self, c: NodeCheck) -> Sequence[OutputFacts]:
        if self.order < 1:
            c.refuse(f"the order is {self.order}", hint="a reduction that keeps no inner loop is a `reduce`")
        c.kinds(self.takes())
        c.function(self.function, REDUCERS)
        above = c.deep(0)
        c.chain()
        c.solid(self.order + 1)
        levels = c.shapes.chain(above, self.order, "accumulate", c.inputs[self.order].shape)
        return [OutputFacts(shape) for shape in (*levels, levels[-1])]

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


ComputePrimitive: TypeAlias = Load | Alu | Reduce | Accumulate
