"""Arithmetic of circuits: how numbers, tiles and tokens are encoded as words of bits, and which combinational unit computes an operator.

A unit is a module of SystemVerilog, and a Python function on the same words. The name of a unit has the format of its numbers:
`ff_f64_add` adds words that hold floats of 64 bits. The units of `f64` are for simulation only, since they are written with the
real numbers of SystemVerilog.

A token has its kind in the two highest bits, then its payload. The first element of a tile is in its lowest bits.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fuseflow.firing_rules.expressions import Expr, call, count_bits
from fuseflow.firing_rules.rules import DONE, EMPTY, LEVEL_BITS, STOP, VALUE
from fuseflow.float32.operator_precision import Arithmetic as FloatFormat
from fuseflow.float32.operator_precision import scalar_function
from fuseflow.float32.words import value_of, word_of
from fuseflow.ops import operator
from fuseflow.samml.tokens import D, Mark, N, Stop, Token

Unit = Callable[..., int]
"""A combinational unit as a Python function: from words to a word."""


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """The format of the numbers of a circuit: its name, its bits, and the functions from a number to a word and back. All NaN are
    encoded as one word."""

    name: FloatFormat
    width: int
    word: Callable[[float], int]
    number: Callable[[int], float]
    synthesizable: bool

    def apply(self, function: str, *operands: Expr) -> Expr:
        """Return the expression of an operator, such as `add`, applied to words."""
        return call(f"ff_{self.name}_{function}", self.width, *operands)

    def unit(self, function: str) -> Unit:
        """Return the unit of an operator as a Python function on words."""
        on_numbers, number, word = scalar_function(operator(function), self.name), self.number, self.word
        return lambda *words: word(on_numbers(*map(number, words)))


def _wide_word(number: float) -> int:
    """Return the word of a number as a float of 64 bits.

    >>> hex(_wide_word(1.0))
    '0x3ff0000000000000'
    """
    return int.from_bytes(struct.pack("<d", math.nan if number != number else number), "little")


def _wide_number(word: int) -> float:
    (number,) = struct.unpack("<d", word.to_bytes(8, "little"))
    return float(number)


ARITHMETICS: Mapping[FloatFormat, Arithmetic] = {
    row.name: row
    for row in (
        Arithmetic("f64", 64, _wide_word, _wide_number, synthesizable=False),
        Arithmetic("f32", 32, word_of, value_of, synthesizable=True),
    )
}


def lowest(bits: Expr) -> Expr:
    """Return an expression: the index of the lowest bit that is set, or 0 if none is."""
    return call("ff_lowest", count_bits(bits.width), bits)


def count_ones(bits: Expr) -> Expr:
    """Return an expression: the number of bits that are set."""
    return call("ff_ones", count_bits(bits.width + 1), bits)


INTEGER_UNITS: Mapping[str, Unit] = {
    "ff_lowest": lambda bits: max((bits & -bits).bit_length() - 1, 0),
    "ff_ones": int.bit_count,
}
"""Units of integers, whose operands may have any width."""


def unit_function(name: str) -> Unit:
    """Return the unit with a name, such as `ff_f32_add`, as a Python function on words."""
    if name in INTEGER_UNITS:
        return INTEGER_UNITS[name]
    format_name, _, function = name.removeprefix("ff_").partition("_")
    return next(row for row in ARITHMETICS.values() if row.name == format_name).unit(function)


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
