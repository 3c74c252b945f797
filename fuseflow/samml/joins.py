"""The primitives that bring coordinates together or take them apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal, TypeVar

from fuseflow.ops import canonical
from fuseflow.samml.node import Grain, Node, Role, StreamType, TensorDecl, Workspace, attribute

L = TypeVar("L")


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
class Select(Workspace):
    """crd_0(d) .. crd_e-1(d+e-1), val(d+e-1) -> the same: of each fiber of crd_0 with everything below it, or of every so many of its
    coordinates, the `keep` entries of largest magnitude, in order. `levels` is e. A coordinate below which nothing is left leaves."""

    op: ClassVar[str] = "select"
    role: ClassVar[Role] = "join"
    grain: ClassVar[Grain] = "fiber"
    beyond_comal: ClassVar[str] = "keeps the largest entries of a tensor"

    keep: int = field(metadata=attribute("integer", keyed=True))
    every: int = field(metadata=attribute("integer", keyed=True))
    """The number of coordinates of a group, counted from 0; 0 for whole fibers."""
    levels: int = field(metadata=attribute("integer", keyed=True))

    def outputs(self, inputs: Sequence[StreamType]) -> tuple[StreamType, ...]:
        return tuple(inputs)

    def port_names(self) -> tuple[str, ...]:
        crds = len(self.inputs) - 1
        return (*(["crd"] if crds == 1 else [f"crd{k}" for k in range(crds)]), "val")

    def takes(self) -> tuple[str, ...]:
        return (*["crd"] * self.levels, "val")

    def carries(self) -> tuple[tuple[int, ...], ...]:
        return tuple((k,) for k in range(len(self.inputs)))

    @property
    def by_value(self) -> bool:
        return True


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
