"""Where the arrays of a region lie: one address space, tensors in the order in which nodes name them, every array at a multiple of a line.
So what a tensor is called does not matter.

Inputs lie one behind the other. Nobody knows how long the arrays of a result will be, so they share what is left evenly.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Literal, TypeAlias

from fuseflow.errors import SimulationError
from fuseflow.samml.nodes import Graph, Names, TensorDecl
from fuseflow.tensors import DTYPES, Tensor

ArrayKind: TypeAlias = Literal["pos", "crd", "val"]
ArrayName: TypeAlias = tuple[str, int, ArrayKind]
"""A tensor, a storage level of it (-1 for the values), and which array of that."""


@dataclass(frozen=True, slots=True)
class AddressRange:
    """`base`: the address of the first byte; `length`: the bytes that it holds, or may grow to; `width`: those of one element."""

    base: int
    length: int
    width: int


def lay_out(graph: Graph, tensors: Mapping[str, Tensor], capacity: int, line: int = 64) -> dict[ArrayName, AddressRange]:
    """The place of every array of the graph, in order of addresses, each at a multiple of `line` bytes. Raises `SimulationError` if
    `capacity` bytes are too few."""
    ranges: dict[ArrayName, AddressRange] = {}
    end = 0
    inputs, outputs = (
        tuple(name for name in tensors_in_memory(graph) if name in names) for names in (graph.inputs, graph.outputs)
    )
    for name in inputs:
        for array, width in tensor_arrays(graph.declared[name]):
            length = _elements(tensors[name], array) * width
            ranges[array] = AddressRange(end, length, width)
            end += -(-length // line) * line
    written = [pair for name in outputs for pair in tensor_arrays(graph.declared[name])]
    share = (capacity - end) // max(len(written), 1) // line * line
    if share < line:
        raise SimulationError(
            f"graph `{graph.name}` reads {end:,} bytes; the memory has {capacity:,}, and its results need some of them",
            hint="give the machine more channels",
        )
    for array, width in written:
        ranges[array] = AddressRange(end, share, width)
        end += share
    return ranges


def tensors_in_memory(graph: Graph) -> tuple[str, ...]:
    """The tensors of a graph, in the order in which its nodes name them."""
    declared = graph.declared
    return tuple(dict.fromkeys(node.tensor for node in graph.nodes if isinstance(node, Names) and node.asks_memory(declared)))


def tensor_arrays(tensor: TensorDecl) -> list[tuple[ArrayName, int]]:
    """The arrays of a tensor, outermost level first, then its values, each with the bytes of an element."""
    widths: list[tuple[ArrayName, int]] = []
    for p, (level, dimension) in enumerate(zip(tensor.format.levels, tensor.format.order, strict=True)):
        widths += [((tensor.name, p, array.kind), array.bytes) for array in level.arrays(tensor.shape[dimension])]
    return [*widths, ((tensor.name, -1, "val"), DTYPES[tensor.dtype].itemsize * prod(tensor.tile))]


def _elements(tensor: Tensor, array: ArrayName) -> int:
    _, level, kind = array
    if kind == "val":
        return len(tensor.values)
    fibers = tensor.levels[level]
    (name,) = (stored.name for stored in tensor.format.levels[level].arrays(fibers.size) if stored.kind == kind)
    return len(fibers.arrays[name])


def array_label(array: ArrayName) -> str:
    """As in `A.1.crd`: the coordinates of the inner level; `A.val`."""
    tensor, level, kind = array
    return f"{tensor}.{kind if level < 0 else f'{level}.{kind}'}"


def format_layout(places: Mapping[ArrayName, AddressRange]) -> str:
    """The map, one array a line."""
    return "".join(f"{p.base:#012x}  {p.length:>16,}  {array_label(array)}\n" for array, p in places.items())
