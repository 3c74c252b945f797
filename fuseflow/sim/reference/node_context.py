"""The context in which a rule builds the processes of a node: its FIFOs and outputs, its timing, and the tensors that it reads or
writes."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, assert_never

import numpy as np
import numpy.typing as npt

from fuseflow.float32.operator_precision import Arithmetic
from fuseflow.machine.machine import Machine
from fuseflow.machine.timing import NodeTiming
from fuseflow.samml import nodes as n
from fuseflow.samml.nodes import Locate, Node, Scan, StreamType, TensorDecl, Turn, WriteLevel, WriteValues
from fuseflow.samml.tokens import D, N, Stop
from fuseflow.samml.writers import LaneWriter
from fuseflow.sim.outcome.output_tensors import WriterStream
from fuseflow.sim.reference.timed_process import Fifo, Output, Process, Steps
from fuseflow.tensors import Tensor
from fuseflow.tensors.levels import Fibers, Level


@dataclass(frozen=True, slots=True)
class NodeContext:
    """The context of one node in the network that is being built. `types` are the types of its input streams, `declared` the
    tensors of the graph by name, and `written` the output streams of tensors."""

    node: Node
    inputs: tuple[Fifo, ...]
    outputs: tuple[Output, ...]
    types: tuple[StreamType, ...]
    timing: NodeTiming
    machine: Machine
    declared: Mapping[str, TensorDecl]
    tensors: Mapping[str, Tensor]
    written: Mapping[str, WriterStream]
    arithmetic: Arithmetic
    sums: bool = False
    """Whether there is a sum for every stop, on `comal` (`readers_of_sums`)."""
    turn: Turn | None = None
    """The turn of the node at a port that it shares."""

    @property
    def latency(self) -> int:
        """The cycles from a firing until its tokens are visible."""
        return self.timing.latency

    @property
    def interval(self) -> int:
        """The cycles from one firing on a value to the next."""
        return self.timing.interval

    def size(self, tensor: str, level: int) -> int:
        """Return the size of the dimension that a level stores."""
        decl = self.declared[tensor]
        return decl.shape[decl.format.order[level]]

    def level(self, node: Scan | Locate | WriteLevel) -> Level:
        """Return the level that a node reads or writes."""
        return self.declared[node.tensor].format.levels[node.level]

    def room(self, node: WriteLevel | WriteValues) -> int:
        """Return the number of entries to which a writer pads every fiber, or 0 if its level does not pad."""
        return self.declared[node.tensor].room(node.level if isinstance(node, WriteLevel) else -1) or 0

    def fibers(self, node: Scan | Locate) -> Fibers:
        """Return the fibers that a node reads."""
        return self.tensors[node.tensor].levels[node.level]

    def process(self, steps: Callable[..., Steps], *arguments: Any, **named: Any) -> list[Process]:
        """Return a list with a single process of the node, whose steps are `steps(process, *arguments, **named)`."""
        process = Process(self.node, self.inputs, self.outputs, self.interval)
        process.steps = steps(process, *arguments, **named)
        return [process]


Rule: TypeAlias = Callable[[Any, NodeContext], Sequence[Process]]
"""A rule builds the processes of a node."""


class Tiles:
    """An array to which tiles are appended row by row."""

    def __init__(self, values: array[Any]) -> None:
        self.values = values
        self.count = 0

    def append(self, tile: npt.NDArray[np.float64]) -> None:
        self.values.extend(tile.flat)
        self.count += 1

    def __len__(self) -> int:
        return self.count


class Written(Output):
    """The output of a writer: its values become elements, and a stop that ends a fiber the number of elements so far."""

    __slots__ = ("elements", "positions")

    def __init__(self, elements: array[Any] | Tiles, positions: array[int]) -> None:
        super().__init__(1)
        self.elements, self.positions = elements, positions

    def push(self, token: Any, t: int) -> None:
        if token.__class__ is Stop:
            if token.low == 0:
                self.positions.append(len(self.elements))
        elif token is not D and token is not N:
            self.elements.append(token)


def written_by(node: n.WriteLevel | n.WriteValues | LaneWriter, context: NodeContext) -> Written:
    """Return the output of a writer, with new empty arrays that the streams of its tensor share."""
    written, positions = context.written[node.tensor], array("q")
    column: array[Any]
    match node:
        case n.WriteLaneLevel() | n.WriteLaneValues():
            column = written.lanes[node.name] = array("q" if isinstance(node, n.WriteLaneLevel) else "d")
        case n.WriteLevel():
            column, positions = written.crd[node.level], written.pos[node.level] = array("q"), array("q", [0])
        case n.WriteValues():
            column = written.values = array("d")
        case unknown:
            assert_never(unknown)
    is_tiled = isinstance(node, n.WriteValues) and context.declared[node.tensor].tile
    return Written(Tiles(column) if is_tiled else column, positions)
