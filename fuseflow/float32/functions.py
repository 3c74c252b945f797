"""The functions that are computed in integers, each from words to a word. `nearest` and `nearest_finite` are exact, and the
others are within 1 ulp.

`FUNCTIONS` has them by the names of the operator table. The circuit `ff_f32_NAME` takes the same steps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from fuseflow.float32.curves import COSINE, ERF, EXP2, LOG2, RSQRT, SINE, TANH
from fuseflow.float32.words import FRACTION, INFINITY, NAN, ONE, SIGN, bit_length, exponent_of, is_nan, round_word, significand_of


def polynomial(coefficients: tuple[int, ...], first: int, degree: int, t: int, digits: int) -> int:
    """Return the value at t / 2**digits of the polynomial whose `degree` + 1 coefficients stand from `first` on, in their units.

    Each product is rounded down. All values fit into 44 bits, and `digits` are at most 29, but for values of fewer bits.

    >>> polynomial((100, 10), 0, 1, 1, 1)
    105
    """
    value = coefficients[first + degree]
    for k in range(degree - 1, -1, -1):
        value = coefficients[first + k] + (value * t >> digits)
    return value


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
    """Return log2(a) of a positive number as an integer, and the exponent of its units: -62 between 0.75 and 1.5, and -54 elsewhere. The
    error is relative also near 1.
    """
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
    """Return the leading `digits` binary digits of a number, and how many were dropped, or if negative, zeros appended."""
    dropped = bit_length(magnitude) - digits
    return (magnitude >> dropped if dropped > 0 else magnitude << -dropped), dropped


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


# The argument of a wave is counted in quarter turns: it is multiplied by 2 / pi, with as many digits as that takes. M. Payne and R. Hanek,
# Radian reduction for trigonometric functions, SIGNUM Newsletter 18(1), 1983.
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
    return _wave(a, 0, a & SIGN)


def cos(a: int) -> int:
    """Return the word of cos(a)."""
    if is_nan(a) or a & ~SIGN == INFINITY:
        return NAN
    if a & ~SIGN < 0x39000000:  # 2**-13
        return ONE
    return _wave(a, 1, 0)


def _wave(a: int, ahead: int, sign: int) -> int:
    """Return the word of the sine of the magnitude of a plus `ahead` quarter turns, or of its negative if `sign` is `SIGN`."""
    quarters, negative, digits, exponent = quarter_turns(a)
    quarters += ahead
    sign ^= SIGN if quarters & 2 != 0 else 0
    square = digits * digits >> min(-2 * exponent - 31, 62)  # 4 (digits * 2**exponent)**2, in units of 2**-29
    if quarters & 1 != 0:
        return round_word(sign, polynomial(COSINE, 0, 5, square, 29), -31)
    return round_word(sign ^ (SIGN if negative else 0), digits * polynomial(SINE, 0, 5, square, 29), exponent - 31)


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


def nearest(a: int, step: int, least: int) -> int:
    """Return the word of the narrow float that is nearest to a, ties to even.

    1 + step is the next narrow float above 1, and `least` is the smallest one above 0. Both are powers of 2; others count as the powers
    below them. Where one is not positive or not finite, the result is a.

    >>> hex(nearest(0x3F99999A, 0x3C000000, 0x00010000))  # bf16
    '0x3f9a0000'
    """
    if is_nan(a):
        return NAN
    magnitude = a & ~SIGN
    if magnitude == 0 or magnitude == INFINITY or not (0 < step < INFINITY and 0 < least < INFINITY):
        return a
    exponent, relative, absolute = exponent_of(a), exponent_of(step), exponent_of(least)
    end = relative - absolute + 2  # 2**end is too large
    if exponent >= end:
        return a & SIGN | INFINITY
    result = multiple(a, max(exponent + relative, absolute))
    return a & SIGN | INFINITY if result & ~SIGN != 0 and exponent_of(result) >= end else result


def nearest_finite(a: int, step: int, greatest: int) -> int:
    """Return the word of the number that is nearest to a, ties to even, in a type of narrow floats without infinities.

    1 + step is the next number above 1 in the type, and `greatest` is its largest one. `step` is a power of 2; another one counts as the
    power below it. Where one is not positive or not finite, the result is a.

    >>> hex(nearest_finite(0x7F800000, 0x3E000000, 0x43E00000))  # infinity in e4m3
    '0x43e00000'
    """
    if is_nan(a):
        return NAN
    magnitude = a & ~SIGN
    if magnitude == 0 or not (0 < step < INFINITY and 0 < greatest < INFINITY):
        return a
    if magnitude >= greatest:
        return a & SIGN | greatest
    exponent, relative = exponent_of(a), exponent_of(step)
    result = multiple(a, max(exponent + relative, relative + 2 - exponent_of(greatest)))
    return a & SIGN | min(result & ~SIGN, greatest)


def multiple(a: int, last: int) -> int:
    """Return the word of the multiple of 2**last that is nearest to a finite number a that is not 0, ties to even."""
    lost = last - exponent_of(a) + 23
    if lost <= 0:
        return a
    if lost > 25:
        return a & SIGN
    significand = significand_of(a)
    kept = significand >> lost
    rest, half = significand - (kept << lost), 1 << lost - 1
    if rest > half or (rest == half and kept & 1 != 0):
        kept += 1
    return round_word(a & SIGN, kept, last)


FUNCTIONS: Mapping[str, Callable[..., int]] = MappingProxyType(
    {
        "cos": cos,
        "erf": erf,
        "exp": exp,
        "log": log,
        "nearest": nearest,
        "nearest_finite": nearest_finite,
        "pow": power,
        "rsqrt": rsqrt,
        "sigmoid": sigmoid,
        "sin": sin,
        "tanh": tanh,
    }
)
