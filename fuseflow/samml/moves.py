"""The primitives that put elements elsewhere: into inner loops, into another order, into lanes and out of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, TypeVar

from fuseflow.ops import reducer
from fuseflow.samml.node import Grain, Node, Role, StreamType, TensorDecl, Unit, Workspace, attribute, require_streams

L = TypeVar("L")


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
class Fork(Node):
    """x(d) -> one x(d) for each lane: the values go to the lanes in turn, the turn running on across fibers; stops go to all."""

    op: ClassVar[str] = "fork"
    role: ClassVar[Role] = "lane"
    grain: ClassVar[Grain] = "fiber"

    lanes: int = field(metadata=attribute("integer"))

    def __post_init__(self) -> None:
        require_streams(self.name, self.lanes)

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
