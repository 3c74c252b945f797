"""The memory layout of a region. Its arrays lie in one address space, in the order in which the nodes name their tensors, and
each begins at a multiple of a line. So the names of tensors do not affect addresses. A resident tensor is not in the memory, nor
is one that is kept in the scratchpad. Tensors that are moved between it and the memory come first, so that all that are moved in
one way are one range of lines.

Inputs are placed one after the other. The length of the arrays of a result is unknown, so they share the rest of the memory
evenly.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Literal, TypeAlias

from fuseflow.errors import ScratchpadError, SimulationError
from fuseflow.memory.scratchpad_settings import Scratchpad
from fuseflow.samml.nodes import TRANSFERS, Graph, TensorDecl, TensorUser, Transfer
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
    in_memory = [name for name in used_tensors(graph) if is_in_memory(graph.declared[name])]
    in_memory.sort(key=lambda name: TRANSFERS.index(graph.declared[name].scratchpad) or len(TRANSFERS))
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


def is_in_memory(tensor: TensorDecl) -> bool:
    """Return whether a tensor has addresses in the memory."""
    return not tensor.resident and tensor.scratchpad != "kept"


def transfer_range(graph: Graph, ranges: Mapping[ArrayName, AddressRange], transfer: Transfer) -> AddressRange | None:
    """Return the addresses of all inputs that are moved between the scratchpad and the memory in one way, given the ranges of
    `lay_out`; None if none is."""
    moved = [ranges[array] for array in ranges if array[0] in graph.inputs and graph.declared[array[0]].scratchpad == transfer]
    base, end = min((place.base for place in moved), default=0), max((place.base + place.length for place in moved), default=0)
    return AddressRange(base, end - base, 8) if end > base else None


def place_on_chip(graph: Graph, tensors: Mapping[str, Tensor], scratchpad: Scratchpad) -> dict[ArrayName, AddressRange]:
    """Return the range of every array that lies in a scratchpad, each at a multiple of a word. `tensors` has the inputs. Results whose
    length is unknown share the rest of the scratchpad evenly. Raises `ScratchpadError` if the scratchpad is too small."""
    ranges: dict[ArrayName, AddressRange] = {}
    open_ended: list[tuple[ArrayName, int]] = []
    end, word = 0, scratchpad.bytes_a_cycle
    for name in used_tensors(graph):
        tensor, before = graph.declared[name], end
        for array, bits in tensor_arrays(tensor) if tensor.scratchpad else ():
            if name in graph.inputs:
                length = bytes_of(array_elements(tensors[name], array), bits)
            elif _has_known_size(tensor):
                length = bytes_of(prod(tensor.level_sizes), bits)
            else:
                open_ended.append((array, bits))
                continue
            ranges[array] = AddressRange(end, length, bits)
            end += -(-length // word) * word
        if end > scratchpad.bytes:
            raise _no_room(graph, tensor, end - before, before, scratchpad)
    share = (scratchpad.bytes - end) // max(len(open_ended), 1) // word * word
    for array, bits in open_ended:
        if share < word:
            raise _no_room(graph, graph.declared[array[0]], 0, end, scratchpad)
        ranges[array] = AddressRange(end, share, bits)
        end += share
    return ranges


def stored_arrays(graph: Graph) -> tuple[ArrayName, ...]:
    """Return the arrays of results that are stored from the scratchpad to the memory at the end, in the order of the scratchpad."""
    names = [name for name in used_tensors(graph) if name in graph.outputs]
    moved = [tensor for tensor in map(graph.declared.__getitem__, names) if tensor.scratchpad and is_in_memory(tensor)]
    moved.sort(key=lambda tensor: not _has_known_size(tensor))
    return tuple(array for tensor in moved for array, _ in tensor_arrays(tensor))


def _has_known_size(tensor: TensorDecl) -> bool:
    """Return whether the bytes of a result are known before the graph runs."""
    return tensor.format.all_dense and not tensor.like


def _no_room(graph: Graph, tensor: TensorDecl, size: int, taken: int, scratchpad: Scratchpad) -> ScratchpadError:
    """Return the error for a tensor of `size` bytes, 0 if that is not known, in a scratchpad of which `taken` bytes are taken. A tile of a
    tensor that is moved while another one is used has room beside that other one, which is among those that are taken."""
    is_second = tensor.scratchpad in ("ahead", "behind")
    name = f"each of two tiles of `{tensor.name.rpartition('.')[0]}`" if is_second else f"`{tensor.name}`"
    others = max(taken - size, 0) if is_second else taken
    beside = f", of which others take {others:,}" if others else ""
    bytes_ = f"{size:,} bytes" if size else "no known size"
    error = ScratchpadError(
        f"graph `{graph.name}`: {name} has {bytes_}, and the scratchpad {scratchpad.bytes:,}{beside}",
        hint="leave it in the memory, or give the machine a larger scratchpad",
    )
    error.tensor, error.size, error.room = tensor.name, size, scratchpad.bytes - taken
    return error


def used_tensors(graph: Graph) -> tuple[str, ...]:
    """Return the tensors of a graph whose arrays are read or written, in the order in which its nodes name them, and behind these the
    tensors that are moved for other graphs while it runs."""
    declared = graph.declared
    used = (node.tensor for node in graph.nodes if isinstance(node, TensorUser) and node.uses_storage(declared))
    moved = (tensor.name for tensor in graph.tensors if tensor.scratchpad in ("ahead", "behind"))
    return tuple(dict.fromkeys((*used, *moved)))


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
    """Return a readable name of an array: `A.1.crd` for the coordinates of the inner level of a matrix `A`, `A.val` for its values."""
    tensor, level, kind = array
    return f"{tensor}.{kind if level < 0 else f'{level}.{kind}'}"
