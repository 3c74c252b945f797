"""The arrays that a circuit reads: what the tensors of a run put at each port of a node that reads one.

Every level is read in one of two forms (`fuseflow.tensors.levels.base.Walk`). What is computed has no arrays. What is listed has `low` and
`high`, where the entries below a reference begin and end, the coordinates `crds`, and `refs` if a reference is not the place of its
coordinate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from fuseflow.hardware.circuit import Circuit, Unit
from fuseflow.samml import nodes as n
from fuseflow.samml.auxiliary import auxiliary_tensors
from fuseflow.tensors import Tensor
from fuseflow.tensors.levels.base import Listed

Words = list[int]


def circuit_arrays(circuit: Circuit, tensors: Mapping[str, Tensor]) -> dict[tuple[str, str], Words]:
    """Return the words of every array of a circuit, by the node and the name of the port."""
    tensors = {**auxiliary_tensors(circuit.graph), **tensors}
    words: dict[tuple[str, str], Words] = {}
    read: dict[tuple[str, int, str], Words] = {}
    for unit in circuit.units:
        for name in unit.module.arrays:
            place = getattr(unit.node, "tensor", ""), getattr(unit.node, "level", -1), name
            if place not in read:
                read[place] = _words(unit, name, tensors, circuit.arithmetic.word)
            words[unit.node.name, name] = read[place]
    return words


def _words(unit: Unit, name: str, tensors: Mapping[str, Tensor], word: Callable[[float], int]) -> Words:
    match unit.node:
        case n.Load(tensor=tensor):
            return [word(value) for value in tensors[tensor].values.astype(float).tolist()]
        case n.Scan(tensor=tensor, level=level) | n.Locate(tensor=tensor, level=level):
            return _level_words(tensors[tensor].levels[level], name)
    raise AssertionError(f"`{unit.node.name}` reads no array")


def _level_words(fibers: Any, name: str) -> Words:
    if name in ("bits", "rank"):
        words: Words = fibers.arrays[name].tolist()
        return words
    walk = fibers.walk()
    assert isinstance(walk, Listed), "a level that is computed has no arrays"
    if name == "count":
        return [len(walk.crds)]
    refs = np.arange(len(walk.crds)) if walk.refs is None else walk.refs
    listed: Words = {"low": walk.lows, "high": walk.highs, "crds": walk.crds, "refs": refs}[name].tolist()
    return listed
