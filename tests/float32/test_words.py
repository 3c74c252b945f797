"""Words, and the rounding of exact numbers to them."""

from __future__ import annotations

import random
import struct
from fractions import Fraction

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from fuseflow.float32.words import (
    INFINITY,
    NAN,
    SIGN,
    bit_length,
    exponent_of,
    is_nan,
    round_word,
    rounded,
    significand_of,
    value_of,
    word_of,
)

FLOATS = st.floats(allow_nan=False)


@given(st.integers(0, 2**32 - 1))
def test_words_and_values(word: int) -> None:
    value = value_of(word)
    assert value == struct.unpack("<f", word.to_bytes(4, "little"))[0] or (is_nan(word) and value != value)
    assert word_of(value) == (NAN if is_nan(word) else word)


@given(FLOATS)
@example(1e300)
@example(2.0**-150)
@example(2.0**-149 * 1.5)
def test_rounding_is_that_of_numpy(x: float) -> None:
    with np.errstate(all="ignore"):
        assert rounded(x) == float(np.float32(x))


@given(st.integers(0, 2**63 - 1))
def test_the_number_of_binary_digits(value: int) -> None:
    assert bit_length(value) == value.bit_length()


@given(st.integers(1, INFINITY - 1))
def test_a_number_is_its_significand_times_its_exponent(word: int) -> None:
    assert Fraction(value_of(word)) == significand_of(word) * Fraction(2) ** (exponent_of(word) - 23)
    assert significand_of(word) >> 23 == 1


def test_exact_numbers_are_rounded_to_the_nearest_word() -> None:
    """Against a search for the nearest one of all floats, with fractions."""
    rng = random.Random(7)
    for _ in range(3000):
        significand, exponent = rng.getrandbits(rng.randint(1, 63)), rng.randint(-220, 90)
        word, exact = round_word(0, significand, exponent), significand * Fraction(2) ** exponent
        assert round_word(SIGN, significand, exponent) == SIGN | word
        if word == INFINITY:
            assert exact >= Fraction(2) ** 128 - Fraction(2) ** 103
            continue
        gap = abs(Fraction(value_of(word)) - exact)
        for other in (word - 1, word + 1):
            if 0 <= other < INFINITY:
                away = abs(Fraction(value_of(other)) - exact)
                assert gap < away or (gap == away and word & 1 == 0), (significand, exponent)
