"""The primitives that put elements elsewhere: into inner loops, into another order, into lanes and out of them, or to other places of an
array."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, TypeAlias

from fuseflow.ops import reducer
from fuseflow.samml.node import HOP_UNIT, Area, Grain, L, Node, Pointwise, Role, Unit, Workspace, attribute, require_streams
from fuseflow.samml.node_check import NodeCheck, OutputFacts, show_count
from fuseflow.samml.stream_tensor_types import StreamType, TensorDecl


@dataclass(frozen=True, slots=True)
class Repeat(Node):
    """Each element of `stream` once for every value of the fiber of `signal`; the stops are the signal's. A repeated coordinate is a
    reference."""

    op: ClassVar[str] = "repeat"
    streams: ClassVar[str] = "stream: any(d-1), signal: any(d) -> out: ref or val(d)"
    role: ClassVar[Role] = "move"
    grain: ClassVar[Grain] = "element"
    area: ClassVar[Area] = Area(273)

    def check(self, c: NodeCheck) -> Sequence[OutputFacts]:
        c.kinds(self.takes())
        c.nested(0, 1)
        return [OutputFacts(c.inputs[1].shape, c.inputs[0].nullable, c.inputs[0].position)]

    def outputs(self, inputs: Sequence[StreamType]) -> tuple[StreamType, ...]:
        # A repeated coordinate need not ascend: it is of kind ref.
        return (StreamType("val" if inputs[0].kind == "val" else "ref", inputs[1].depth, inputs[0].tile),)

    def carries(self) -> tuple[tuple[int, ...], ...]:
        return ((0,),)

    def watched(self, inputs: int) -> Sequence[int]:
        return (inputs - 1,)


@dataclass(frozen=True, slots=True)
class Permute(Workspace):
    """The same entries with their m levels of coordinates, m >= 2, in another order. Level p of the output is level `order[p]` of the
    input, 0 being the outermost of the m. One workspace for each fiber of the outermost level (so for each element of the level around
    it), keyed by all m coordinates, emitted in sorted order when that fiber ends."""

    op: ClassVar[str] = "permute"
    streams: ClassVar[str] = "crd+: crd, stream: val -> out+: crd+, out: stream"
    role: ClassVar[Role] = "move"
    grain: ClassVar[Grain] = "fiber"
    beyond_comal: ClassVar[str] = "permutes the levels of a tensor"
    area: ClassVar[Area] = Area(530)

    order: tuple[int, ...] = field(metadata=attribute("integers", keyed=True))

    def check(self, c: NodeCheck) -> Sequence[OutputFacts]:
        m = len(self.order)
        if m < 2 or sorted(self.order) != list(range(m)):
            c.refuse(
                f"the order is {','.join(map(str, self.order)) or 'empty'}",
                hint="it names every level of the input once, two levels or more: `order=1,0` exchanges two",
            )
        c.kinds(self.takes())
        above = c.deep(0)
        c.chain()
        c.solid(m)
        levels = c.shapes.chain(above, m, "permute", c.inputs[m - 1].shape, self.order)
        return [OutputFacts(shape) for shape in (*levels, levels[-1])]

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
    """One stream for each lane: the values go to the lanes in turn, the turn running on across fibers; stops go to all."""

    op: ClassVar[str] = "fork"
    streams: ClassVar[str] = "stream: any -> outs*: stream"
    role: ClassVar[Role] = "lane"
    grain: ClassVar[Grain] = "fiber"
    area: ClassVar[Area] = Area(26)

    lanes: int = field(metadata=attribute("integer"))

    def __post_init__(self) -> None:
        require_streams(self.name, self.lanes)

    def check(self, c: NodeCheck) -> Sequence[OutputFacts]:
        c.kinds(self.takes())
        if self.lanes < 1:
            c.refuse(f"the number of lanes is {self.lanes}")
        c.deep(0)
        (x,) = c.inputs
        return [OutputFacts(c.shapes.lane(x.shape, self.lanes, k), x.nullable, x.position) for k in range(self.lanes)]

    def outputs(self, inputs: Sequence[StreamType]) -> tuple[StreamType, ...]:
        return (inputs[0],) * self.lanes

    def port_names(self) -> tuple[str, ...]:
        return tuple(f"lane{k}" for k in range(self.lanes))

    def carries(self) -> tuple[tuple[int, ...], ...]:
        return ((0,),) * self.lanes


@dataclass(frozen=True, slots=True)
class Merge(Node):
    """One stream of all lanes: the inverse of the fork that dealt the elements `levels` levels above the values, in its turn. An element is
    a value (0), or a list of that many levels."""

    op: ClassVar[str] = "merge"
    streams: ClassVar[str] = "lanes*: any -> out: lanes"
    role: ClassVar[Role] = "lane"
    grain: ClassVar[Grain] = "fiber"
    area: ClassVar[Area] = Area(89)

    levels: int = field(metadata=attribute("integer", keyed=True))

    @property
    def lanes(self) -> int:
        return len(self.inputs)

    def check(self, c: NodeCheck) -> Sequence[OutputFacts]:
        if not c.inputs:
            c.refuse("takes at least 1 input (a lane), not 0")
        if self.levels < 0:
            c.refuse(f"the number of levels is {self.levels}")
        first = c.inputs[0]
        for k, lane in enumerate(c.inputs):
            if lane.type != first.type:
                c.refuse(f"{c.stream(k)} is {lane.type}, {c.stream(0)} is {first.type}")
            if lane.position != first.position:
                c.refuse(f"{c.stream(k)} holds references into something else than {c.stream(0)}")
        shape = c.shapes.merged([lane.shape for lane in c.inputs], self.levels)
        if shape is None:
            where = f", {show_count(self.levels, 'level')} below it" if self.levels else ""
            c.refuse(
                f"its inputs are not provably the lanes of one fork{where}",
                hint="give it all lanes in their order; where a lane loses coordinates, it is no longer what the fork dealt",
            )
        return [OutputFacts(shape, any(lane.nullable for lane in c.inputs), first.position)]

    def takes(self) -> tuple[str, ...]:
        return ("any",) * len(self.inputs)

    def carries(self) -> tuple[tuple[int, ...], ...]:
        return (tuple(range(len(self.inputs))),)


@dataclass(frozen=True, slots=True)
class Link(Pointwise):
    """The same stream a cycle later: a hop of an array at which the route of a stream divides, or passes a reader. It has two slots, and
    gives each token to all its readers at once."""

    op: ClassVar[str] = "link"
    streams: ClassVar[str] = "stream: any -> out: stream"
    role: ClassVar[Role] = "move"
    stage_slots: ClassVar[int] = 2
    beyond_comal: ClassVar[str] = "is a hop of an array"
    area: ClassVar[Area] = Area(30)

    def check(self, c: NodeCheck) -> Sequence[OutputFacts]:
        c.kinds(self.takes())
        (x,) = c.inputs
        return [OutputFacts(x.shape, x.nullable, x.position)]

    def carries(self) -> tuple[tuple[int, ...], ...]:
        return ((0,),)

    def unit(self, tensors: Mapping[str, TensorDecl]) -> Unit:
        return HOP_UNIT


MovePrimitive: TypeAlias = Repeat | Permute | Fork | Merge | Link
