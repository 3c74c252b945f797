"""The table of operators: the meaning of every pointwise operator and reduction, on stored and on implicit operands.

One row defines an operator for the dense interpreters (`array`), the simulators (`scalar`), the join rules (`annihilators`), the
FLOP count (`flops`) and the latency class of the machine (`unit`). A new operator is one new row.

An annihilator is an operand value that fixes the result whatever the other operands are, even infinities and NaN: 0 * inf = 0, 0 / 0 = 0,
-inf - -inf = -inf. So entries that a join leaves out agree with entries that are computed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from fuseflow.errors import ProgramError, did_you_mean

INF = math.inf
Array = npt.NDArray[np.float64]
Precision: TypeAlias = Literal["integer", "f32", "f64"]
"""The numbers in which an operator computes. Integers are exact, however many digits they have below 2^53."""


def _erf_of_array(a: Array) -> Array:
    from scipy import special  # takes long to load, and few programs need it

    result: Array = special.erf(a)
    return result


@dataclass(frozen=True, slots=True)
class Operator:
    """A pointwise operator.

    `array` works on float64 arrays and `scalar` on Python floats; both give the same value. Each row of `annihilators` is an
    operand position, an operand value and the result that they fix. `symbol` is the infix form of the operator in program text,
    and `precedence` says how tightly it binds. `ieee` replaces `scalar` in compiled code if `scalar` catches an exception of
    Python's `math`. An `exact` operator gives 32-bit floats for 32-bit floats without a rounding, as the operators of the unit
    `logic` do.
    """

    name: str
    arity: int
    array: Callable[..., Any]
    scalar: Callable[..., float]
    annihilators: tuple[tuple[int, float, float], ...] = ()
    flops: int = 1
    unit: str = "add"  # the latency class of the machine: add, mul, div, transcendental or logic
    symbol: str = ""
    precedence: int = 0
    ieee: Callable[..., float] | None = None
    exact: bool = False

    @property
    def rounds(self) -> bool:
        """Whether the result of 32-bit floats may have more digits than such a float, so that it is rounded to one."""
        return not self.exact and self.unit != "logic"

    @property
    def keeps_integers(self) -> bool:
        """Whether the results of integers are integers."""
        return self.unit in ("add", "mul", "logic")

    @property
    def compiled(self) -> Callable[..., float]:
        """The form of `scalar` that a compiler accepts: it uses floats and `math` only and catches no exceptions, because compiled `math`
        raises none."""
        return self.scalar if self.ieee is None else self.ieee

    def annihilated(self, position: int, value: float, constants: Sequence[float | None] = ()) -> float | None:
        """Return the result of the operator if its operand at `position` has this value, or None if the other operands matter.

        `constants` gives the value of each operand that is a constant, and None for the others. Constants fix a `where` as well: its
        condition fixes the result if the chosen branch is a constant, and a branch fixes it if the other branch is a constant equal to
        it.
        """
        if self.name == "where" and len(constants) == 3:
            if position == 0:
                return constants[1] if value != 0 else constants[2]
            return value if constants[3 - position] == value else None
        for operand_position, operand, result in self.annihilators:
            if operand_position == position and operand == value:
                return result
        return None

    def __call__(self, *operands: npt.ArrayLike) -> Array:
        """Evaluate the operator on arrays. Where an operand is an annihilator, the result is the value that it fixes."""
        with np.errstate(all="ignore"):
            values = [np.asarray(x, dtype=np.float64) for x in operands]
            result = np.asarray(self.array(*values), dtype=np.float64)
        for position, operand, fixed in self.annihilators:
            result = np.where(values[position] == operand, fixed, result)
        return result


@dataclass(frozen=True, slots=True)
class Reducer:
    """An associative and commutative reduction, with its binary operator as `array` and as `scalar`, and its identity. `exact` is as for
    an operator."""

    name: str
    array: np.ufunc
    scalar: Callable[[float, float], float]
    identity: float
    unit: str = "add"
    exact: bool = False

    @property
    def rounds(self) -> bool:
        """Whether a fold of 32-bit floats may have more digits than such a float."""
        return not self.exact

    def repeated(self, value: float, count: int) -> float:
        """Return the reduction of `count` equal values.

        >>> REDUCERS["sum"].repeated(2.0, 3), REDUCERS["max"].repeated(2.0, 0)
        (6.0, -inf)
        """
        if count == 0:
            return self.identity
        if self.name == "sum":
            return 0.0 if value == 0 else value * count
        return _pow(value, count) if self.name == "prod" else value


def canonical(value: float) -> float:
    """Return a number of a program or a graph as a float. All NaN become the one object `math.nan`, so that a value that contains
    NaN equals itself.

    IEEE 754 has many NaN, with signs and payloads, and says that none equals itself. In a declaration they mean one thing: not a number.
    Tuples and data classes compare an object with itself before they ask for its value.

    >>> (canonical(float("-nan")),) == (canonical(float("nan")),)
    True
    """
    return math.nan if value != value else float(value)


def _guarded(function: Callable[..., float]) -> Callable[..., float]:
    """Return a function that computes the same, but returns NaN, as NumPy does, where `math` raises an exception."""

    def call(*operands: float) -> float:
        try:
            return float(function(*operands))
        except (ValueError, OverflowError, ZeroDivisionError):
            return math.nan

    return call


def _exp(a: float) -> float:
    try:
        return math.exp(a)
    except OverflowError:
        return INF


def _log(a: float) -> float:
    return math.log(a) if a > 0 else (-INF if a == 0 else math.nan)


def _div(a: float, b: float) -> float:
    if a == 0:
        return 0.0
    if b == 0:
        return math.nan if math.isnan(a) else math.copysign(INF, a) * math.copysign(1.0, b)
    return a / b


def _pow(a: float, b: float) -> float:
    try:
        return math.pow(a, b)
    except OverflowError:
        return -INF if a < 0 and b % 2 == 1 else INF
    except ValueError:
        return math.copysign(INF, a if b % 2 == 1 else 1.0) if a == 0 else math.nan


def _power(a: Array, b: Array) -> Any:
    # NumPy takes the square root where the exponent is one 0.5 for all, which is NaN at -inf where pow is inf.
    return np.where((a == -INF) & (b == 0.5), INF, np.power(a, b))


def _rsqrt(a: float) -> float:
    return 1.0 / math.sqrt(a) if a > 0 else (math.copysign(INF, a) if a == 0 else math.nan)


def _sigmoid(a: float) -> float:
    return 1.0 / (1.0 + _exp(-a))


def _max(a: float, b: float) -> float:
    return math.nan if a != a or b != b else (a if a >= b else b)


def _min(a: float, b: float) -> float:
    if a == -INF or b == -INF:
        return -INF
    return math.nan if a != a or b != b else (a if a <= b else b)


def _add(a: float, b: float) -> float:
    return -INF if a == -INF or b == -INF else a + b


def _sub(a: float, b: float) -> float:
    return -INF if a == -INF else a - b


def _mul(a: float, b: float) -> float:
    return 0.0 if a == 0 or b == 0 else a * b


def _relu(a: float) -> float:
    return math.nan if a != a else (a if a >= 0.0 else 0.0)


def _least(a: float, b: float) -> float:
    return math.nan if a != a or b != b else (b if b < a else a)


def _threshold(a: float, least: float) -> float:
    return a if a != a or (a != 0 and abs(a) >= least) else 0.0


WHOLE = 2.0**52
"""Floats of this magnitude and more have no fraction."""
SHIFT = 1.5 * WHOLE
"""A number that leaves no room for a fraction: x + SHIFT - SHIFT is x rounded to an integer, ties to even."""


def _saturate(a: float, least: float, greatest: float) -> float:
    if a != a:
        return a
    above = a if a > least else least
    inside = above if above < greatest else greatest
    return (inside + SHIFT) - SHIFT if abs(inside) < WHOLE else inside


def _saturate_array(a: Array, least: Array, greatest: Array) -> Any:
    above = np.where(a > least, a, least)
    inside = np.where(above < greatest, above, greatest)
    return np.where(np.isnan(a), a, np.where(np.abs(inside) < WHOLE, (inside + SHIFT) - SHIFT, inside))


SCALE, BELOW_ONE = 2.0**52 + 1.0, 1.0 - 2.0**-53
"""The constants with which three operations find the power of 2 in a float: Rump, Ogita and Oishi, Accurate Floating-Point Summation,
Part I, 2008."""


EPSILON = 2.0**-52
"""The distance from 1 to the next float of 64 bits."""


def _nearest(a: float, step: float, least: float) -> float:
    if a == 0 or a - a != 0 or not (step > EPSILON and least > 0):
        return a
    if abs(a) * least >= 4.0 * step:
        return math.copysign(INF, a)
    scaled = a * SCALE
    own = abs(scaled - scaled * BELOW_ONE) * step
    quantum = own if own > least else least
    rounded = abs((a / quantum + SHIFT) - SHIFT) * quantum
    return math.copysign(INF if rounded * least >= 4.0 * step else rounded, a)


F32_STEP, F32_LEAST = 2.0**-23, 2.0**-149
"""The distance from 1 to the next float of 32 bits, and the smallest one above 0."""


def _nearest_of_array(a: Array, step: Array, least: Array) -> Any:
    if step.ndim == least.ndim == 0 and step == F32_STEP and least == F32_LEAST:
        return a.astype(np.float32)
    scaled = a * SCALE
    own = np.abs(scaled - scaled * BELOW_ONE) * step
    quantum = np.where(own > least, own, least)
    rounded = np.abs((a / quantum + SHIFT) - SHIFT) * quantum
    beyond = (np.abs(a) * least >= 4.0 * step) | (rounded * least >= 4.0 * step)
    rounds = (a != 0) & np.isfinite(a) & (step > EPSILON) & (least > 0)
    return np.where(rounds, np.copysign(np.where(beyond, INF, rounded), a), a)


F32_END = 2.0**128
"""The magnitude at which 32-bit floats end."""


def _nearest_finite(a: float, step: float, greatest: float) -> float:
    if a == 0 or a != a or not (step > EPSILON and 0 < greatest < F32_END):
        return a
    if abs(a) >= greatest:
        return math.copysign(greatest, a)
    scaled, scaled_end = a * SCALE, greatest * SCALE
    own = abs(scaled - scaled * BELOW_ONE) * step
    least = 4.0 * step / abs(scaled_end - scaled_end * BELOW_ONE)
    quantum = own if own > least else least
    rounded = abs((a / quantum + SHIFT) - SHIFT) * quantum
    return math.copysign(rounded if rounded < greatest else greatest, a)


def _nearest_finite_of_array(a: Array, step: Array, greatest: Array) -> Any:
    scaled, scaled_end = a * SCALE, greatest * SCALE
    own = np.abs(scaled - scaled * BELOW_ONE) * step
    least = 4.0 * step / np.abs(scaled_end - scaled_end * BELOW_ONE)
    quantum = np.where(own > least, own, least)
    rounded = np.abs((a / quantum + SHIFT) - SHIFT) * quantum
    held = np.where((np.abs(a) < greatest) & (rounded < greatest), rounded, greatest)
    rounds = (a != 0) & ~np.isnan(a) & (step > EPSILON) & (greatest > 0) & (greatest < F32_END)
    return np.where(rounds, np.copysign(held, a), a)


def _where(c: float, a: float, b: float) -> float:
    return a if c != 0 else b


_ROWS = (
    Operator("add", 2, np.add, _add, ((0, -INF, -INF), (1, -INF, -INF)), symbol="+", precedence=2),
    Operator("sub", 2, np.subtract, _sub, ((0, -INF, -INF),), symbol="-", precedence=2),
    Operator("mul", 2, np.multiply, _mul, ((0, 0.0, 0.0), (1, 0.0, 0.0)), unit="mul", symbol="*", precedence=3),
    Operator("div", 2, np.divide, _div, ((0, 0.0, 0.0),), unit="div", symbol="/", precedence=3),
    Operator("pow", 2, _power, _pow, ((1, 0.0, 1.0),), unit="transcendental", ieee=lambda a, b: math.pow(a, b)),
    Operator("max", 2, np.maximum, _max, exact=True),
    Operator("min", 2, np.minimum, _min, ((0, -INF, -INF), (1, -INF, -INF)), exact=True),
    Operator("eq", 2, np.equal, lambda a, b: 1.0 if a == b else 0.0, unit="logic", symbol="==", precedence=1),
    Operator("ne", 2, np.not_equal, lambda a, b: 1.0 if a != b else 0.0, unit="logic", symbol="!=", precedence=1),
    Operator("lt", 2, np.less, lambda a, b: 1.0 if a < b else 0.0, unit="logic", symbol="<", precedence=1),
    Operator("le", 2, np.less_equal, lambda a, b: 1.0 if a <= b else 0.0, unit="logic", symbol="<=", precedence=1),
    Operator("gt", 2, np.greater, lambda a, b: 1.0 if a > b else 0.0, unit="logic", symbol=">", precedence=1),
    Operator("ge", 2, np.greater_equal, lambda a, b: 1.0 if a >= b else 0.0, unit="logic", symbol=">=", precedence=1),
    Operator(
        "threshold",
        2,
        lambda a, least: np.where(np.isnan(a) | (np.abs(a) >= least), a, 0.0),
        _threshold,
        ((0, 0.0, 0.0),),
        unit="logic",
    ),
    Operator("saturate", 3, _saturate_array, _saturate, flops=0, unit="logic"),
    Operator("nearest", 3, _nearest_of_array, _nearest, flops=0, unit="logic"),
    Operator("nearest_finite", 3, _nearest_finite_of_array, _nearest_finite, flops=0, unit="logic"),
    Operator("where", 3, lambda c, a, b: np.where(c != 0, a, b), _where, flops=0, unit="logic"),
    Operator("copy", 1, np.positive, lambda a: a, flops=0, unit="logic"),
    Operator("neg", 1, np.negative, lambda a: -a, exact=True),
    Operator("abs", 1, np.abs, abs, ieee=lambda a: abs(a), exact=True),
    Operator("relu", 1, lambda a: np.maximum(a, 0.0), _relu, exact=True),
    Operator("exp", 1, np.exp, _exp, unit="transcendental", ieee=lambda a: math.exp(a)),
    Operator("log", 1, np.log, _log, unit="transcendental"),
    Operator("sqrt", 1, np.sqrt, _guarded(math.sqrt), unit="transcendental", ieee=lambda a: math.sqrt(a)),
    Operator("rsqrt", 1, lambda a: 1.0 / np.sqrt(a), _rsqrt, unit="transcendental"),
    Operator("sin", 1, np.sin, _guarded(math.sin), unit="transcendental", ieee=lambda a: math.sin(a)),
    Operator("cos", 1, np.cos, _guarded(math.cos), unit="transcendental", ieee=lambda a: math.cos(a)),
    Operator("tanh", 1, np.tanh, math.tanh, unit="transcendental", ieee=lambda a: math.tanh(a)),
    Operator("erf", 1, _erf_of_array, math.erf, unit="transcendental", ieee=lambda a: math.erf(a)),
    Operator(
        "sigmoid",
        1,
        lambda a: 1.0 / (1.0 + np.exp(-a)),
        _sigmoid,
        unit="transcendental",
        ieee=lambda a: 1.0 / (1.0 + math.exp(-a)),
    ),
)

OPERATORS: dict[str, Operator] = {row.name: row for row in _ROWS}

REDUCERS: dict[str, Reducer] = {
    row.name: row
    for row in (
        Reducer("sum", np.add, lambda a, b: a + b, 0.0),
        Reducer("max", np.maximum, _max, -INF, exact=True),
        Reducer("min", np.minimum, _least, INF, exact=True),
        Reducer("prod", np.multiply, lambda a, b: a * b, 1.0, "mul"),
    )
}

COMBINERS: dict[str, Operator] = {
    f"fold_{row.name}": Operator(f"fold_{row.name}", 2, row.array, row.scalar, unit=row.unit, exact=row.exact)
    for row in REDUCERS.values()
}
"""Operators that combine two partial results of a reduction into one. Unlike `add`, `min` and `mul` they have no annihilators, so that
infinities and NaN come out as in a single fold. They occur in graphs only, where lanes are merged."""


def operator(name: str) -> Operator:
    """Return the operator called `name`. Raise `ProgramError` with the nearest right name if there is none."""
    row = OPERATORS.get(name) or COMBINERS.get(name)
    if row is None:
        raise ProgramError(f"unknown operator `{name}`", hint=did_you_mean(name, OPERATORS))
    return row


def reducer(name: str) -> Reducer:
    """Return the reduction called `name`. Raise `ProgramError` with the nearest right name if there is none."""
    if name not in REDUCERS:
        raise ProgramError(f"unknown reduction `{name}`", hint=did_you_mean(name, REDUCERS))
    return REDUCERS[name]
