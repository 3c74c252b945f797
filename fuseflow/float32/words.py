"""Words: the bits of a 32-bit float as an integer from 0 to 2**32 - 1. For example 1.0 has the word 0x3F800000.

The functions on words work on integers of 64 bits and never overflow. So plain Python and compiled code compute the same.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import numpy.typing as npt

NAN = 0x7FC00000
"""The word of every result that is not a number."""
INFINITY = 0x7F800000
ONE = 0x3F800000
SIGN = 1 << 31
FRACTION = (1 << 23) - 1
"""The bits behind the leading one of a number."""
LEAST = -149
"""The exponent of the smallest subnormal number, 2**-149."""


def rounded(x: float) -> float:
    """Return the 32-bit float that is nearest to a 64-bit float, ties to even.

    A sum, difference, product, quotient or square root of 32-bit floats that was rounded to 64 bits before gives the same as one that is
    rounded once, since 53 digits are at least 2 * 24 + 2: S. A. Figueroa, When is double rounding innocuous?, SIGNUM Newsletter 30(3),
    1995.

    >>> rounded(0.1)
    0.10000000149011612
    """
    return ctypes.c_float(x).value


def rounded_array(values: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Return the 32-bit floats that are nearest to numbers, as 64-bit floats."""
    with np.errstate(over="ignore"):
        return values.astype(np.float32).astype(np.float64)


def word_of(x: float) -> int:
    """Return the word of the 32-bit float that is nearest to x."""
    return NAN if x != x else ctypes.c_uint32.from_buffer(ctypes.c_float(x)).value


def value_of(word: int) -> float:
    """Return the number that a word stands for.

    >>> value_of(0x3F800000), value_of(0x00000001)
    (1.0, 1.401298464324817e-45)
    """
    return ctypes.c_float.from_buffer(ctypes.c_uint32(word)).value


def is_nan(word: int) -> bool:
    """Return whether a word is a NaN. There are many words of NaN."""
    return (word & ~SIGN) > INFINITY


def bit_length(value: int) -> int:
    """Return the number of binary digits of a number from 0 to 2**63 - 1."""
    count = 0
    for step in (32, 16, 8, 4, 2, 1):
        if value >> step != 0:
            value >>= step
            count += step
    return count + value


def exponent_of(word: int) -> int:
    """Return the exponent e of a finite number that is not 0, whose magnitude is at least 2**e and less than 2**(e + 1)."""
    biased = word >> 23 & 255
    return biased - 127 if biased != 0 else bit_length(word & FRACTION) + LEAST - 1


def significand_of(word: int) -> int:
    """Return the significand of a finite number that is not 0: an integer of 24 binary digits. Times 2**(e - 23) it is the magnitude."""
    if word >> 23 & 255 != 0:
        return word & FRACTION | 1 << 23
    return (word & FRACTION) << 24 - bit_length(word & FRACTION)


def round_word(sign: int, significand: int, exponent: int) -> int:
    """Return the word of the float that is nearest to significand * 2**exponent, ties to even; `sign` is `SIGN` for negative numbers, or 0.

    The significand is from 0 to 2**63 - 1. A number that is too large for a float becomes infinite.

    >>> hex(round_word(0, 3, -1))
    '0x3fc00000'
    """
    if significand == 0:
        return sign
    last = max(exponent + bit_length(significand) - 24, LEAST)  # the exponent of the last digit that is kept
    lost = last - exponent
    if lost > 62:
        return sign
    if lost > 0:
        kept = significand >> lost
        rest, half = significand - (kept << lost), 1 << lost - 1
        if rest > half or (rest == half and kept & 1 != 0):
            kept += 1
    else:
        kept = significand << -lost
    word = (last - LEAST << 23) + kept  # the leading one of a normal number adds 1 to its exponent
    return sign | min(word, INFINITY)
