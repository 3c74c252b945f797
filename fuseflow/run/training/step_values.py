"""The outputs of a step without its cycles, computed by the dense interpreter, which needs a small part of the time of a simulation."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from fuseflow.einsum.interpret import evaluate_operands
from fuseflow.einsum.nodes import Program
from fuseflow.einsum.sparse_arrays import Operand, SparseArray, flat_positions, to_operand
from fuseflow.ops import Array
from fuseflow.tensors import Tensor, from_coordinates

LARGEST_DENSE: Final = 1 << 16
"""The most elements of a sparse input that is read as a dense array. Tuned on a step of a GCN on Cora, whose features of 1,433 x 2,708 take
three times as long dense, though one array of them fits."""


@dataclass(slots=True)
class StepInterpreter:
    """Computes the outputs of a program from packed inputs, step after step. What it makes of an input is kept until the input changes.
    `guards` are the inputs that the compiler added.

    The values are those of a simulation but for rounding: where a graph rounds each product of a sum to a 32-bit float, and the sum of
    each inner loop, the interpreter rounds the whole sum once.
    """

    program: Program
    wide: bool
    guards: Mapping[str, Tensor] = field(default_factory=dict)
    _operands: dict[str, tuple[Tensor, Operand]] = field(default_factory=dict)

    def outputs(self, tensors: Mapping[str, Tensor]) -> dict[str, Operand]:
        """Return the outputs of the program as arrays of 64-bit floats. `tensors` has the other inputs, in single elements."""
        read = {**self.guards, **tensors}
        operands = {t.name: self._operand(t.name, read[t.name]) for t in self.program.inputs}
        results = evaluate_operands(self.program, operands, outputs_only=True, wide=self.wide)
        return {name: results[name] for name in self.program.outputs}

    def _operand(self, name: str, tensor: Tensor) -> Operand:
        kept = self._operands.get(name)
        if kept is None or kept[0] is not tensor:
            kept = self._operands[name] = tensor, to_operand(tensor, LARGEST_DENSE)
        return kept[1]


def places_of(tensor: Tensor) -> Tensor:
    """Return a tensor that stores entries in the same places, and whose values, all 0, take no memory."""
    return replace(tensor, values=np.broadcast_to(np.zeros((), tensor.dtype), tensor.values.shape))


def packed_like(values: Operand, pattern: Tensor) -> Tensor | None:
    """Return values in the places of `pattern`, a tensor of single elements, and in its format and type. None if a value in another
    place is not the implicit one, so that these places do not hold them all."""
    type = pattern.element_type
    if pattern.format.all_dense:
        dense = values.toarray() if isinstance(values, SparseArray) else values
        stored = type.hold(np.array(dense.transpose(pattern.format.order)).reshape(-1))
        return replace(pattern, values=stored)
    places = pattern.coordinates()
    if isinstance(values, SparseArray):
        placed, listed = values.at(flat_positions(values.shape, places)), values.values
        elsewhere = values.size - len(listed) if _count(np.array([values.fill]), pattern.fill) else 0
    else:
        placed, listed, elsewhere = values[tuple(places)], values, 0
    if _count(listed, pattern.fill) + elsewhere > _count(placed, pattern.fill):
        return None
    stored = type.hold(placed)
    if len(stored) < pattern.stored:  # a level of groups stores more than its entries
        return from_coordinates(pattern.shape, places, stored, pattern.format, pattern.fill, pattern.type)
    return replace(pattern, values=stored)


def _count(values: Array, fill: float) -> int:
    """Return how many values are not the implicit one."""
    return int(np.count_nonzero(~np.isnan(values) if math.isnan(fill) else values != fill))
