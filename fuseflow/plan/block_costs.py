"""The weights of blocks, measured on a machine: the cycles of a product whose operand is full, over the number of its blocks.

The operand has about 256 x 256 entries, and is multiplied with 256 rows in blocks of 32. The simulator is passed as a callable,
so that any simulator, and the estimate too, can measure a weight.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from fuseflow.einsum.nodes import Access, Apply, Einsum, Program, Reduce, TensorType
from fuseflow.errors import PlanError
from fuseflow.plan.partition import Form
from fuseflow.tensors import Format

M = TypeVar("M", bound=Hashable)

Arrays: TypeAlias = Mapping[str, npt.NDArray[Any]]

SIDE = 256
"""The rows of the product, and about the rows and columns of its operand."""
ROWS = 32
"""The rows of a block of the other operand."""


@dataclass(frozen=True, slots=True)
class BlockWeights(Generic[M]):
    """The weights of forms on machines. `cycles` returns the cycles that a program takes on a machine with its arrays. Every
    weight is measured once, when it is first needed, and is kept in `measured`."""

    cycles: Callable[[M, Program, Arrays], float]
    measured: dict[tuple[M, Form], float] = field(default_factory=dict)

    def on(self, machine: M) -> Callable[[Form], float]:
        """Return a function from a form to its weight on one machine."""
        return lambda form: self.weight(machine, form)

    def weight(self, machine: M, form: Form) -> float:
        """Return the cycles of a block of a form on a machine. Raise `PlanError` for a form without blocks."""
        if (machine, form) not in self.measured:
            program = full_product(form)
            arrays = {tensor.name: np.ones(tensor.shape, dtype=np.float32) for tensor in program.inputs}
            blocks = math.prod(program.declared["B"].shape) // math.prod(form.block)
            self.measured[machine, form] = self.cycles(machine, program, arrays) / blocks
        return self.measured[machine, form]


def full_product(form: Form) -> Program:
    """Return the product that is measured for a form: both operands have its type."""
    if form.nm is not None:
        raise PlanError(f"`{form}` has no blocks whose weight could be measured", hint="n:m parts come first, at any weight")
    height, width = (size * max(1, SIDE // size) for size in form.block)
    dtype = form.dtype or "f32"
    left = TensorType("A", (SIDE, height), Format.dense(2), dtype, block=(ROWS, form.block[0]))
    block = form.block if max(form.block) > 1 else ()
    right = TensorType("B", (height, width), form.format(Format.dense(2)), dtype, block=block)
    product = Reduce("sum", ("k",), Apply("mul", (Access("A", ("i", "k")), Access("B", ("k", "j")))))
    return Program((left, right), (Einsum("Y", ("i", "j"), product),), ("Y",), f"full_{form.storage}")
