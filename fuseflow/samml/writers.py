"""The primitives that write tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from fuseflow.samml.node import StreamType, TensorWriter, attribute


@dataclass(frozen=True, slots=True)
class WriteLevel(TensorWriter):
    """crd(d) -> memory: level `level` of `tensor`. Compressed levels append; dense ones address parent * size + coordinate; at the end of a
    fiber, n:m levels add the entries that it lacks."""

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
