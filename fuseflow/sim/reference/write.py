"""Write: streams go to memory, with one firing a token. At the end of a fiber of a level that pads, there is one for each entry that the
fiber lacks."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from fuseflow.samml import nodes as n
from fuseflow.samml.lane_writers import LaneWriter
from fuseflow.samml.tokens import D, N, Stop
from fuseflow.sim.reference.node_context import NodeContext, Rule
from fuseflow.sim.reference.process import Process, Steps


def write_level(node: n.WriteLevel, context: NodeContext, steps: Callable[..., Steps] | None = None) -> Sequence[Process]:
    """Return the process that writes a level. `steps` is its rule if that is not the one of this module."""
    written = context.written[node.tensor]
    crd = written.crd[node.level] = array("q")
    pos = written.pos[node.level] = array("q", [0])
    return context.process(steps or partial(_write, room=context.room(node.tensor, node.level)), crd, pos)


def write_values(node: n.WriteValues, context: NodeContext, steps: Callable[..., Steps] | None = None) -> Sequence[Process]:
    """Return the process that writes values. `steps` is its rule if that is not the one of this module."""
    values = context.written[node.tensor].values = array("d")
    elements = Tiles(values) if context.declared[node.tensor].tile else values
    return context.process(steps or partial(_write, room=context.room(node.tensor, -1)), elements, array("q"))


def write_lane(node: LaneWriter, context: NodeContext, steps: Callable[..., Steps] | None = None) -> Sequence[Process]:
    """Return the process that writes what a lane has of a level, or of the values."""
    elements = lane_elements(node, context)
    return context.process(steps or partial(_write, room=0), elements, array("q"))


def lane_elements(node: LaneWriter, context: NodeContext) -> array[Any] | Tiles:
    """Return what the entries of a lane are appended to."""
    column = context.written[node.tensor].lanes[node.name] = array("q" if isinstance(node, n.WriteLaneLevel) else "d")
    is_tiled = isinstance(node, n.WriteLaneValues) and context.declared[node.tensor].tile
    return Tiles(column) if is_tiled else column


class Tiles:
    """An array to which tiles are appended row by row."""

    def __init__(self, values: array[float]) -> None:
        self.values = values
        self.count = 0

    def append(self, tile: npt.NDArray[np.float64]) -> None:
        self.values.extend(tile.flat)
        self.count += 1

    def __len__(self) -> int:
        return self.count


def _write(p: Process, elements: array[Any] | Tiles, positions: array[int], room: int) -> Steps:
    """Append every value. A stop that ends a fiber appends the number of values so far, once the fiber has as many as there is room for."""
    (source,) = p.inputs
    begin = 0
    fire, take, append = p.fire, source.take, elements.append
    while True:
        while not source:
            yield source
        token, visible = source[0]
        if token.__class__ is Stop:
            if token.low == 0:
                for _ in range(begin + room - len(elements)):
                    fire(visible)
                begin = len(elements)
                positions.append(begin)
            take(p.close(visible))
        elif token is D:
            take(p.close(visible))
            return
        elif token is N:
            raise p.refused()
        else:
            take(fire(visible))
            append(token)


RULES: dict[type[n.Node], Rule] = {
    n.WriteLevel: write_level,
    n.WriteValues: write_values,
    n.WriteLaneLevel: write_lane,
    n.WriteLaneValues: write_lane,
}
