"""sin and cos of every float. The argument is counted in quarter turns: it is multiplied by 2 / pi, with as many digits as that takes.

M. Payne and R. Hanek, Radian reduction for trigonometric functions, SIGNUM Newsletter 18(1), 1983.
"""

from __future__ import annotations

from fuseflow.float32.curves import COSINE, SINE
from fuseflow.float32.polynomials import polynomial
from fuseflow.float32.words import INFINITY, NAN, ONE, SIGN, bit_length, exponent_of, is_nan, round_word, significand_of

TWO_OVER_PI = (0, 0, 170891318, 240010261, 44024437, 131200308, 232525238, 43358524, 70845471)
"""2 / pi in pieces of 28 binary digits. The point is before the third piece."""
PIECE = 28
MASK = (1 << PIECE) - 1


def sin(a: int) -> int:
    """Return the word of sin(a)."""
    if is_nan(a) or a & ~SIGN == INFINITY:
        return NAN
    if a & ~SIGN < 0x39000000:  # 2**-13
        return a
    quarters, negative, digits, exponent = quarter_turns(a)
    sign = (a & SIGN) ^ (SIGN if quarters & 2 != 0 else 0)
    if quarters & 1 != 0:
        return round_word(sign, _cosine(digits, exponent), -31)
    return round_word(sign ^ (SIGN if negative else 0), _sine(digits, exponent), exponent - 31)


def cos(a: int) -> int:
    """Return the word of cos(a)."""
    if is_nan(a) or a & ~SIGN == INFINITY:
        return NAN
    if a & ~SIGN < 0x39000000:  # 2**-13
        return ONE
    quarters, negative, digits, exponent = quarter_turns(a)
    sign = SIGN if (quarters + 1) & 2 != 0 else 0
    if quarters & 1 == 0:
        return round_word(sign, _cosine(digits, exponent), -31)
    return round_word(sign ^ (SIGN if negative else 0), _sine(digits, exponent), exponent - 31)


def quarter_turns(a: int) -> tuple[int, bool, int, int]:
    """Return the nearest number of quarter turns of the magnitude of a, modulo 4, and the rest: whether it is negative, and its
    magnitude, which is digits * 2**exponent quarter turns with 31 digits. The magnitude of a is at least 2**-13.

    Four whole turns and more are dropped from the product, so it has 2 digits before the point and 82 behind it.
    """
    start = exponent_of(a) + 31  # of the digits of 2 / pi that have a part in these, the first
    piece, shift = start // PIECE, start % PIECE
    significand = significand_of(a)
    low = significand * _digits(piece + 2, shift)
    middle = significand * _digits(piece + 1, shift) + (low >> PIECE)
    high = significand * _digits(piece, shift) + (middle >> PIECE) & MASK
    low &= MASK
    fraction = (high & (1 << 26) - 1) << PIECE | middle & MASK
    negative = high >> 25 & 1 != 0
    if negative:
        fraction = (1 << 54) - fraction - (1 if low != 0 else 0)
        low = -low & MASK
    length = bit_length(fraction)
    digits = fraction >> length - 31 if length > 31 else fraction << 31 - length | low >> length - 3
    return (high >> 26) + (1 if negative else 0) & 3, negative, digits, length - 85


def _digits(piece: int, shift: int) -> int:
    """Return 28 binary digits of 2 / pi, which begin at digit `shift` of a piece."""
    return (TWO_OVER_PI[piece] << shift | TWO_OVER_PI[piece + 1] >> PIECE - shift) & MASK


def _square(digits: int, exponent: int) -> int:
    """Return 4 (digits * 2**exponent)**2 in units of 2**-29."""
    return digits * digits >> min(-2 * exponent - 31, 62)


def _sine(digits: int, exponent: int) -> int:
    return digits * polynomial(SINE, 0, 5, _square(digits, exponent), 29)


def _cosine(digits: int, exponent: int) -> int:
    return polynomial(COSINE, 0, 5, _square(digits, exponent), 29)
