"""The output of writers: their tokens are stored in arrays."""

from __future__ import annotations

from array import array
from typing import Any, assert_never

import numpy as np
import numpy.typing as npt

from fuseflow.samml import nodes as n
from fuseflow.samml.lane_writers import LaneWriter
from fuseflow.samml.tokens import D, N, Stop
from fuseflow.sim.reference.node_context import NodeContext
from fuseflow.sim.reference.timed_process import Output


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
