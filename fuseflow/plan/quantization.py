"""The choice of narrower types: along a program, each factor of a product is stored in fewer bits while the outputs stay close.

This is Algorithm 2 of SparTA (section 4.2). Its rule has no order of its own for tensors that several products share: each tensor is tried
once, where a product first reads it, and bits never rise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from fuseflow.einsum.format_inference import infer
from fuseflow.einsum.interpret import MAX_POINTS, evaluate
from fuseflow.einsum.nodes import Program
from fuseflow.einsum.sparse_arrays import to_operand
from fuseflow.errors import PlanError
from fuseflow.plan.scales import Scale, factors_of_products, scaled
from fuseflow.tensors import Tensor

Array: TypeAlias = npt.NDArray[np.float64]
Metric: TypeAlias = Callable[[Mapping[str, Array]], float]
"""Returns the quality of outputs, which are given by name. Greater is better."""
NARROWER = ("i16", "i8", "i4")
"""The types that are tried one after the other."""


@dataclass(frozen=True, slots=True)
class TypeTrial:
    """A type that was tried for a tensor.

    `error` is the greatest mean squared error of an output, divided by the mean square of that output. `drop` is the loss of the metric.
    """

    tensor: str
    dtype: str
    error: float
    drop: float
    kept: bool


@dataclass(frozen=True, slots=True, eq=False)
class Quantization:
    """A program in which some factors of products are integers, and how they were chosen. `scales` are the scales of the
    integers, by the names that the tensors had before."""

    program: Program
    tensors: Mapping[str, Tensor]
    scales: Mapping[str, Scale]
    trials: tuple[TypeTrial, ...]

    def __str__(self) -> str:
        cells = [("tensor", "type", "error", "drop", ""), *(_cells(trial) for trial in self.trials)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in cells)

    def to_json(self) -> dict[str, Any]:
        """Return the types with their scales, and the trials, as plain values."""
        return {
            "scales": {name: {"dtype": scale.dtype, "step": scale.step} for name, scale in self.scales.items()},
            "trials": [
                {"tensor": t.tensor, "dtype": t.dtype, "error": t.error, "drop": t.drop, "kept": t.kept} for t in self.trials
            ],
        }


@dataclass(frozen=True, slots=True, eq=False)
class QuantizationSearch:
    """The data that judges narrower types: a program with the tensors that it is calibrated on, the names of its constants, and
    how much its outputs may change."""

    program: Program
    tensors: Mapping[str, Tensor]
    constants: frozenset[str]
    tolerance: float
    metric: Metric | None

    def choose(self) -> Quantization:
        """Return the program in the narrowest types. Raise `PlanError` for numbers and metrics that are not finite."""
        whole = self._evaluated(self.program, self.tensors)
        outputs = {name: whole[name] for name in self.program.outputs}
        factors = factors_of_products(self.program)
        sizes = {name: _greatest(name, whole[name] if name in whole else self.tensors[name].values) for name in factors}
        before, scales, trials = self._measured(outputs), dict[str, Scale](), list[TypeTrial]()
        for name, greatest in sizes.items():
            for dtype in NARROWER if greatest else ():
                tried = {**scales, name: Scale.of(greatest, dtype)}
                results = self._evaluated(*scaled(self.program, self.tensors, self.constants, tried))
                error = max(_error(results[output], exact) for output, exact in outputs.items())
                drop = before - self._measured({output: results[output] for output in outputs})
                trials.append(TypeTrial(name, dtype, error, drop, max(error, drop) <= self.tolerance))
                if not trials[-1].kept:
                    break
                scales = tried
        return Quantization(*scaled(self.program, self.tensors, self.constants, scales), scales, tuple(trials))

    def _evaluated(self, program: Program, tensors: Mapping[str, Tensor]) -> dict[str, Array]:
        declared = infer(program).declared
        return evaluate(program, {name: to_operand(tensor, MAX_POINTS) for name, tensor in tensors.items() if name in declared})

    def _measured(self, outputs: Mapping[str, Array]) -> float:
        if self.metric is None:
            return 0.0
        value = self.metric(outputs)
        if not isinstance(value, Real) or not np.isfinite(value):
            raise PlanError(f"the metric is {value!r}", hint="it is a number for all outputs, which grows with their quality")
        return float(value)


def _greatest(name: str, values: npt.NDArray[Any]) -> float:
    """Return the greatest absolute value of a tensor; 0 if all are 0."""
    greatest = float(np.abs(values).max(initial=0))
    if not np.isfinite(greatest):
        raise PlanError(f"`{name}` has an entry that is {greatest}", hint="only finite numbers have a scale")
    return greatest


def _error(values: Array, exact: Array) -> float:
    """Return the mean squared error of finite values, divided by the mean square of the exact values unless that is 0. It is
    infinite if a value that is not finite changes."""
    finite = np.isfinite(exact)
    if not np.array_equal(values[~finite], exact[~finite], equal_nan=True):
        return float("inf")
    square = float(np.square(exact[finite]).mean()) if finite.any() else 0.0
    error = float(np.square(values[finite] - exact[finite]).mean()) if finite.any() else 0.0
    return error / square if square else error


def _cells(trial: TypeTrial) -> tuple[str, ...]:
    return (trial.tensor, trial.dtype, f"{trial.error:.2e}", f"{trial.drop:.4g}", "kept" if trial.kept else "")
