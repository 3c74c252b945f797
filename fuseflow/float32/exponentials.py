"""exp, sigmoid and tanh. All of them compute a power of 2: the fraction of its exponent goes into a polynomial."""

from __future__ import annotations

from fuseflow.float32.curves import EXP2, TANH
from fuseflow.float32.polynomials import polynomial
from fuseflow.float32.words import INFINITY, NAN, ONE, SIGN, exponent_of, is_nan, round_word, significand_of

LOG2_E = 198282496599
"""log2(e), in units of 2**-37."""
UNIT = 1 << 31
"""1, in the units of powers."""


def power_of_2(z: int) -> tuple[int, int]:
    """Return the power of 2 of z, which is in units of 2**-32: a number from 2**31 to 2**32 - 1 in units of 2**-31, and a whole
    number n: the result is the first number times 2**n.

    >>> power_of_2(3 << 31)
    (3037000500, 1)
    """
    fraction = z & (1 << 32) - 1
    return polynomial(EXP2, 5 * (fraction >> 29), 4, fraction & (1 << 29) - 1, 29), z >> 32


def binary_exponent(significand: int, exponent: int) -> int:
    """Return log2(e) * x in units of 2**-32, rounded down, where x is significand * 2**(exponent - 23). The exponent is from -34 to 6."""
    return significand * LOG2_E >> 28 - exponent


def exp(a: int) -> int:
    """Return the word of exp(a)."""
    if is_nan(a):
        return NAN
    magnitude = a & ~SIGN
    if magnitude >= 0x43000000:  # 128
        return 0 if a & SIGN != 0 else INFINITY
    if magnitude < 0x33000000:  # 2**-25
        return ONE
    z = binary_exponent(significand_of(a), exponent_of(a))
    value, k = power_of_2(-z if a & SIGN != 0 else z)
    return round_word(0, value, k - 31)


def sigmoid(a: int) -> int:
    """Return the word of 1 / (1 + exp(-a))."""
    if is_nan(a):
        return NAN
    magnitude = a & ~SIGN
    if magnitude >= 0x43000000:  # 128
        return 0 if a & SIGN != 0 else ONE
    if magnitude < 0x33000000:  # 2**-25
        return 0x3F000000
    value, k = power_of_2(-binary_exponent(significand_of(a), exponent_of(a)))
    share = (1 << 62) // (UNIT + _shifted(value, k))
    if a & SIGN == 0:
        return round_word(0, share, -31)
    return round_word(0, (value >> 2) * share, k - 60)


def tanh(a: int) -> int:
    """Return the word of tanh(a): by a polynomial below 1/4, and from there on as (1 - exp(-2|a|)) / (1 + exp(-2|a|))."""
    if is_nan(a):
        return NAN
    sign, magnitude = a & SIGN, a & ~SIGN
    if magnitude >= 0x41800000:  # 16
        return sign | ONE
    if magnitude < 0x38800000:  # 2**-14
        return a
    significand, exponent = significand_of(a), exponent_of(a)
    if magnitude < 0x3E800000:  # 1/4
        square = significand * significand >> 13 - 2 * exponent  # 16 a**2, in units of 2**-29
        return round_word(sign, significand * polynomial(TANH, 0, 4, square, 29), exponent - 54)
    value, k = power_of_2(-binary_exponent(significand, exponent + 1))
    small = _shifted(value, k)
    return round_word(sign, (UNIT - small << 31) // (UNIT + small), -31)


def _shifted(value: int, k: int) -> int:
    """Return value * 2**k, rounded down; k is at most 0."""
    return value >> min(-k, 40)
