"""Single steps of operators and reductions, in each arithmetic, as functions from which kernels are built."""

from __future__ import annotations

from typing import assert_never

import numpy as np

from fuseflow.float32.operator_precision import Arithmetic
from fuseflow.float32.words import rounded as rounded_in_python
from fuseflow.native.kernel_library import specialize
from fuseflow.native.records import COMPILED, get_float, inline, set_float
from fuseflow.native.signatures import Function
from fuseflow.ops import operator, reducer


def kernel_name(name: str, arithmetic: Arithmetic) -> str:
    """Return the name of the kernel `name` for an arithmetic: `f64` adds nothing."""
    return name if arithmetic == "f64" else f"{name}_{arithmetic}"


def operator_function(name: str, arithmetic: Arithmetic) -> Function:
    """Return an operator on numbers. In `f32`, and in `rounded` if the operator rounds, the result is rounded to 32 bits."""
    row = operator(name)
    if arithmetic == "rounded" and not row.rounds:
        arithmetic = "f64"
    template = (_rounded_unary, _rounded_binary, _rounded_ternary)[row.arity - 1]
    return _rounding(row.compiled if COMPILED else row.scalar, template, name, arithmetic)


def step_function(name: str, arithmetic: Arithmetic) -> Function:
    """Return the step of a reduction on numbers. In `f32` its result is rounded to 32 bits. In `rounded` no step is rounded."""
    return _rounding(reducer(name).scalar, _rounded_binary, f"step_{name}", of_steps(arithmetic))


def of_steps(arithmetic: Arithmetic) -> Arithmetic:
    """Return the arithmetic of the steps of a reduction: a result that is `rounded` in the end is folded in 64 bits."""
    return "f64" if arithmetic == "rounded" else arithmetic


def _rounding(function: Function, template: Function, name: str, arithmetic: Arithmetic) -> Function:
    match arithmetic:
        case "f64":
            return function
        case "f32" | "rounded":
            return specialize(template, kernel_name(name, arithmetic), function=function, rounded=nearest)
        case _:
            assert_never(arithmetic)


def function(*operands: float) -> float:
    """Placeholder of the operator in the templates below; `specialize` replaces it."""
    raise NotImplementedError


def rounded(x: float) -> float:
    """Return the 32-bit float that is nearest to a number, in compiled code."""
    return float(np.float32(x))


nearest = rounded if COMPILED else rounded_in_python


@inline
def round_values(at: int, count: int) -> None:
    """Round `count` numbers at an address to 32-bit floats."""
    for i in range(count):
        set_float(at, i, nearest(get_float(at, i)))


def _rounded_unary(a: float) -> float:
    return rounded(function(a))


def _rounded_binary(a: float, b: float) -> float:
    return rounded(function(a, b))


def _rounded_ternary(a: float, b: float, c: float) -> float:
    return rounded(function(a, b, c))
