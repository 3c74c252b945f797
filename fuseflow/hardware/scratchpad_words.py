"""The words of the arrays in the scratchpad of a circuit, as the arrays lie in it.

Elements lie one behind the other. A position or a coordinate is a number of so many bits, and a value is the word of the circuit,
of whose bits an array of narrower elements has the lowest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import prod

from fuseflow.hardware.arithmetic import Arithmetic
from fuseflow.memory.layout import AddressRange, ArrayName
from fuseflow.memory.memory_interface import Controller
from fuseflow.tensors import Tensor

Words = Mapping[int, int]
"""Words by their number in the scratchpad."""


def placed_words(controller: Controller, tensors: Mapping[str, Tensor], arithmetic: Arithmetic) -> dict[ArrayName, Words]:
    """Return the words of each array of `tensors` in the scratchpad of a circuit."""
    assert controller.scratchpad is not None
    size = controller.scratchpad.bytes_a_cycle
    return {
        array: _words(tensors[array[0]], array, place, size, arithmetic)
        for array, place in controller.on_chip.items()
        if array[0] in tensors
    }


def hex_words(words: Iterable[tuple[int, int]]) -> str:
    """Return words, given with their numbers, as a file of `$readmemh`."""
    return "".join(f"@{number:x} {word:x}\n" for number, word in sorted(words))


def _words(tensor: Tensor, array: ArrayName, place: AddressRange, size: int, arithmetic: Arithmetic) -> Words:
    mask = (1 << place.bits) - 1
    digits = "".join(f"{element & mask:0{place.bits}b}" for element in reversed(_elements(tensor, array, place.bits, arithmetic)))
    count = -(-len(digits) // (8 * size))
    data = int(digits or "0", 2).to_bytes(count * size, "little")
    first = place.base // size
    return {first + k: int.from_bytes(data[k * size : (k + 1) * size], "little") for k in range(count)}


def _elements(tensor: Tensor, array: ArrayName, bits: int, arithmetic: Arithmetic) -> list[int]:
    _, level, kind = array
    if kind == "val":
        width = bits // prod(tensor.tile)
        tiles = tensor.values.astype(float).reshape(len(tensor.values), prod(tensor.tile)).tolist()
        return [_joined([arithmetic.word(number) for number in tile], width) for tile in tiles]
    fibers = tensor.levels[level]
    (name,) = (stored.name for stored in tensor.format.levels[level].arrays(fibers.size) if stored.kind == kind)
    elements: list[int] = fibers.arrays[name].tolist()
    return elements


def _joined(words: list[int], width: int) -> int:
    """Return the lowest `width` bits of each of some words as one word. The first is the lowest."""
    return sum((word & (1 << width) - 1) << width * k for k, word in enumerate(words))
