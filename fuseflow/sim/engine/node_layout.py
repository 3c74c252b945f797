"""Where a rule lays out a node: the parts that run it, with their state, and the arrays they use."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from fuseflow.samml.nodes import Locate, Node, Port, Scan, StreamType, TensorDecl, WriteLevel
from fuseflow.sim.engine.workspace import WORKSPACE, Table
from fuseflow.sim.native.jit import Function, Library
from fuseflow.sim.native.records import Record, address
from fuseflow.tensors import Tensor
from fuseflow.tensors.levels import Level
from fuseflow.tile_ops import TileShape

Array: TypeAlias = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Limits:
    """Sizes that bound the engine's memory and the length of its steps. Results do not depend on them: what is too small grows."""

    runs: int = 256  # in the ring of a stream
    elements: int = 1 << 14  # computed, in the ring of a stream; of tiles, their words
    pops: int = 256  # runs of pops in the history of a reader
    burst: int = 1 << 40  # firings in one piece
    written: int = 1 << 16  # elements that a writer gathers before they are moved away; of tiles, their words
    blocks: int = 64  # of a workspace


@dataclass(frozen=True, slots=True, eq=False)
class Link:
    """A stream inside a node: between two of its parts, or one that nobody reads. `latency`: if not that of the node; `stored`: whether
    elements are stored in its own ring, if its part does that at all; `depth`: slots of its reader, None: unbounded."""

    latency: int | None = None
    stored: bool = True
    depth: int | None = None


Stream: TypeAlias = Port | Link


def words(tile: TileShape) -> int:
    """Of an element. One of a single word may come in a run that repeats it, be it a scalar or a tile of 1 x 1."""
    return prod(tile)


def fitting(limit: int, tile: TileShape) -> int:
    """How many elements take up a limit of words: a power of two if that is one."""
    return max(limit >> (words(tile) - 1).bit_length(), 1)


@dataclass(frozen=True, slots=True)
class Part:
    """One kernel with its state: a node, or one of the two halves of an accumulator, on comal of a repeat. `computes`: it may store
    elements of its own in the ring of an output. `first`: which input of the node its first input is. `helper`: it asks the memory for
    another part, a line a cycle, and its firings are not the node's."""

    kernel: Function
    state: Array
    inputs: Sequence[Stream]
    outputs: Sequence[Stream]
    computes: bool = True
    first: int = 0
    helper: bool = False


@dataclass(slots=True)
class NodeLayout:
    """One node of the graph that is being laid out. `types` are those of its inputs, `keep` holds the arrays that kernels
    find by address, `tables` the workspaces of each node."""

    node: Node
    types: tuple[StreamType, ...]
    bounds: Mapping[Port, int]
    declared: Mapping[str, TensorDecl]
    tensors: Mapping[str, Tensor]
    library: Library
    limits: Limits
    keep: dict[int, Array]
    tables: dict[str, list[Table]] = field(default_factory=dict)

    @property
    def outputs(self) -> tuple[Port, ...]:
        return tuple(Port(self.node.name, k) for k in range(len(self.node.port_names())))

    def level(self, node: Scan | Locate | WriteLevel) -> Level:
        """The level that a node reads or writes."""
        return self.declared[node.tensor].format.levels[node.level]

    def size(self, tensor: str, level: int) -> int:
        """The size of the dimension that a level stores."""
        decl = self.declared[tensor]
        return decl.shape[decl.format.order[level]]

    def array(self, values: Array) -> int:
        """The address of an array, kept alive; integers are 64 bits wide."""
        values = np.ascontiguousarray(values, dtype=np.int64 if values.dtype.kind == "i" else values.dtype)
        self.keep[address(values)] = values
        return address(values)

    def buffer(self, kind: Any, count: int) -> int:
        """The address of a new array of a dtype."""
        made = np.zeros(count, kind)
        self.keep[address(made)] = made
        return address(made)

    def state(self, record: Record, **values: float) -> Array:
        """A new record with these values, zero elsewhere."""
        made = record.array(1)
        for name, value in values.items():
            made[name] = value
        return made

    def filled(self, tile: TileShape, value: float) -> int:
        """The address of an element that holds one value."""
        return self.array(np.full(words(tile), value))

    def workspaces(self, count: int, space: int, width: int = 1) -> int:
        """The address of so many workspaces for `space` possible keys, and values of `width` words."""
        records = WORKSPACE.array(count)
        self.tables[self.node.name] = [Table(records[k : k + 1], space, self.limits.blocks, width) for k in range(count)]
        return self.array(records)

    def part(self, kernel: Function, state: Array | None = None, computes: bool = True) -> list[Part]:
        """The one part of the node."""
        return [Part(kernel, np.zeros(1, np.int64) if state is None else state, self.node.inputs, self.outputs, computes)]


Rule: TypeAlias = Callable[[Any, NodeLayout], list[Part]]
