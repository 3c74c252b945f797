"""log and pow. Both take the logarithm to the base 2, whose error is relative also near 1."""

from __future__ import annotations

from fuseflow.float32.curves import LOG2
from fuseflow.float32.exponentials import power_of_2
from fuseflow.float32.polynomials import polynomial
from fuseflow.float32.words import (
    FRACTION,
    INFINITY,
    NAN,
    ONE,
    SIGN,
    bit_length,
    exponent_of,
    is_nan,
    round_word,
    significand_of,
)

LN_2 = 1488522236
"""log(2), in units of 2**-31."""


def log(a: int) -> int:
    """Return the word of log(a)."""
    if is_nan(a):
        return NAN
    if a & ~SIGN == 0:
        return SIGN | INFINITY
    if a & SIGN != 0:
        return NAN
    if a == INFINITY:
        return INFINITY
    value, units = logarithm(a)
    sign, magnitude = (SIGN, -value) if value < 0 else (0, value)
    digits, dropped = _normalized(magnitude, 31)
    return round_word(sign, digits * LN_2, units + dropped - 31)


def logarithm(a: int) -> tuple[int, int]:
    """Return log2(a) of a positive number as an integer, and the exponent of its units: -62 between 0.75 and 1.5, and -54 elsewhere."""
    fraction, exponent = significand_of(a) & FRACTION, exponent_of(a)
    upper = fraction >> 22
    g = fraction - (upper << 23) << 1 - upper  # from -1/4 to 1/2, in units of 2**-24
    ratio = polynomial(LOG2, 7 * (fraction >> 19), 6, fraction & (1 << 19) - 1, 19)
    whole = exponent + upper
    if whole == 0:
        return g * ratio, -62
    return (whole << 54) + (g * ratio >> 8), -54


def power(a: int, b: int) -> int:
    """Return the word of a**b, in all special cases as C and NumPy do: 1 if b is 0 or a is 1, even where the other is not a number."""
    if b & ~SIGN == 0 or a == ONE:
        return ONE
    if is_nan(a) or is_nan(b):
        return NAN
    x, y, negative = a & ~SIGN, b & ~SIGN, b & SIGN != 0
    if y == INFINITY:
        if x == ONE:
            return ONE
        return 0 if (x > ONE) == negative else INFINITY
    digits_behind = 23 - min(max(exponent_of(b), -1), 24)
    whole = digits_behind < 0 or (digits_behind < 24 and significand_of(b) & (1 << max(digits_behind, 0)) - 1 == 0)
    odd = whole and digits_behind >= 0 and significand_of(b) >> max(digits_behind, 0) & 1 != 0
    sign = a & SIGN if odd else 0
    if x == 0 or x == INFINITY:
        return sign | (INFINITY if (x == 0) == negative else 0)
    if a & SIGN != 0 and not whole:
        return NAN
    return _finite_power(x, b, sign)


def _finite_power(x: int, b: int, sign: int) -> int:
    """Return the word of the power of the positive number of word `x`, to the exponent of the word `b`, with this sign."""
    value, units = logarithm(x)
    falls = (value < 0) != (b & SIGN != 0)
    digits, dropped = _normalized(-value if value < 0 else value, 37)
    product, exponent = digits * significand_of(b), units + dropped + exponent_of(b) - 23
    if product == 0:
        return sign | ONE
    if bit_length(product) + exponent > 8:  # 256 and more
        return sign if falls else sign | INFINITY
    z = product >> min(-exponent - 32, 62)
    result, k = power_of_2(-z if falls else z)
    return round_word(sign, result, k - 31)


def _normalized(magnitude: int, digits: int) -> tuple[int, int]:
    """Return the leading `digits` binary digits of a number, and how many digits were dropped. A negative count is a number of
    zeros that were appended."""
    dropped = bit_length(magnitude) - digits
    return (magnitude >> dropped if dropped > 0 else magnitude << -dropped), dropped
