"""The decomposition of a constant operand: its entries are divided into parts, and each of its products becomes a sum of products
with the parts.

The parts are disjoint, together hold every entry that is not 0, and sum to the operand, so that the program means the same.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fuseflow.einsum.nodes import Program, TensorType
from fuseflow.errors import OverfullError, PlanError, did_you_mean
from fuseflow.plan.cover import Mask
from fuseflow.plan.partition import Part, check_parts
from fuseflow.plan.products import Stored, divide
from fuseflow.tensors import Tensor
from fuseflow.tensors.array_files import pack_declared

MOST_ENTRIES = 1 << 28
"""The most entries of an operand that is decomposed, stored or not: a mask has them all."""


@dataclass(frozen=True, slots=True)
class Decomposed:
    """A program with its tensors, some of them decomposed. `stored` has, by the name of a tensor in other blocks, the input with
    its numbers, and its blocks. `parts` gives, by the name of a part, its operand."""

    program: Program
    tensors: Mapping[str, Tensor]
    stored: Mapping[str, Stored] = field(default_factory=dict)
    parts: Mapping[str, str] = field(default_factory=dict)

    def inputs_of(self, name: str) -> tuple[str, ...]:
        """Return the inputs that hold the numbers of the former input `name`: its parts, or its copies in other blocks."""
        return tuple(
            tensor.name for tensor in self.program.inputs if self.parts.get(tensor.name, _source(self, tensor.name)) == name
        )


def decompose(given: Decomposed, operand: str, parts: Sequence[Part], needed: Mask | None = None) -> Decomposed:
    """Return the program and its tensors, `given`, with an operand in these parts. Parts without entries are left out.

    An entry that is not `needed` may be in no part. Raise `PlanError` for parts that overlap or do not hold all that is needed, for an
    operand that is no constant matrix, and where its products cannot be divided.
    """
    values = constant_values(given, operand)
    check_parts(operand, values, needed_entries(operand, values, needed), parts)
    filled = [part for part in parts if part.entries.any()] or list(parts[:1])
    divided = divide(given.program, operand, [part.form for part in filled], given.stored)
    declared = divided.program.declared
    packed = {name: _packed(operand, part, values, declared[name]) for name, part in zip(divided.parts, filled, strict=True)}
    numbers = {_source(given, name): tensor for name, tensor in given.tensors.items()}
    decomposed = Decomposed(divided.program, packed, divided.stored, {**given.parts, **dict.fromkeys(packed, operand)})
    others = {name: _source(decomposed, name) for name in declared if name not in packed}
    tensors = packed | {name: numbers[source] for name, source in others.items() if source in numbers}
    return replace(decomposed, tensors={name: tensors[name] for name in declared if name in tensors})


def _source(given: Decomposed, name: str) -> str:
    return given.stored[name].source if name in given.stored else name


def constant_values(given: Decomposed, operand: str) -> npt.NDArray[Any]:
    """Return an operand of `given` as a dense matrix. Raise `PlanError` for a tensor that is no constant matrix."""
    require_constant(given.program, given.tensors, operand)
    return given.tensors[operand].to_dense()


def require_constant(program: Program, tensors: Mapping[str, Tensor], operand: str) -> None:
    """Raise `PlanError` for a tensor that is no constant matrix of a program."""
    if operand in program.defined:
        raise PlanError(f"`{operand}` is computed", hint="only constants are decomposed: their entries are known")
    if operand not in program.declared:
        hint = did_you_mean(operand, (tensor.name for tensor in program.inputs))
        raise PlanError(f"the program has no tensor `{operand}`", hint=hint)
    if operand not in tensors:
        raise PlanError(f"`{operand}` has no numbers", hint="only constants are decomposed: give its tensor")
    declared = program.declared[operand]
    sizes = " x ".join(map(str, declared.shape))
    if len(declared.shape) != 2:
        raise PlanError(f"`{operand}` has {len(declared.shape)} dimensions", hint="only matrices are decomposed")
    if declared.fill != 0:
        raise PlanError(
            f"`{operand}` has the implicit value {declared.fill:g}", hint="parts sum to an operand whose other entries are 0"
        )
    if math.prod(declared.shape) > MOST_ENTRIES:
        raise PlanError(f"`{operand}` has {sizes} entries", hint=f"at most {MOST_ENTRIES:,} are divided")


def _packed(operand: str, part: Part, values: npt.NDArray[Any], declared: TensorType) -> Tensor:
    """Return a part as it is declared. Raise `PlanError` if its format has no room for its entries."""
    try:
        return pack_declared(np.where(part.entries, values, 0), declared)
    except OverfullError as error:
        raise PlanError(
            f"the part `{part.form}` of `{operand}`: {error.message}", hint="give the others a part of their own"
        ) from None


def needed_entries(operand: str, values: npt.NDArray[Any], needed: Mask | None) -> Mask:
    """Return the mask of the needed entries of an operand: `needed`, or all without it. Raise `PlanError` if it does not fit."""
    if needed is None:
        return np.ones(values.shape, dtype=np.bool_)
    if needed.shape != values.shape:
        raise PlanError(f"the mask of `{operand}` has the shape {needed.shape}, and `{operand}` {values.shape}")
    if needed.dtype != np.bool_:
        raise PlanError(f"the mask of `{operand}` has {needed.dtype}", hint="give a mask of booleans")
    return needed
