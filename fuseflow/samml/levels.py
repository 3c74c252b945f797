"""The primitives that emit coordinates and references of levels, and the root, from which all of them start."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, TypeAlias

from fuseflow.samml.node import (
    DEFAULT_UNIT,
    MEMORY_UNIT,
    Area,
    Grain,
    L,
    Node,
    Pointwise,
    Role,
    TensorReader,
    TensorUser,
    Unit,
    attribute,
)
from fuseflow.samml.node_check import ROOT, NodeCheck, OutputFacts
from fuseflow.samml.stream_tensor_types import UNBOUNDED, TensorDecl
from fuseflow.tensors.levels import names


@dataclass(frozen=True, slots=True)
class Root(Node):
    """One reference to the whole of every tensor: `0 D`."""

    op: ClassVar[str] = "root"
    streams: ClassVar[str] = "-> ref: ref(0)"
    role: ClassVar[Role] = "source"
    grain: ClassVar[Grain] = "element"
    gives_parents: ClassVar[bool] = True
    area: ClassVar[Area] = Area(23)

    def check(self, c: NodeCheck) -> Sequence[OutputFacts]:
        c.kinds(self.takes())
        return [OutputFacts(c.shapes.single, position=ROOT)]

    def carries(self) -> tuple[tuple[int, ...], ...]:
        return ((),)


@dataclass(frozen=True, slots=True)
class Scan(TensorReader):
    """The fiber of `tensor` at storage level `level` for every reference.

    `sequential`: the references come straight from this tensor's own parent scan, so a memory may prefetch.
    """

    op: ClassVar[str] = "scan"
    streams: ClassVar[str] = "parent: ref(d) -> crd: crd(d+1), ref: ref(d+1)"
    role: ClassVar[Role] = "level"
    grain: ClassVar[Grain] = "element"
    gives_parents: ClassVar[bool] = True
    area: ClassVar[Area] = Area(476, 1622)

    level: int = field(metadata=attribute("level"))
    sequential: bool = field(default=False, metadata=attribute("flag"))

    def check(self, c: NodeCheck) -> Sequence[OutputFacts]:
        c.kinds(self.takes())
        tensor = c.level(self.tensor, self.level)
        c.indexes(0, self.tensor, self.level)
        c.access(self.sequential)
        (ref,) = c.inputs
        level = tensor.format.levels[self.level]
        if not level.ordered:
            c.refuse(f"the coordinates of level {self.level} of `{self.tensor}` ({level.text}) do not ascend")
        if level.full and not ref.nullable:
            shape = c.shapes.full(ref.shape, tensor.size(self.level))
        else:
            shape = c.shapes.below(ref.shape, "scan", self.tensor, self.level, c.made(0))
        return [OutputFacts(shape), OutputFacts(shape, position=c.position(self.tensor, self.level + 1))]

    def carries(self) -> tuple[tuple[int, ...], ...]:
        return ((), ())

    def bounds(self, inputs: Sequence[int], tensors: Mapping[str, TensorDecl]) -> tuple[int, ...]:
        return tensors[self.tensor].size(self.level), UNBOUNDED

    def nested(self, around: tuple[L, ...], depth: int, own: L, mixed: L) -> tuple[L, ...]:
        return (*around, own)

    def unit(self, tensors: Mapping[str, TensorDecl]) -> Unit:
        stored = tensors[self.tensor].format.levels[self.level].stored
        return MEMORY_UNIT if stored and self.asks_memory(tensors) else DEFAULT_UNIT


@dataclass(frozen=True, slots=True)
class Range(Node):
    """All coordinates from 0 to `size` - 1 for every reference (`N` included); no tensor, no memory."""

    op: ClassVar[str] = "range"
    streams: ClassVar[str] = "parent: ref(d) -> crd: crd(d+1)"
    role: ClassVar[Role] = "level"
    grain: ClassVar[Grain] = "element"
    area: ClassVar[Area] = Area(226)

    size: int = field(metadata=attribute("integer"))

    def check(self, c: NodeCheck) -> Sequence[OutputFacts]:
        c.kinds(self.takes())
        if self.size < 0:
            c.refuse(f"the size is {self.size}")
        return [OutputFacts(c.shapes.full(c.inputs[0].shape, self.size))]

    def carries(self) -> tuple[tuple[int, ...], ...]:
        return ((),)

    def bounds(self, inputs: Sequence[int], tensors: Mapping[str, TensorDecl]) -> tuple[int, ...]:
        return (self.size,)

    def nested(self, around: tuple[L, ...], depth: int, own: L, mixed: L) -> tuple[L, ...]:
        return (*around, own)


@dataclass(frozen=True, slots=True)
class Locate(Pointwise, TensorUser):
    """Random access into a level, token by token: in a dense one parent * size + coordinate; `N` where either is.

    Without its second input it locates the outermost level, whose only parent is reference 0. If that is compressed, the node reads its
    coordinates once, before the first token, and keeps them.
    """

    op: ClassVar[str] = "locate"
    streams: ClassVar[str] = "crd: crd or ref(d), parent?: ref(d) -> ref: ref(d)"
    role: ClassVar[Role] = "level"
    area: ClassVar[Area] = Area(116, 773)

    level: int = field(metadata=attribute("level"))

    def check(self, c: NodeCheck) -> Sequence[OutputFacts]:
        c.kinds(self.takes())
        tensor = c.level(self.tensor, self.level)
        level = tensor.format.levels[self.level]
        if not level.located and not (level.kept and self.level == 0):
            able, kept = names(lambda level: level.located), names(lambda level: level.kept)
            hint = f"{able} levels are located, and {kept} ones if they are outermost"
            c.refuse(f"level {self.level} of `{self.tensor}` is {level.text}", hint=hint)
        if level.kept and len(c.inputs) == 2:
            c.refuse(f"level {self.level} of `{self.tensor}` is {level.text}", hint="it is located by coordinates alone")
        if c.inputs[0].position is not None:
            c.refuse(f"{c.stream(0)} holds references; this node takes coordinates there")
        if len(c.inputs) == 1 and self.level > 0:
            c.refuse(f"level {self.level} needs the references of level {self.level - 1} as its second input")
        if len(c.inputs) == 2:
            c.indexes(1, self.tensor, self.level)
            c.aligned(0, 1)
        c.inside(0, tensor.size(self.level), f"the size of level {self.level} of `{self.tensor}`")
        absent = not level.full or any(x.nullable for x in c.inputs)
        return [OutputFacts(c.inputs[0].shape, absent, c.position(self.tensor, self.level + 1))]

    def takes(self) -> tuple[str, ...]:
        # A coordinate that was repeated is of kind ref, and indexes nothing.
        return ("crd or ref", "ref")[: max(1, len(self.inputs))]

    def uses_storage(self, tensors: Mapping[str, TensorDecl]) -> bool:
        return tensors[self.tensor].format.levels[self.level].stored

    def keeps(self, tensors: Mapping[str, TensorDecl]) -> bool:
        """Return whether the node first reads its whole level, keeps the coordinates on chip, and looks coordinates up there."""
        return tensors[self.tensor].format.levels[self.level].kept


LevelPrimitive: TypeAlias = Root | Scan | Range | Locate
