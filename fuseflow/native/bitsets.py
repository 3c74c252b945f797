"""A set of small numbers is bits in words of memory, 32 a word. A walk over thousands of numbers passes over 32 that are not in the
set at a time."""

from __future__ import annotations

from fuseflow.native.records import get_int, inline, set_int, trailing_zeros

SHIFT, BITS = 5, 32


def word_count(numbers: int) -> int:
    """Return how many words a set of the numbers below this one has, at least one."""
    return max(-(-numbers // BITS), 1)


@inline
def add(members: int, number: int) -> None:
    """Put a number into the set at an address."""
    k = number >> SHIFT
    set_int(members, k, get_int(members, k) | 1 << (number & BITS - 1))


@inline
def discard(members: int, number: int) -> None:
    """Remove a number from a set."""
    k = number >> SHIFT
    set_int(members, k, get_int(members, k) & ~(1 << (number & BITS - 1)))


@inline
def is_member(members: int, number: int) -> bool:
    """Return whether a number is in a set."""
    return bool(get_int(members, number >> SHIFT) >> (number & BITS - 1) & 1)


@inline
def next_in_word(word: int, after: int) -> int:
    """Return the first member of a word of a set after bit `after` (-1: the first of all), as a bit, or -1 if there is none."""
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
