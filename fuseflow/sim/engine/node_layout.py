"""A layout rule turns a node into its parts (pieces that fire on their own), with their state and arrays. This module has what
the rules share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from fuseflow.float32.operator_precision import Arithmetic
from fuseflow.machine.machine import Machine
from fuseflow.native.kernel_library import Library
from fuseflow.native.records import Record, address
from fuseflow.native.signatures import Function
from fuseflow.samml.nodes import Locate, Node, Port, Scan, StreamType, TensorDecl, WriteLevel
from fuseflow.sim.engine.node_firing import NEST
from fuseflow.sim.engine.workspace import HELD, WORKSPACE, EntryList, WorkspaceTable
from fuseflow.tensors import Tensor
from fuseflow.tensors.levels import Level
from fuseflow.tensors.levels.base import Listed
from fuseflow.tile_ops import TileShape

Array: TypeAlias = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Limits:
    """Sizes that bound the engine's memory and the length of its steps. Results do not depend on them: small buffers grow."""

    runs: int = 256  # in the ring of a stream
    elements: int = 1 << 14  # computed, in the ring of a stream; of tiles, their words
    pops: int = 256  # runs of pops in the history of a reader
    burst: int = 1 << 40  # firings in one piece
    writer_elements: int = 1 << 16  # elements that a writer gathers before they are moved away; of tiles, their words
    blocks: int = 64  # of a workspace
    windows: int = 3  # of a memory: a graph whose FIFOs hold no more than the tokens of this many leaves no part for later
    alone: int = 1 << 23  # firings of one thread, after which others may join
    threads: int = 0  # that run together then; 0: as many as pay


@dataclass(frozen=True, slots=True, eq=False)
class Link:
    """A link is a stream between two parts of one node, or a stream without readers. `latency` is None where it is the latency of
    the node. `stored` says whether elements go into the link's ring of computed elements, if its part computes any. `depth` is
    the depth of the reader's FIFO, None for an unbounded one."""

    latency: int | None = None
    stored: bool = True
    depth: int | None = None


StreamKey: TypeAlias = Port | Link
"""A stream is identified by the port of the graph that emits it, or by the link inside a node."""


def word_count(tile: TileShape) -> int:
    """Return the number of words of an element, a scalar or a tile. An element of one word may be stored as a run that repeats
    it."""
    return prod(tile)


def element_capacity(limit: int, tile: TileShape) -> int:
    """Return how many elements fit into `limit` words (at least 1); the result is a power of two if the limit is."""
    return max(limit >> (word_count(tile) - 1).bit_length(), 1)


@dataclass(frozen=True, slots=True)
class Part:
    """A part is one kernel with its state: a whole node, or a piece of one, such as the fill or the emit of an accumulator.
    `computes` says whether the part may store computed elements in the ring of an output. `first` is the number of the part's
    first input among those of the node. The firings of a `helper` do not count as firings of the node. `asks` says whether its
    firings may make requests to the memory. A part that `emits` emits values that another part of the node folded. `requesters`
    has the addresses of the records with which the part makes requests to the memory, by use: "sends", "answers", "fetches",
    "positions"."""

    kernel: Function
    state: Array
    inputs: Sequence[StreamKey]
    outputs: Sequence[StreamKey]
    computes: bool = True
    first: int = 0
    helper: bool = False
    asks: bool = False
    emits: bool = False
    requesters: Mapping[str, int] = field(default_factory=dict)


TensorData: TypeAlias = dict[tuple[int, int, bool], tuple[Array, Array]]
"""The arrays of tensors by address, size, and whether they are widened; with each the array that kernels read. Nodes that read one
level share it."""


