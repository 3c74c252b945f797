"""Arithmetic of circuits: how a number is encoded as a word of bits, and which combinational unit computes an operator.

A unit is a module of SystemVerilog, and a Python function on the same words. The name of a unit has the format of its numbers:
`ff_f64_add` adds words that hold floats of 64 bits. The units of `f64` are for simulation only, since they are written with the
real numbers of SystemVerilog.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from fuseflow.float32.arithmetic import Arithmetic as FloatFormat
from fuseflow.float32.arithmetic import scalar_function
from fuseflow.float32.words import value_of, word_of
from fuseflow.ops import operator
from fuseflow.rules.expressions import Expr, call, count_bits

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
