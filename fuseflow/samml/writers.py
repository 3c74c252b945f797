"""The primitives that write tensors, and those that write one lane's share of a dense tensor.

Where a result is written once, its lanes are merged first, and one writer takes one value in a cycle. A dense tensor has all
coordinates. So the address of each value is known before any is computed, and each lane can write its values directly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import ClassVar, TypeAlias

from fuseflow.samml.node import Area, TensorWriter, attribute
from fuseflow.samml.node_check import NodeCheck, OutputFacts, show_count
from fuseflow.samml.stream_tensor_types import Port, TensorDecl, show_tile
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


@dataclass(frozen=True, slots=True)
class WriteLaneLevel(WriteLevel):
    """What lane `lane` of `lanes` has of a level of a dense tensor, to memory. The coordinates were dealt `levels` levels above these.
    Together the writers of all lanes write what one writer of the merged lanes would."""

    op: ClassVar[str] = "write_lane"
    beyond_comal: ClassVar[str] = "writes what one lane has of a tensor"
    word: ClassVar[str] = "write"
    area: ClassVar[Area] = Area(18)

    levels: int = field(metadata=attribute("integer", keyed=True))
    lane: int = field(metadata=attribute("integer", keyed=True))
    lanes: int = field(metadata=attribute("integer", keyed=True))

    def check(self, c: NodeCheck) -> Sequence[OutputFacts]:
        return _check_lane(self, c, WriteLevel.check(self, c))


@dataclass(frozen=True, slots=True)
class WriteLaneValues(WriteValues):
    """What lane `lane` of `lanes` has of the values of a dense tensor, to memory. The coordinates were dealt `levels` levels above the
    innermost one."""

    op: ClassVar[str] = "write_lane_values"
    beyond_comal: ClassVar[str] = "writes what one lane has of a tensor"
    area: ClassVar[Area] = Area(47, 336)

    levels: int = field(metadata=attribute("integer", keyed=True))
    lane: int = field(metadata=attribute("integer", keyed=True))
    lanes: int = field(metadata=attribute("integer", keyed=True))

    def check(self, c: NodeCheck) -> Sequence[OutputFacts]:
        return _check_lane(self, c, WriteValues.check(self, c))


LaneWriter: TypeAlias = WriteLaneLevel | WriteLaneValues
"""A writer of one lane's share of a dense tensor."""


def _check_lane(node: LaneWriter, c: NodeCheck, outputs: Sequence[OutputFacts]) -> Sequence[OutputFacts]:
    tensor = c.tensors[node.tensor]
    if any(level.text != "dense" for level in tensor.format.levels):
        hint = "merge the lanes, and write them once"
        c.refuse(f"writes what a lane has of `{node.tensor}`, which is {tensor.format}, not dense", hint=hint)
    if not 0 <= node.lane < node.lanes:
        c.refuse(f"writes lane {node.lane} of {node.lanes}")
    if not 0 <= node.levels < c.inputs[0].type.depth:
        above = show_count(node.levels, "level")
        c.refuse(f"its coordinates were dealt {above} above those of {c.stream(0)}, which has no such level")
    return outputs


@dataclass(frozen=True, slots=True)
class LanePart:
    """The places of one lane in an array whose entries were dealt in runs: lane `lane` of `lanes`, to which `run` entries went at a time.

    Of 12 entries, of which runs of two went to three lanes in turn, lane 1 has those in places 2, 3, 8 and 9:

    >>> part = LanePart(lane=1, lanes=3, run=2)
    >>> part.first, part.gap
    (2, 4)
    """

    lane: int
    lanes: int
    run: int

    @property
    def first(self) -> int:
        """The position of the first entry of the lane in the array."""
        return self.lane * self.run

    @property
    def gap(self) -> int:
        """The number of entries of other lanes between two runs of this lane."""
        return (self.lanes - 1) * self.run


def lane_part(node: LaneWriter, tensor: TensorDecl) -> LanePart:
    """Return the positions at which a lane's writer writes: in the coordinates of its level, or in the values."""
    innermost = node.level if isinstance(node, WriteLaneLevel) else tensor.format.rank - 1
    return LanePart(node.lane, node.lanes, prod(tensor.size(p) for p in range(innermost - node.levels + 1, innermost + 1)))


def lane_writer(
    node: WriteLevel | WriteValues, name: str, inputs: tuple[Port, ...], levels: int, lane: int, lanes: int
) -> LaneWriter:
    """Return a node that writes lane `lane`'s share of the output of the writer `node`, dealt `levels` levels above the elements."""
    if isinstance(node, WriteLevel):
        return WriteLaneLevel(name, inputs, node.tensor, node.level, levels, lane, lanes)
    return WriteLaneValues(name, inputs, node.tensor, levels, lane, lanes)
