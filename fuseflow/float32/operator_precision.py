"""The operators of the table in each arithmetic: as they stand there, in 64-bit floats, or in 32-bit floats as PyTorch or a circuit has
them. And in which numbers an operator computes, as PyTorch promotes types: exact integers, floats of 32 bits, or floats of 64 bits.

An operator computes in the widest numbers of its operands. A constant takes part as PyTorch's scalars do: a fraction makes integers
floats of 32 bits, and floats stay what they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias, assert_never, get_args

import numpy as np
import numpy.typing as npt

from fuseflow.float32.functions import FUNCTIONS
from fuseflow.float32.words import rounded, rounded_array, value_of, word_of
from fuseflow.ops import COMBINERS, OPERATORS, Operator, Precision, Reducer

Arithmetic: TypeAlias = Literal["f64", "rounded", "f32"]
"""How operators and reductions compute: in 64-bit floats; in these, with results `rounded` once to 32-bit floats; or in `f32`, step by
step as a circuit does. Numbers of all are Python floats."""
ARITHMETICS: tuple[Arithmetic, ...] = get_args(Arithmetic)
_ORDER: tuple[Precision, ...] = ("integer", "f32", "f64")
COMPARISONS = frozenset(("eq", "ne", "lt", "le", "gt", "ge"))
"""The operators whose result is a truth value, 0 or 1."""
_WIDEST_F32_STEP = 2.0**-23
"""The distance from 1 to the next 32-bit float."""


def scalar_function(row: Operator | Reducer, arithmetic: Arithmetic) -> Callable[..., float]:
    """Return an operator, or the step of a reduction, on numbers.

    In `f32` operands are 32-bit floats. The result is computed as `FUNCTIONS` say, or in 64-bit floats and rounded once. The
    steps of a `rounded` reduction are not rounded, only its result.

    >>> from fuseflow.ops import operator
    >>> scalar_function(operator("mul"), "f32")(3.0, value_of(0x3DCCCCCD))
    0.30000001192092896
    """
    match arithmetic:
        case "f64":
            return row.scalar
        case "rounded":
            return _rounded_once(row.scalar) if isinstance(row, Operator) and row.rounds else row.scalar
        case "f32":
            return _on_words(FUNCTIONS[row.name]) if row.name in FUNCTIONS else _rounded_once(row.scalar)
        case _:
            assert_never(arithmetic)


def array_rounding(arithmetic: Arithmetic) -> Callable[[npt.NDArray[np.float64]], npt.NDArray[np.float64]]:
    """Return the function that rounds an array of results in 64-bit floats to the floats of an arithmetic."""
    return rounded_array if arithmetic != "f64" else lambda values: values


def folded_function(arithmetic: Arithmetic) -> Callable[[Any], Any]:
    """Return the function that turns a number or a tile that a reduction has folded into the result of the reduction."""
    return rounded_value if arithmetic == "rounded" else lambda value: value


def rounded_value(value: Any) -> Any:
    """Return a number, or a tile that is read-only, rounded to 32-bit floats."""
    if not isinstance(value, np.ndarray):
        return rounded(value)
    tile = rounded_array(value)
    tile.flags.writeable = False
    return tile


def _on_words(function: Callable[..., int]) -> Callable[..., float]:
    return lambda *operands: value_of(function(*map(word_of, operands)))


def _rounded_once(function: Callable[..., float]) -> Callable[..., float]:
    return lambda *operands: rounded(function(*operands))


def widest(precisions: Sequence[Precision]) -> Precision:
    """Return the precision in which numbers of several precisions meet.

    >>> widest(["integer", "f32"])
    'f32'
    """
    return max(precisions, key=_ORDER.index, default="integer")


def precision_of_number(value: float) -> Precision:
    """Return the precision that a constant needs: `f32` for a fraction, and the lowest, `integer`, for whole numbers, infinities, NaN."""
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
        case "nearest_finite":
            return "f32"
        case "where":
            return widest(operands[1:])
        case _:
            return "integer" if function in COMPARISONS else computing_precision(function, operands, constants)


def _keeps_integers(function: str, constants: Sequence[float | None]) -> bool:
    if function == "pow":
        return constants[1] is not None and constants[1] >= 0 and constants[1].is_integer()
    row = OPERATORS.get(function) or COMBINERS.get(function)
    return row is None or row.keeps_integers  # what exists on tiles only adds, multiplies and moves
