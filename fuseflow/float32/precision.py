"""In which numbers an operator computes, as PyTorch promotes types: exact integers, floats of 32 bits, or floats of 64 bits.

An operator computes in the widest numbers of its operands. A constant takes part as PyTorch's scalars do: a fraction makes integers
floats of 32 bits, and floats stay what they are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import assert_never

from fuseflow.float32.arithmetic import Arithmetic
from fuseflow.ops import COMBINERS, OPERATORS, Precision

_ORDER: tuple[Precision, ...] = ("integer", "f32", "f64")
_COMPARISONS = frozenset(("eq", "ne", "lt", "le", "gt", "ge"))
_WIDEST_F32_STEP = 2.0**-23
"""The distance from 1 to the next 32-bit float."""


def widest(precisions: Sequence[Precision]) -> Precision:
    """Return the precision in which numbers of several precisions meet.

    >>> widest(["integer", "f32"])
    'f32'
    """
    return max(precisions, key=_ORDER.index, default="integer")


def precision_of_number(value: float) -> Precision:
    """Return the precision that a constant requires: `f32` for a fraction, and `integer`, which is the lowest, for whole numbers,
    infinities and NaN."""
    return "f32" if math.isfinite(value) and not value.is_integer() else "integer"


def computing_precision(function: str, operands: Sequence[Precision], constants: Sequence[float | None]) -> Precision:
    """Return the precision in which an operator computes. `constants` has the value of each operand that is a constant, else None.

    >>> computing_precision("div", ["integer", "integer"], [None, 10.0])
    'f32'
    """
    precision = widest(operands)
    return "f32" if precision == "integer" and not _keeps_integers(function, constants) else precision


def result_precision(function: str, operands: Sequence[Precision], constants: Sequence[float | None]) -> Precision:
    """Return the precision of the result of an operator. A comparison gives 0 or 1, and a rounding the precision it rounds to."""
    match function:
        case "saturate":
            return "integer"
        case "nearest":
            step = constants[1]
            return "f64" if step is not None and step < _WIDEST_F32_STEP else "f32"
        case "where":
            return widest(operands[1:])
        case _:
            return "integer" if function in _COMPARISONS else computing_precision(function, operands, constants)


def _keeps_integers(function: str, constants: Sequence[float | None]) -> bool:
    if function == "pow":
        return constants[1] is not None and constants[1] >= 0 and constants[1].is_integer()
    row = OPERATORS.get(function) or COMBINERS.get(function)
    return row is None or row.keeps_integers  # what exists on tiles only adds, multiplies and moves


def arithmetic_of(precision: Precision, rounds: bool) -> Arithmetic:
    """Return the arithmetic in which numbers of a precision are computed. `rounds`: results may have more digits than that."""
    match precision:
        case "f32":
            return "rounded" if rounds else "f64"
        case "integer" | "f64":
            return "f64"
        case _:
            assert_never(precision)
