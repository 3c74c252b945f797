"""The primitives that give coordinates and references of levels, and the root, at which all of them begin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, TypeVar

from fuseflow.samml.node import (
    DEFAULT_UNIT,
    MEMORY_UNIT,
    UNBOUNDED,
    Grain,
    Node,
    Pointwise,
    Role,
    StreamType,
    TensorDecl,
    TensorReader,
    TensorUser,
    Unit,
    attribute,
)

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
        stored = tensors[self.tensor].format.levels[self.level].stored
        return MEMORY_UNIT if stored and self.asks_memory(tensors) else DEFAULT_UNIT


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

    def uses_storage(self, tensors: Mapping[str, TensorDecl]) -> bool:
        return tensors[self.tensor].format.levels[self.level].stored

    def keeps(self, tensors: Mapping[str, TensorDecl]) -> bool:
        """Return whether the node keeps the coordinates of its level, and looks coordinates up in them."""
        return tensors[self.tensor].format.levels[self.level].kept

    def unit(self, tensors: Mapping[str, TensorDecl]) -> Unit:
        return MEMORY_UNIT if self.asks_memory(tensors) else DEFAULT_UNIT
