"""Tokens as words of bits: the kind in the two highest bits, then the payload."""

from __future__ import annotations

from collections.abc import Callable

from fuseflow.hardware.rules import DONE, EMPTY, LEVEL_BITS, STOP, VALUE
from fuseflow.samml.tokens import D, Mark, N, Stop, Token


def token_word(token: Token, width: int, word: Callable[[float], int]) -> int:
    """Return the word of a token, whose payload has `width` bits. `word` makes a word of a number.

    >>> from fuseflow.samml.tokens import stop
    >>> [hex(token_word(t, 8, int)) for t in (5, stop(1, 2), N, D)]
    ['0x5', '0x121', '0x200', '0x300']
    """
    if token is D:
        return DONE << width
    if token is N:
        return EMPTY << width
    if isinstance(token, Stop):
        return STOP << width | token.high << LEVEL_BITS | token.low
    assert not isinstance(token, Mark), "there are two marks"
    return VALUE << width | (word(token) if isinstance(token, float) else token)


def show_word(token: int, width: int, number: Callable[[int], float]) -> str:
    """Return the token of a word as text. `number` makes a number of a payload. A word that is no token of a stream is shown, too.

    >>> show_word(0x121, 8, int), show_word(0x101, 8, int)
    ('S1-2', 'S1-0')
    """
    kind, payload = token >> width, token & (1 << width) - 1
    if kind != STOP:
        return {DONE: "D", EMPTY: "N"}.get(kind) or f"{number(payload)}"
    low, high = payload & (1 << LEVEL_BITS) - 1, payload >> LEVEL_BITS & (1 << LEVEL_BITS) - 1
    return f"S{low}-{high}" if low else f"S{high}"
