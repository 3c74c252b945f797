"""rsqrt and erf. Each is one polynomial in each of 16 pieces."""

from __future__ import annotations

from fuseflow.float32.curves import ERF, RSQRT
from fuseflow.float32.polynomials import polynomial
from fuseflow.float32.words import FRACTION, INFINITY, NAN, ONE, SIGN, exponent_of, is_nan, round_word, significand_of


def rsqrt(a: int) -> int:
    """Return the word of 1 / sqrt(a)."""
    if is_nan(a):
        return NAN
    if a & ~SIGN == 0:
        return a | INFINITY
    if a & SIGN != 0:
        return NAN
    if a == INFINITY:
        return 0
    fraction, exponent = significand_of(a) & FRACTION, exponent_of(a)
    odd = exponent & 1
    value = polynomial(RSQRT, 7 * (odd << 3 | fraction >> 20), 6, fraction & (1 << 20) - 1, 20)
    return round_word(0, value, -31 - (exponent >> 1))


def erf(a: int) -> int:
    """Return the word of erf(a)."""
    if is_nan(a):
        return NAN
    sign, magnitude = a & SIGN, a & ~SIGN
    if magnitude == 0:
        return a
    if magnitude >= 0x40800000:  # 4
        return sign | ONE
    significand, exponent = significand_of(a), exponent_of(a)
    place = significand << exponent + 5 if exponent >= -5 else significand >> min(-5 - exponent, 24)  # in units of 2**-28
    ratio = polynomial(ERF, 8 * (place >> 26), 7, place & (1 << 26) - 1, 26)
    return round_word(sign, significand * ratio, exponent - 54)