@dataclass(slots=True)
class NodeLayout:
    """The layout of one node of the graph on a machine. `types` are the types of its inputs, `bounds` a bound of the coordinates
    of each stream, `arrays` the arrays that kernels find by address and may write, `data` those of tensors, `tables` the workspaces of
    each node by name."""

    node: Node
    machine: Machine
    types: tuple[StreamType, ...]
    bounds: Mapping[Port, int]
    declared: Mapping[str, TensorDecl]
    tensors: Mapping[str, Tensor]
    library: Library
    limits: Limits
    arrays: dict[int, Array]
    data: TensorData
    arithmetic: Arithmetic
    tables: dict[str, list[WorkspaceTable] | list[EntryList]] = field(default_factory=dict)
    sums: bool = False
    """Whether there is a sum for every stop, on `comal` (`readers_of_sums`)."""

    def level(self, node: Scan | Locate | WriteLevel) -> Level:
        """Return the level that a node reads or writes."""
        return self.declared[node.tensor].format.levels[node.level]

    def size(self, tensor: str, level: int) -> int:
        """Return the size of the dimension that a level stores."""
        return self.declared[tensor].size(level)

    def tensor_array(self, values: Array, widened: bool = True) -> int:
        """Return the address of an array of a tensor, kept alive by the layout and only read. Integers are `widened` to 64 bits first."""
        values = np.ascontiguousarray(values)
        key = address(values), values.nbytes, widened
        if key not in self.data:
            self.data[key] = values, values.astype(np.int64, copy=False) if widened and values.dtype.kind == "i" else values
        return address(self.data[key][1])

    def array(self, values: Array) -> int:
        """Return the address of an array, which the layout keeps alive."""
        at = address(values)
        self.arrays[at] = values
        return at

    def buffer(self, kind: Any, count: int) -> int:
        """Return the address of a new zeroed array of `count` elements of the dtype `kind`."""
        return self.array(np.zeros(count, kind))

    def state(self, record: Record, **values: float) -> Array:
        """Return a new record array of one element, with the given fields and zero elsewhere."""
        state = record.array(1)
        for name, value in values.items():
            state[name] = value
        return state

    def constant_element(self, tile: TileShape, value: float) -> int:
        """Return the address of an element, a number or a tile, all of whose words are one value."""
        return self.array(np.full(word_count(tile), value))

    def constant_tile(self, tile: TileShape, value: float) -> int:
        """Return the address of a tile all of whose words are `value`, or 0 if an element has a single word and needs no tile."""
        return self.constant_element(tile, value) if word_count(tile) > 1 else 0

    def workspaces(self, count: int, space: int, width: int = 1) -> int:
        """Return the address of `count` empty workspaces, each for `space` possible keys and values of `width` words."""
        records = WORKSPACE.array(count)
        self.tables[self.node.name] = [WorkspaceTable(records[k : k + 1], space, self.limits.blocks, width) for k in range(count)]
        return self.array(records)

    def nest(self, depth: int) -> int:
        """Return the address of the state of `depth` coordinate streams around an inner stream."""
        return self.array(self.state(NEST, depth=depth, crds=self.buffer(np.int64, max(depth, 1))))

    def fiber_arrays(self, walk: Listed, *names: str) -> dict[str, int]:
        """Return the addresses of the named arrays of fibers, by name, except those that the fibers lack."""
        arrays = {name: getattr(walk, name) for name in names}
        return {name: self.tensor_array(values) for name, values in arrays.items() if values is not None}

    def entry_lists(self, count: int, levels: int) -> int:
        """Return the address of `count` empty lists of entries with `levels` coordinates."""
        records = HELD.array(count)
        self.tables[self.node.name] = [EntryList(records[k : k + 1], levels, self.limits.blocks) for k in range(count)]
        return self.array(records)

    def part(self, kernel: Function, state: Array | None = None, computes: bool = True, asks: bool = False) -> list[Part]:
        """Return a list with a single part that runs the whole node."""
        state = np.zeros(1, np.int64) if state is None else state
        return [Part(kernel, state, self.node.inputs, self.node.ports, computes, asks=asks)]


LayoutRule: TypeAlias = Callable[[Any, NodeLayout], list[Part]]
"""A layout rule takes a node and its layout and returns the parts that run the node."""
