"""The arrays that a circuit reads: the data of tensors at each array port of a node.

Every level is read in one of two forms (`fuseflow.tensors.levels.base.Walk`). A computed level has no arrays. A listed level has
`low` and `high`, the positions where the entries below a reference begin and end, the coordinates `crds`, and `refs` if a
reference is not the position of its coordinate. `next` are the positions after runs of equal coordinates.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from types import MappingProxyType
from typing import Any, get_args

import numpy as np

from fuseflow.hardware.arithmetic import tile_word
from fuseflow.hardware.circuit import Circuit, Unit, port_memory
from fuseflow.hardware.primitives.memory_ports import LINES
from fuseflow.memory.layout import ArrayKind, ArrayName, array_elements, tensor_arrays
from fuseflow.memory.memory_interface import MOVED
from fuseflow.samml import nodes as n
from fuseflow.samml.auxiliary_tensors import auxiliary_tensors
from fuseflow.tensors import Tensor
from fuseflow.tensors.levels.base import Ints, Listed, bytes_of

Words = list[int]
TRANSFERS: Mapping[str, ArrayName] = MappingProxyType({transfer: name for name, transfer in MOVED.items()})
"""The name of the lines that are moved in each way."""


def circuit_arrays(circuit: Circuit, tensors: Mapping[str, Tensor]) -> dict[tuple[str, str], Words]:
    """Return the words of every array of a circuit, by the node and the name of its port."""
    tensors = {**auxiliary_tensors(circuit.graph), **tensors}
    words: dict[tuple[str, str], Words] = {}
    read: dict[tuple[str, int, str], Words] = {}
    for unit in circuit.units:
        for name in unit.module.arrays:
            if isinstance(unit.node, n.Root):
                words[unit.node.name, name] = [_moved_lines(circuit, name.removesuffix(LINES), tensors)]
                continue
            place = getattr(unit.node, "tensor", ""), getattr(unit.node, "level", -1), name
            if place not in read:
                read[place] = _words(circuit, unit, name, tensors)
            words[unit.node.name, name] = read[place]
    return words


def _words(circuit: Circuit, unit: Unit, name: str, tensors: Mapping[str, Tensor]) -> Words:
    if name.endswith(LINES):
        return [_lines(circuit, unit, name.removesuffix(LINES), tensors)]
    match unit.node:
        case n.Load(tensor=tensor):
            values, arithmetic = tensors[tensor].values.astype(float), circuit.arithmetic
            tiles = values.reshape(len(values), prod(tensors[tensor].tile)).tolist()
            return [tile_word(tile, arithmetic.width, arithmetic.word) for tile in tiles]
        case n.Scan(tensor=tensor, level=level) | n.Locate(tensor=tensor, level=level):
            return _level_words(tensors[tensor].levels[level], name)
    raise AssertionError(f"`{unit.node.name}` reads no array")


def _lines(circuit: Circuit, unit: Unit, kind: str, tensors: Mapping[str, Tensor]) -> int:
    """Return the number of lines of the memory that an array of a kind fills."""
    array = array_of(unit, kind)
    bits = dict(tensor_arrays(circuit.graph.declared[array[0]]))[array]
    memory = port_memory(unit.node, circuit.graph, circuit.machine)
    assert memory is not None
    return -(-bytes_of(array_elements(tensors[array[0]], array), bits) // memory.line)


def _moved_lines(circuit: Circuit, transfer: str, tensors: Mapping[str, Tensor]) -> int:
    """Return the number of lines of the memory that a root moves in one way."""
    controller = circuit.machine.controller()
    assert controller is not None
    lines = controller.lay_out(circuit.graph, tensors).get(TRANSFERS[transfer])
    return 0 if lines is None else lines.length // controller.line + (lines.length % controller.line > 0)


def array_of(unit: Unit, kind: str) -> ArrayName:
    """Return the name of the array of a kind (`pos`, `crd` or `val`) that a node reads or writes: tensor, level and kind. The kind of
    a root is the name of a transfer and the number of a port."""
    if isinstance(unit.node, n.Root):
        return TRANSFERS[kind.rstrip("0123456789")]
    assert isinstance(unit.node, n.TensorUser) and kind in get_args(ArrayKind)
    return unit.node.tensor, getattr(unit.node, "level", -1), kind  # type: ignore[return-value]


def _level_words(fibers: Any, name: str) -> Words:
    if name in ("bits", "rank"):
        words: Words = fibers.arrays[name].tolist()
        return words
    walk = fibers.walk()
    assert isinstance(walk, Listed), "a level that is computed has no arrays"
    if name == "count":
        return [len(walk.crds)]
    refs = np.arange(len(walk.crds)) if walk.refs is None else walk.refs
    if name == "next":
        refs = _next(walk)
    listed: Words = {"low": walk.lows, "high": walk.highs, "crds": walk.crds, "refs": refs, "next": refs}[name].tolist()
    return listed


def _next(walk: Listed) -> Ints:
    """Return the position after each run of equal coordinates, for each distinct coordinate of a level."""
    assert walk.refs is not None and walk.stops is not None, "coordinates repeat"
    behind = np.append(walk.refs[1:], 0)
    some = walk.highs > walk.lows
    behind[walk.highs[some] - 1] = walk.stops[some]
    return behind
