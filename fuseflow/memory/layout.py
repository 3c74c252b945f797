"""The memory layout of a region. Its arrays lie in one address space, in the order in which the nodes name their tensors, and
each begins at a multiple of a line. So the names of tensors do not affect addresses. A resident tensor is not in the memory.

Inputs are placed one after the other. The length of the arrays of a result is unknown, so they share the rest of the memory
evenly.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from fuseflow.errors import SimulationError
from fuseflow.samml.nodes import Graph, TensorDecl, TensorUser
from fuseflow.tensors import Tensor
from fuseflow.tensors.levels.base import bytes_of

ArrayKind: TypeAlias = Literal["pos", "crd", "val"]
ArrayName: TypeAlias = tuple[str, int, ArrayKind]
"""The name of an array: its tensor, a storage level of the tensor (-1 for the values), and the kind of the array."""


@dataclass(frozen=True, slots=True)
class AddressRange:
    """The addresses of an array. `base` is the address of its first byte, `length` the number of bytes that it holds or may grow to, and
    `bits` the number of bits of one element."""

    base: int
    length: int
    bits: int


def lay_out(graph: Graph, tensors: Mapping[str, Tensor], capacity: int, line: int = 64) -> dict[ArrayName, AddressRange]:
    """Return the address range of every array of a graph, in the order of addresses, each at a multiple of `line` bytes.
    `tensors` has the inputs. Raises `SimulationError` if `capacity`, the bytes of the memory, is too small."""
    ranges: dict[ArrayName, AddressRange] = {}
    end = 0
    in_memory = [name for name in used_tensors(graph) if not graph.declared[name].resident]
    inputs, outputs = (tuple(name for name in in_memory if name in names) for names in (graph.inputs, graph.outputs))
    for name in inputs:
        for array, bits in tensor_arrays(graph.declared[name]):
            length = bytes_of(array_elements(tensors[name], array), bits)
            ranges[array] = AddressRange(end, length, bits)
            end += -(-length // line) * line
    written = [pair for name in outputs for pair in tensor_arrays(graph.declared[name])]
    share = (capacity - end) // max(len(written), 1) // line * line
    if share < line:
        raise SimulationError(
            f"graph `{graph.name}` reads {end:,} bytes; the memory has {capacity:,}, and its results need some of them",
            hint="give the machine more channels",
        )
    for array, bits in written:
        ranges[array] = AddressRange(end, share, bits)
        end += share
    return ranges


def used_tensors(graph: Graph) -> tuple[str, ...]:
    """Return the tensors of a graph whose arrays are read or written, in the order in which its nodes name them."""
    declared = graph.declared
    return tuple(
        dict.fromkeys(node.tensor for node in graph.nodes if isinstance(node, TensorUser) and node.uses_storage(declared))
    )


def tensor_arrays(tensor: TensorDecl) -> list[tuple[ArrayName, int]]:
    """Return the arrays of a tensor, the outermost level first and the values last, each with the bits of an element. A tensor that
    is like another one has no arrays of levels."""
    widths: list[tuple[ArrayName, int]] = []
    for p, (level, dimension) in enumerate(zip(tensor.format.levels, tensor.format.order, strict=True)):
        if tensor.like:
            break
        widths += [((tensor.name, p, array.kind), array.bits) for array in level.arrays(tensor.shape[dimension])]
    return [*widths, ((tensor.name, -1, "val"), tensor.value_bits)]


def array_elements(tensor: Tensor, array: ArrayName) -> int:
    """Return the number of elements of an array of a tensor."""
    _, level, kind = array
    if kind == "val":
        return len(tensor.values)
    fibers = tensor.levels[level]
    (name,) = (stored.name for stored in tensor.format.levels[level].arrays(fibers.size) if stored.kind == kind)
    return len(fibers.arrays[name])


def array_label(array: ArrayName) -> str:
    """Return a readable name of an array, such as `A.1.crd` for the coordinates of the inner level of a matrix `A`, or `A.val` for its
    values."""
    tensor, level, kind = array
    return f"{tensor}.{kind if level < 0 else f'{level}.{kind}'}"
