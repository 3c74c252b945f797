"""A source: the program of a model, with its tensors and all that is known about where it came from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from fuseflow.einsum.nodes import Program
from fuseflow.frontend.imported_model import NodeValues
from fuseflow.plan.plan import Plan
from fuseflow.propagation.analysis import Analysis
from fuseflow.propagation.propagation import Propagation
from fuseflow.propagation.rows import AttributeRow
from fuseflow.tensors import Tensor


@dataclass(frozen=True, slots=True)
class Source:
    """A program with its tensors.

    `tensors` are the inputs that are available, by name. `expected` are the outputs that PyTorch computes, or None if the dense
    interpreter is the reference. `intermediates` computes what PyTorch computes on the way, by the names of Einsums. `mlir` is the Linalg
    form of a program that has one. `data`, `options` and `seed` are those of a model file. `notices` are shown beside every result.
    `seconds` is the time that the import took. `constants` are the names of inputs that are the same in every run: weights, buffers, and
    what follows from them alone. `selections` are those that the compiler made for indices with an offset or a factor. `masks` are those of
    pruned weights that are stored dense or in blocks, true at entries that are not pruned.

    A source that was rewritten has `original`, the source that it was made of, which says what its outputs must be. `simplified` says what
    was left out of it, and `plan` which of its operands are divided into parts.
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


@dataclass(frozen=True, slots=True, eq=False)
class Simplification:
    """What the analysis of a source said, what became of the source, and a row for each tensor."""

    analysis: Analysis
    propagation: Propagation
    rows: tuple[AttributeRow, ...]
