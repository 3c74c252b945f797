"""A source: the program of a model, with its tensors and all that is known about where it came from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from fuseflow.einsum.nodes import Program
from fuseflow.errors import UsageError
from fuseflow.frontend.reference_outputs import NodeValues
from fuseflow.plan.plan import Plan
from fuseflow.propagation.analysis import Analysis
from fuseflow.propagation.propagation import Propagation
from fuseflow.propagation.rows import AttributeRow
from fuseflow.tensors import Tensor


@dataclass(frozen=True, slots=True)
class Source:
    """A program with its tensors.

    `tensors` are the inputs that are available, by name. `expected` are the outputs that PyTorch computes, or None if the dense
    interpreter is the reference. `intermediates` computes the intermediates of PyTorch, by the names of Einsums. `mlir` is the
    Linalg form of a program that has one. `data`, `options` and `seed` belong to a model file. `notices` are shown beside every
    result. `seconds` is the time that the import took. `constants` are the names of inputs that are the same in every run:
    weights, buffers, and tensors that follow from them alone. `selections` are the selections that the compiler made for indices with an
    offset or a factor. `masks` are the masks of pruned weights that are stored dense or in blocks, true at entries that are not pruned.

    A source that was rewritten has `original`, the source that it was made of, which defines its outputs. `simplified` says which
    elements were left out of it, and `plan` which of its operands are divided into parts. `exported` returns the text of a
    PyTorch model as PyTorch exports it. `affine` is the program before the compiler made selections of its indices with an offset
    or a factor, if it has any.
    """

    name: str
    program: Program
    tensors: Mapping[str, Tensor] = field(default_factory=dict)
    expected: Mapping[str, npt.NDArray[np.generic]] | None = None
    mlir: str | None = None
    data: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    notices: tuple[str, ...] = ()
    seconds: float = 0.0
    constants: tuple[str, ...] = ()
    selections: tuple[str, ...] = ()
    masks: Mapping[str, npt.NDArray[np.bool_]] = field(default_factory=dict)
    original: Source | None = None
    simplified: Simplification | None = None
    plan: Plan = field(default_factory=Plan)
    intermediates: Callable[[], NodeValues] = field(default=dict, compare=False)
    affine: Program | None = None
    exported: Callable[[], str] | None = field(default=None, compare=False)

    @property
    def exported_text(self) -> str:
        """The text of a PyTorch model as PyTorch exports it. Raises `UsageError` for any other source."""
        if self.exported is None:
            raise UsageError(
                f"`{self.name}` is no PyTorch model, so it has no exported program", hint="show a stage from `linalg` on"
            )
        return self.exported()

    @property
    def stated_program(self) -> Program:
        """The program, with its indices that have an offset or a factor as the user has them, unless it was rewritten since."""
        return self.program if self.affine is None or self.original is not None else self.affine


@dataclass(frozen=True, slots=True, eq=False)
class Simplification:
    """The analysis of a source, the program and tensors that are left of it, and a row for each tensor."""

    analysis: Analysis
    propagation: Propagation
    rows: tuple[AttributeRow, ...]
