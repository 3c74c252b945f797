"""The primitives that write tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, TypeAlias

from fuseflow.samml.node import Area, TensorWriter, attribute
from fuseflow.samml.node_check import NodeCheck, OutputFacts
from fuseflow.samml.stream_tensor_types import show_tile
from fuseflow.tensors.levels import names


@dataclass(frozen=True, slots=True)
class WriteLevel(TensorWriter):
    """Level `level` of `tensor`, to memory. Compressed levels append; dense ones address parent * size + coordinate; at the end of a fiber,
    n:m levels add the entries that it lacks."""

    op: ClassVar[str] = "write"
    streams: ClassVar[str] = "crd: crd ->"
    area: ClassVar[Area] = Area(18, 558)

    level: int = field(metadata=attribute("level"))

    def check(self, c: NodeCheck) -> Sequence[OutputFacts]:
        c.kinds(self.takes())
        tensor = c.level(self.tensor, self.level, written=True)
        level = tensor.format.levels[self.level]
        if not level.written:
            able = names(lambda level: level.written)
            c.refuse(f"level {self.level} of `{self.tensor}` is {level.text}", hint=f"{able} levels are written")
        if level.pads and self.level < tensor.format.rank - 1:
            hint = f"store that level innermost, or store level {self.level} compressed"
            c.refuse(f"level {self.level} of `{self.tensor}` is {level.text} and has a level below it", hint=hint)
        c.reaches(self.level + 1)
        return []


@dataclass(frozen=True, slots=True)
class WriteValues(TensorWriter):
    """The values of `tensor`, to memory, where its level writers address them."""

    op: ClassVar[str] = "write_values"
    streams: ClassVar[str] = "val: val ->"
    word: ClassVar[str] = "write"
    area: ClassVar[Area] = Area(47, 318)

    tensor: str = field(metadata=attribute("values"))

    def check(self, c: NodeCheck) -> Sequence[OutputFacts]:
        c.kinds(self.takes())
        tensor = c.declared(self.tensor, written=True)
        c.reaches(tensor.format.rank)
        if c.inputs[0].type.tile != tensor.tile:
            wanted = f"tiles of {show_tile(tensor.tile)}" if tensor.tile else "scalars"
            c.refuse(f"{c.stream(0)} is {c.inputs[0].type}; the values of `{self.tensor}` are {wanted}")
        c.solid(0)
        return []


WritePrimitive: TypeAlias = WriteLevel | WriteValues
