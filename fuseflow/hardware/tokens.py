"""Tokens as words of bits: the kind in the two highest bits, then the payload. The first element of a tile is in its lowest bits."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from fuseflow.rules.rules import DONE, EMPTY, LEVEL_BITS, STOP, VALUE
from fuseflow.samml.tokens import D, Mark, N, Stop, Token


def token_word(token: Token, width: int, word: Callable[[float], int]) -> int:
    """Return the word of a token, whose payload has `width` bits. `word` encodes a number.

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
    if isinstance(token, np.ndarray):
        return VALUE << width | tile_word(token.ravel().tolist(), width // token.size, word)
    return VALUE << width | (word(token) if isinstance(token, float) else token)


def tile_word(elements: Sequence[float], bits: int, word: Callable[[float], int]) -> int:
    """Return the word of a tile, whose elements have `bits` bits each, row by row. `word` encodes a number.

    >>> hex(tile_word([1.0, 2.0, 3.0], 8, int))
    '0x30201'
    """
    return int.from_bytes(b"".join(word(element).to_bytes(bits // 8, "little") for element in elements), "little")


def tile_numbers(payload: int, width: int, bits: int, number: Callable[[int], float]) -> list[float]:
    """Return the elements of a tile of `width` bits, `bits` for each element. `number` decodes a word.

    >>> tile_numbers(0x30201, 24, 8, int)
    [1, 2, 3]
    """
    return [number(payload >> low & (1 << bits) - 1) for low in range(0, width, bits)]


def show_word(token: int, width: int, number: Callable[[int], float]) -> str:
    """Return the token of a word as text. Its payload has `width` bits, which `number` decodes. Words that are no tokens of
    streams are shown, too.

    >>> show_word(0x121, 8, int), show_word(0x101, 8, int)
    ('S1-2', 'S1-0')
    """
    kind, payload = token >> width, token & (1 << width) - 1
    if kind != STOP:
        return {DONE: "D", EMPTY: "N"}.get(kind) or f"{number(payload)}"
    low, high = payload & (1 << LEVEL_BITS) - 1, payload >> LEVEL_BITS & (1 << LEVEL_BITS) - 1
    return f"S{low}-{high}" if low else f"S{high}"
