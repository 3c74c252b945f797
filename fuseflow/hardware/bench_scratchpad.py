"""The data of a scratchpad in a testbench. What is kept from the last graph is in the banks from the start, and what is
loaded when the root of the graph fires. What is written there are the words of the results, which the testbench packs, and at the end
the banks are written to files, to be compared with these words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import prod
from pathlib import Path

from fuseflow.hardware.arithmetic import Arithmetic
from fuseflow.hardware.arrays import array_of
from fuseflow.hardware.axi_ports import ADDRESS_BITS
from fuseflow.hardware.circuit import Circuit
from fuseflow.hardware.evaluate import Evaluation
from fuseflow.hardware.memory_run import MemoryRun
from fuseflow.hardware.scratchpad_top import ScratchpadTop
from fuseflow.hardware.top import Top
from fuseflow.memory.layout import AddressRange, ArrayName
from fuseflow.memory.memory_interface import Controller
from fuseflow.samml import nodes as n
from fuseflow.samml.auxiliary_tensors import auxiliary_tensors
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


IMAGE = "scratchpad.hex"
"""The file with the words of the results."""


@dataclass(frozen=True, slots=True)
class BenchScratchpad:
    """The scratchpad of a testbench: declarations, further `pins` of the circuit, statements in every cycle and of the end, and files.
    `results` are the words that must be there at the end."""

    parts: tuple[str, ...] = ()
    pins: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()
    ends: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    results: Words = field(default_factory=dict)


def bench_scratchpad(
    circuit: Circuit, top: Top, run: MemoryRun, tensors: Mapping[str, Tensor], results: Mapping[str, Tensor]
) -> BenchScratchpad:
    """Return the scratchpad of a testbench, for tensors that are read and `results` that are written."""
    scratchpad, units = top.scratchpad, {unit.node.name: unit for unit in circuit.units}
    pins, parts = list[str](), list[str]()
    if top.store is not None:
        parts += _stored_pins(circuit, run)
        pins += top.store.inputs
    if scratchpad is None:
        return BenchScratchpad(tuple(parts), tuple(pins))
    loaded = placed_words(run.model, {**auxiliary_tensors(circuit.graph), **tensors}, circuit.arithmetic)
    written = {
        number: word for words in placed_words(run.model, results, circuit.arithmetic).values() for number, word in words.items()
    }
    files = {IMAGE: hex_words(written.items() or [(0, 0)])}
    for port in scratchpad.ports:
        if not port.write:
            first = run.ports[port.node, port.kind].place.base // port.line
            words = loaded[array_of(units[port.node], port.kind)]
            files[f"words_{port.name}.hex"] = hex_words((number - first, word) for number, word in words.items()) or "0\n"
    banks, declared = scratchpad.settings.banks, circuit.graph.declared
    steps, ends = list[str](), list[str]()
    for bank in range(banks):
        store = f"dut.scratchpad.banks[{bank}].words.store"
        for kept in (True, False):
            arrays = (words for array, words in loaded.items() if (declared[array[0]].scratchpad == "kept") == kept)
            mine = [(number // banks, word) for words in arrays for number, word in words.items() if number % banks == bank]
            if mine:
                file = f"{'kept' if kept else 'loaded'}{bank}.hex"
                files[file] = hex_words(mine)
                (parts if kept else steps).append(f'{"initial" if kept else " "} $readmemh("{file}", {store});')
        if any(number % banks == bank for number in written):
            ends.append(f'$writememh("{_left(bank)}", {store});')
    roots = [f"dut.{top.instances[node.name]}.out0_valid" for node in circuit.graph.nodes if isinstance(node, n.Root)]
    steps = [f"if (!loaded & ({' | '.join(roots)})) begin", *steps, "  loaded = 1;", "end"]
    parts += _pins(scratchpad)
    pins += [f"scratchpad_{pin}" for pin in (*scratchpad.inputs, *scratchpad.outputs)]
    return BenchScratchpad(tuple(parts), tuple(pins), tuple(steps), tuple(ends), files, written)


def misplaced(results: Words, top: Top, run: Evaluation, folder: Path) -> tuple[int, ...]:
    """Return the numbers of the words that a circuit wrote, and that are not those of `results` in the banks that a testbench wrote to a
    folder. Fills of a result that no token stands for are not written."""
    if top.scratchpad is None:
        return ()
    banks, ports = top.scratchpad.settings.banks, [port for port in top.scratchpad.ports if port.write]
    written = {address // port.line for port in ports for _, address in run.requests[port.node, port.kind]} & results.keys()
    left = {bank: _bank_words(folder / _left(bank)) for bank in {number % banks for number in written}}
    return tuple(number for number in sorted(written) if left[number % banks].get(number // banks) != results[number])


def _bank_words(path: Path) -> dict[int, int]:
    """Return the words of a file of `$writememh` by their row. Those with undefined bits are left out."""
    words, row = dict[int, int](), 0
    for text in path.read_text(encoding="utf-8").splitlines():
        digits = text.partition("//")[0].strip().lower()
        if digits.startswith("@"):
            row = int(digits[1:], 16)
        elif digits:
            if "x" not in digits:
                words[row] = int(digits, 16)
            row += 1
    return words


def _left(bank: int) -> str:
    return f"left{bank}.hex"


def _stored_pins(circuit: Circuit, run: MemoryRun) -> list[str]:
    """Return the declarations of the addresses of stored arrays, and of the most lines of each."""
    controller = run.model
    bases = [controller.places[array].base for array in circuit.stored]
    lines = [-(-controller.on_chip[array].length // controller.line) for array in circuit.stored]
    numbers = (("stored_base", bases), ("stored_lines", lines))
    return [f"wire [{ADDRESS_BITS * len(values) - 1}:0] {pin} = {{{_listed(values)}}};" for pin, values in numbers]


def _listed(values: list[int]) -> str:
    return ", ".join(f"{ADDRESS_BITS}'d{value}" for value in reversed(values))


def _pins(scratchpad: ScratchpadTop) -> list[str]:
    """Return the declarations of the pins of a scratchpad. Nothing is moved through the ports of the banks."""
    settings, rows, bits = scratchpad.settings, scratchpad.rows, scratchpad.parameters["R"]
    word = 8 * settings.bytes_a_cycle
    parts = [
        "reg loaded = 0;",
        f"reg [{word - 1}:0] results [0:{rows * settings.banks - 1}];",
        f'initial $readmemh("{IMAGE}", results);',
    ]
    parts += [f"wire [{width - 1}:0] scratchpad_{pin};" for pin, width in scratchpad.outputs.items()]
    for pin, width in scratchpad.inputs.items():
        parts.append(f"wire [{width - 1}:0] scratchpad_{pin}{'' if pin == 'write_data' else ' = 0'};")
    for access in range(settings.words_a_cycle):
        number = f"scratchpad_access_row[{access * bits} +: {bits}] * {settings.banks} + {access // settings.ports}"
        parts.append(f"assign scratchpad_write_data[{access * word} +: {word}] = results[{number}];")
    return parts
