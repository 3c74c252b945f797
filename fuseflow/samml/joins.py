"""The primitives that bring coordinates together or take them apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal, TypeAlias, get_args

from fuseflow.errors import did_you_mean
from fuseflow.keep_rules import MAX_GROUP, By
from fuseflow.ops import canonical
from fuseflow.samml.node import Area, Filter, Grain, L, Node, Role, Workspace, attribute
from fuseflow.samml.node_check import NodeCheck, OutputFacts, show_count
from fuseflow.samml.stream_tensor_types import UNBOUNDED, StreamType, TensorDecl

JoinKind: TypeAlias = Literal["intersect", "union", "left"]
JOIN_KINDS: tuple[JoinKind, ...] = get_args(JoinKind)


@dataclass(frozen=True, slots=True)
class Join(Node):
    """The sorted merge of several sides at one loop. `intersect`: coordinates on all sides; `union`: on any; `left`: those of side 0.
    Absent payloads are `N`.

    Side s brings a coordinate stream and `payloads[s]` payload streams. Inputs: crd, payloads of side 0, crd, payloads of side 1, ...
    Outputs: crd, then every payload in that order.
    """

    op: ClassVar[str] = "join"
    streams: ClassVar[str] = "crds*: crd(d), refs*: ref(d), vals*: val(d) -> crd: crd(d), out_refs*: ref(d), out_vals*: val(d)"
    role: ClassVar[Role] = "join"
    grain: ClassVar[Grain] = "fiber"
    area: ClassVar[Area] = Area(109)

    kind: JoinKind = field(metadata=attribute("word"))
    payloads: tuple[int, ...]

    def sides(self) -> tuple[tuple[int, tuple[int, ...]], ...]:
        """Return, for each side, the input position of its coordinates and the input positions of its payloads."""
        sides, at = [], 0
        for count in self.payloads:
            sides.append((at, tuple(range(at + 1, at + 1 + count))))
            at += 1 + count
        return tuple(sides)

    def check(self, c: NodeCheck) -> Sequence[OutputFacts]:
        if self.kind not in JOIN_KINDS:
            c.refuse(f"unknown kind `{self.kind}`", hint=did_you_mean(self.kind, JOIN_KINDS))
        if not self.payloads or min(self.payloads) < 0:
            c.refuse(f"the payload counts are {self.payloads}: one number for each side, at least one side")
        c.kinds(self.takes())
        above = c.deep(0)
        for crd, payloads in self.sides():
            c.aligned(crd, *payloads)
            if c.inputs[crd].shape.parent is not above:
                c.refuse(f"{c.stream(crd)} does not hang below the same stream as {c.stream(0)}")
        sides = [c.inputs[crd] for crd, _ in self.sides()]
        result = c.shapes.joined(self.kind, [side.shape for side in sides], [side.bound for side in sides])
        bound = self.bounds([x.bound for x in c.inputs], c.tensors)[0]
        outputs = [OutputFacts(result)]
        for s, (crd, payloads) in enumerate(self.sides()):
            probed = self.kind == "union" or (self.kind == "left" and s > 0)
            complete = c.inputs[crd].shape is result or (c.inputs[crd].shape.full and c.inputs[crd].bound >= bound)
            hidden = probed and not complete
            outputs += [OutputFacts(result, c.inputs[p].nullable or hidden, c.inputs[p].position) for p in payloads]
        return outputs

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
    """The subtree of `stream` below each coordinate of `old`, carried to the same coordinate of `new`. A coordinate only in `old` loses its
    subtree, one only in `new` gets an empty one."""

    op: ClassVar[str] = "align"
    streams: ClassVar[str] = "old: crd(d), new: crd(d), stream: any -> out: stream"
    role: ClassVar[Role] = "join"
    grain: ClassVar[Grain] = "fiber"
    area: ClassVar[Area] = Area(266)

    def check(self, c: NodeCheck) -> Sequence[OutputFacts]:
        c.kinds(self.takes())
        old, new, x = c.inputs
        if c.deep(0) is not new.shape.parent:
            c.refuse(f"{c.stream(1)} does not hang below the same stream as {c.stream(0)}")
        c.deep(2, old.type.depth + 1)
        if x.shape.ancestor(x.type.depth - old.type.depth) is not old.shape:
            c.refuse(f"{c.stream(2)} does not hang below {c.stream(0)}")
        return [OutputFacts(c.shapes.aligned(x.shape, old.shape, new.shape), x.nullable, x.position)]

    def carries(self) -> tuple[tuple[int, ...], ...]:
        return ((2,),)

    def watched(self, inputs: int) -> Sequence[int]:
        return 0, 1


@dataclass(frozen=True, slots=True)
class Drop(Filter):
    """The same entries without some of them. `value` None: `N` values leave, else entries equal to it too. A coordinate below which
    nothing is left leaves with it, all levels at once. The last stream may be of any kind, aligned with the innermost coordinates."""

    op: ClassVar[str] = "drop"
    streams: ClassVar[str] = "crd+: crd, stream: any -> out+: crd+, out: stream"
    role: ClassVar[Role] = "join"
    grain: ClassVar[Grain] = "fiber"
    area: ClassVar[Area] = Area(541)

    value: float | None = field(default=None, metadata=attribute("number or none", keyed=True))

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", None if self.value is None else canonical(self.value))

    def check(self, c: NodeCheck) -> Sequence[OutputFacts]:
        if len(c.inputs) < 2:
            c.refuse(f"takes at least 2 inputs (crd, ..., val), not {len(c.inputs)}")
        c.kinds(self.takes())
        if self.value is not None and c.inputs[-1].type.tile:
            c.refuse(f"{c.stream(len(c.inputs) - 1)} is {c.inputs[-1].type}; tiles are not dropped by value")
        above = c.deep(0)
        c.chain()
        kept = None if self.value is not None or c.inputs[-1].nullable else c.inputs[-1].shape
        levels = c.shapes.dropped(above, len(c.inputs) - 1, self.name, kept)
        return [*map(OutputFacts, levels), OutputFacts(levels[-1], position=c.inputs[-1].position)]

    def takes(self) -> tuple[str, ...]:
        return (*["crd"] * (len(self.inputs) - 1), "any" if self.value is None else "val")

    @property
    def by_value(self) -> bool:
        return self.value is not None


@dataclass(frozen=True, slots=True)
class Select(Filter, Workspace):
    """Of each fiber of the outermost of `levels` levels with everything below it, or of every so many of its coordinates, the `keep`
    entries of largest magnitude, or the `greatest` or the `least` numbers, in order. A coordinate below which nothing is left leaves.
    If it `marks`, it emits 1 for each entry."""

    op: ClassVar[str] = "select"
    streams: ClassVar[str] = "crd+: crd, stream: val -> out+: crd+, out: stream"
    role: ClassVar[Role] = "join"
    grain: ClassVar[Grain] = "fiber"
    beyond_comal: ClassVar[str] = "keeps the largest entries of a tensor"
    area: ClassVar[Area] = Area(690)

    keep: int = field(metadata=attribute("integer", keyed=True))
    every: int = field(metadata=attribute("integer", keyed=True))
    """The number of coordinates of a group, counted from 0; 0 for whole fibers."""
    levels: int = field(metadata=attribute("integer", keyed=True))
    greatest: bool = field(default=False, metadata=attribute("flag"))
    least: bool = field(default=False, metadata=attribute("flag"))
    marks: bool = field(default=False, metadata=attribute("flag"))

    @property
    def by(self) -> By:
        """The order by which entries are kept."""
        return "greatest" if self.greatest else "least" if self.least else "magnitude"

    def check(self, c: NodeCheck) -> Sequence[OutputFacts]:
        if self.greatest and self.least:
            c.refuse("it keeps the greatest and the least entries", hint="name one of them, or none for the largest magnitudes")
        if self.keep < 1:
            c.refuse(f"it keeps {self.keep} entries", hint="`keep` is 1 or more; a result without entries needs no node")
        if not 0 <= self.every <= MAX_GROUP:
            hint = f"a group has 1 to {MAX_GROUP} coordinates; `every=0` keeps the largest entries of whole fibers"
            c.refuse(f"its groups have {self.every} coordinates", hint=hint)
        if self.every and self.keep > self.every:
            c.refuse(f"it keeps {self.keep} of every {self.every} coordinates", hint="leave it out: that keeps all of them")
        if self.levels < 1:
            c.refuse(
                f"it selects among {show_count(self.levels, 'level')}",
                hint="`levels=1` selects among the entries of each fiber",
            )
        if self.levels > 1 and self.every:
            hint = "keep of every so many coordinates of one level (`levels=1`), or of all entries (`every=0`)"
            c.refuse(f"it selects among {self.levels} levels in groups of {self.every} coordinates", hint=hint)
        c.kinds(self.takes())
        if c.inputs[-1].type.tile:
            hint = "select before the values are put into blocks"
            c.refuse(f"{c.stream(self.levels)} is {c.inputs[-1].type}; magnitudes are those of scalars", hint=hint)
        above = c.deep(0)
        c.chain()
        c.solid(self.levels)
        levels = c.shapes.chain(above, self.levels, "select", self.name)
        return [OutputFacts(shape) for shape in (*levels, levels[-1])]

    def takes(self) -> tuple[str, ...]:
        return (*["crd"] * self.levels, "val")

    @property
    def by_value(self) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class Flatten(Node):
    """Two levels as one, coordinate outer * size + inner."""

    op: ClassVar[str] = "flatten"
    streams: ClassVar[str] = "outer: crd(d), inner: crd(d+1) -> crd: crd(d)"
    role: ClassVar[Role] = "join"
    grain: ClassVar[Grain] = "fiber"
    area: ClassVar[Area] = Area(273)

    size: int = field(metadata=attribute("integer"))

    def check(self, c: NodeCheck) -> Sequence[OutputFacts]:
        c.kinds(self.takes())
        c.sized(self.size)
        above = c.deep(0)
        c.nested(0, 1)
        c.inside(1, self.size, "its size")
        if self.bounds([x.bound for x in c.inputs], c.tensors)[0] > UNBOUNDED:
            c.refuse(f"{c.stream(0)} holds coordinates below {c.inputs[0].bound}: {self.size} times that are too many")
        return [OutputFacts(c.shapes.below(above, "flatten", c.inputs[1].shape, self.size))]

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
    """One level as two, outer = coordinate // size, inner = coordinate % size."""

    op: ClassVar[str] = "split"
    streams: ClassVar[str] = "crd: crd(d) -> outer: crd(d), inner: crd(d+1)"
    role: ClassVar[Role] = "join"
    grain: ClassVar[Grain] = "fiber"
    area: ClassVar[Area] = Area(178)

    size: int = field(metadata=attribute("integer"))

    def check(self, c: NodeCheck) -> Sequence[OutputFacts]:
        c.kinds(self.takes())
        c.sized(self.size)
        levels = c.shapes.chain(c.deep(0), 2, "split", c.inputs[0].shape, self.size)
        return [*map(OutputFacts, levels)]

    def carries(self) -> tuple[tuple[int, ...], ...]:
        return ((), ())

    def bounds(self, inputs: Sequence[int], tensors: Mapping[str, TensorDecl]) -> tuple[int, ...]:
        return -(-inputs[0] // self.size), min(inputs[0], self.size)

    def nested(self, around: tuple[L, ...], depth: int, own: L, mixed: L) -> tuple[L, ...]:
        return (*around[:-1], mixed, mixed)


JoinPrimitive: TypeAlias = Join | Align | Drop | Select | Flatten | SplitLevel
