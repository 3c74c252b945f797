"""nearest: the float of fewer digits that is nearest to a number."""

from __future__ import annotations

from fuseflow.float32.words import INFINITY, NAN, SIGN, bit_length, exponent_of, is_nan, round_word, significand_of


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
    last = max(exponent + relative, absolute)  # the exponent of the last digit
    lost = last - exponent + 23
    if exponent >= end:
        return a & SIGN | INFINITY
    if lost <= 0:
        return a
    if lost > 25:
        return a & SIGN
    significand = significand_of(a)
    kept = significand >> lost
    rest, half = significand - (kept << lost), 1 << lost - 1
    if rest > half or (rest == half and kept & 1 != 0):
        kept += 1
    if kept != 0 and bit_length(kept) - 1 + last >= end:
        return a & SIGN | INFINITY
    return round_word(a & SIGN, kept, last)
