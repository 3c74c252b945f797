"""Arithmetic of circuits: how a number is a word of bits, and which combinational unit computes an operator.

A unit is a module of SystemVerilog, and a Python function on the same words. The name of a unit says the format of its numbers:
`ff_f64_add` adds words that hold floats of 64 bits. These are for simulation only, since they are written with the real numbers of
SystemVerilog.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from fuseflow.errors import HardwareError
from fuseflow.hardware.expressions import Expr, call, count_bits
from fuseflow.ops import COMBINERS, OPERATORS, operator

Unit = Callable[..., int]
"""A combinational unit: from words to a word."""


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """The format of the numbers of a circuit: its name in units, and its bits."""

    name: str
    width: int
    code: str
    """The format of `struct`, little-endian."""
    synthesizable: bool

    def word(self, number: float) -> int:
        """Return the word of a number. All NaN have one word.

        >>> hex(F64.word(1.0))
        '0x3ff0000000000000'
        """
        return int.from_bytes(struct.pack(self.code, math.nan if number != number else number), "little")

    def number(self, word: int) -> float:
        """Return the number of a word."""
        (number,) = struct.unpack(self.code, word.to_bytes(self.width // 8, "little"))
        return float(number)

    def apply(self, function: str, *operands: Expr) -> Expr:
        """Return the result of an operator on words."""
        return call(f"ff_{self.name}_{function}", self.width, *operands)

    def units(self) -> Mapping[str, Unit]:
        """Return the units of all operators, by name."""
        return {f"ff_{self.name}_{name}": self._unit(name) for name in (*OPERATORS, *COMBINERS)}

    def _unit(self, name: str) -> Unit:
        scalar, number, word = operator(name).scalar, self.number, self.word

        def unit(*words: int) -> int:
            return word(scalar(*map(number, words)))

        return unit


F64 = Arithmetic("f64", 64, "<d", synthesizable=False)
ARITHMETICS = {row.name: row for row in (F64,)}


def lowest(bits: Expr) -> Expr:
    """Return the number of the lowest bit that is set, or 0 if none is."""
    return call("ff_lowest", count_bits(bits.width), bits)


def count_ones(bits: Expr) -> Expr:
    """Return how many bits are set."""
    return call("ff_ones", count_bits(bits.width + 1), bits)


INTEGER_UNITS: Mapping[str, Unit] = {
    "ff_lowest": lambda bits: max((bits & -bits).bit_length() - 1, 0),
    "ff_ones": int.bit_count,
}
"""Units of integers, whose operands may have any width."""


def unit_function(name: str) -> Unit:
    """Return the Python form of a unit. Raises `HardwareError` if there is none."""
    for units in (INTEGER_UNITS, *(row.units() for row in ARITHMETICS.values())):
        if name in units:
            return units[name]
    raise HardwareError(f"there is no unit `{name}`")
