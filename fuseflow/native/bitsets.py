"""A set of small numbers is stored as bits in words of memory, 32 to a word, so a walk over the set skips 32 absent numbers at a
time. `members` is the address of a set."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from fuseflow.native.records import get_int, inline, set_int, trailing_zeros

SHIFT, BITS = 5, 32


def word_count(numbers: int) -> int:
    """Return the number of words of a set of numbers below `numbers`, at least one."""
    return max(-(-numbers // BITS), 1)


def bit_set(numbers: Iterable[int], words: int) -> npt.NDArray[np.int64]:
    """Return the set of some numbers, as an array of `words` words."""
    members, listed = np.zeros(words, np.int64), np.fromiter(numbers, np.int64)
    np.bitwise_or.at(members, listed >> SHIFT, 1 << (listed & BITS - 1))
    return members


@inline
def add(members: int, number: int) -> None:
    """Put a number into the set at an address."""
    k = number >> SHIFT
    set_int(members, k, get_int(members, k) | 1 << (number & BITS - 1))


@inline
def discard(members: int, number: int) -> None:
    """Remove a number from the set at an address."""
    k = number >> SHIFT
    set_int(members, k, get_int(members, k) & ~(1 << (number & BITS - 1)))


@inline
def is_member(members: int, number: int) -> bool:
    """Return whether a number is in the set at an address."""
    return bool(get_int(members, number >> SHIFT) >> (number & BITS - 1) & 1)


@inline
def next_in_word(word: int, after: int) -> int:
    """Return the first bit of a word that is set, after bit `after` (-1: the first of all), or -1 if there is none."""
    bits = word >> (after + 1)
    return -1 if bits == 0 else after + 1 + trailing_zeros(bits)


@inline
def next_member(members: int, words: int, start: int) -> int:
    """Return the first member of a set of `words` words that is `start` or more, or -1 if there is none."""
    k = start >> SHIFT
    bit = next_in_word(get_int(members, k), (start & BITS - 1) - 1)
    while bit < 0:
        k += 1
        if k >= words:
            return -1
        bit = next_in_word(get_int(members, k), -1)
    return (k << SHIFT) + bit
