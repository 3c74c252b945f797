"""The operators of the table in each arithmetic: as they stand there, in 64-bit floats, or in 32-bit floats as PyTorch or a circuit has
them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias, assert_never, get_args

import numpy as np
import numpy.typing as npt

from fuseflow.float32.functions import FUNCTIONS
from fuseflow.float32.words import rounded, rounded_array, value_of, word_of
from fuseflow.ops import Operator, Reducer

Arithmetic: TypeAlias = Literal["f64", "rounded", "f32"]
"""How operators and reductions compute: in 64-bit floats; in these, with results `rounded` once to 32-bit floats; or in `f32`, step by
step as a circuit does. Numbers of all are Python floats."""
ARITHMETICS: tuple[Arithmetic, ...] = get_args(Arithmetic)


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
    match arithmetic:
        case "f64":
            return lambda values: values
        case "f32" | "rounded":
            return rounded_array
        case _:
            assert_never(arithmetic)


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
