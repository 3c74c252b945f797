"""Combinational expressions: values that a rule computes from registers, tokens and memories within one cycle.

An expression is an unsigned number of `width` bits. Operations have the same meaning as in the `comb` dialect of CIRCT:

>>> low, high = const(3, 4), const(2, 4)
>>> (concat(high, low).width, (low < high).width)
(8, 1)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

Operation: TypeAlias = Literal[
    "const", "token", "register", "array", "memory", "call", "and", "or", "xor", "add", "sub", "mul", "divu", "modu", "shl", "shru",
    "eq", "ne", "ult", "ule", "mux", "extract", "concat", "answers", "port", "wire",
]  # fmt: skip
"""`token` is the next token of an input, `register` the value of a register, `array` and `memory` read a word at an address in
the same cycle, and `call` is a combinational unit in SystemVerilog. `answers` counts the visible answers of a memory port. A
`port` is an input of a module that is no token, and a `wire` names its operand; rules have neither. All others are operations of
`comb`."""


@dataclass(frozen=True, slots=True, eq=False)
class Expr:
    """An expression of `width` bits. `args` are the operands, `name` names the input, the register, the array, the memory or the
    unit, and `number` is the value of a constant or the lowest bit of an extract."""

    op: Operation
    args: tuple[Expr, ...]
    width: int
    name: str = ""
    number: int = 0

    def _with(self, op: Operation, other: Expr | int, width: int | None = None) -> Expr:
        right = other if isinstance(other, Expr) else const(other, self.width)
        if self.width != right.width:
            raise ValueError(f"`{op}` of {self.width} and {right.width} bits")
        return Expr(op, (self, right), width or self.width)

    def __and__(self, other: Expr | int) -> Expr:
        return self._with("and", other)

    def __or__(self, other: Expr | int) -> Expr:
        return self._with("or", other)

    def __xor__(self, other: Expr | int) -> Expr:
        return self._with("xor", other)

    def __invert__(self) -> Expr:
        return self._with("xor", (1 << self.width) - 1)

    def __add__(self, other: Expr | int) -> Expr:
        return self._with("add", other)

    def __sub__(self, other: Expr | int) -> Expr:
        return self._with("sub", other)

    def __mul__(self, other: Expr | int) -> Expr:
        return self._with("mul", other)

    def __floordiv__(self, other: int) -> Expr:
        return self._with("divu", other)

    def __mod__(self, other: int) -> Expr:
        return self._with("modu", other)

    def __lshift__(self, other: Expr | int) -> Expr:
        return self._with("shl", other)

    def __rshift__(self, other: Expr | int) -> Expr:
        return self._with("shru", other)

    def __lt__(self, other: Expr | int) -> Expr:
        return self._with("ult", other, 1)

    def __le__(self, other: Expr | int) -> Expr:
        return self._with("ule", other, 1)

    def is_(self, other: Expr | int) -> Expr:
        """Return an expression of one bit: whether both numbers are equal. The operator `==` compares Python objects."""
        return self._with("eq", other, 1)

    def is_not(self, other: Expr | int) -> Expr:
        return self._with("ne", other, 1)

    def bits(self, low: int, width: int) -> Expr:
        """Return the `width` bits of the number from bit `low` on."""
        return self if (low, width) == (0, self.width) else Expr("extract", (self,), width, number=low)

    def fit(self, width: int) -> Expr:
        """Return the number in `width` bits: with zeros before it, or without its highest bits."""
        return concat(const(0, width - self.width), self) if width > self.width else self.bits(0, width)


def const(value: int, width: int) -> Expr:
    """Return a constant of `width` bits. Raises `ValueError` if the value does not fit."""
    if not 0 <= value < 1 << width:
        raise ValueError(f"{value} has more than {width} bits")
    return Expr("const", (), width, number=value)


YES, NO = const(1, 1), const(0, 1)


def mux(condition: Expr, yes: Expr, no: Expr) -> Expr:
    """Return an expression that is `yes` where the condition holds, else `no`."""
    if condition.width != 1 or yes.width != no.width:
        raise ValueError(f"a choice by {condition.width} bits between {yes.width} and {no.width}")
    return yes if yes is no else Expr("mux", (condition, yes, no), yes.width)


def concat(*parts: Expr) -> Expr:
    """Return the bits of all operands in one number, the first operand highest."""
    return parts[0] if len(parts) == 1 else Expr("concat", parts, sum(part.width for part in parts))


def call(unit: str, width: int, *args: Expr) -> Expr:
    """Return the expression of a combinational unit, with a result of `width` bits, applied to operands."""
    return Expr("call", args, width, unit)


def any_of(conditions: Iterable[Expr]) -> Expr:
    """Return the condition that at least one of the conditions holds."""
    return _tree([*conditions], Expr.__or__, NO)


def all_of(conditions: Iterable[Expr]) -> Expr:
    """Return the condition that all of the conditions hold."""
    return _tree([*conditions], Expr.__and__, YES)


def _tree(parts: Sequence[Expr], join: Callable[[Expr, Expr], Expr], empty: Expr) -> Expr:
    """Return all expressions joined in a balanced tree (a node may have thousands of rules), or `empty` if there are none."""
    if len(parts) < 2:
        return parts[0] if parts else empty
    half = len(parts) // 2
    return join(_tree(parts[:half], join, empty), _tree(parts[half:], join, empty))


def choose(choices: Sequence[tuple[Expr, Expr]], otherwise: Expr) -> Expr:
    """Return the value beside the one condition that holds, or else `otherwise`. Choices with the same value are joined."""
    by_value: dict[int, tuple[Expr, list[Expr]]] = {}
    for condition, value in choices:
        by_value.setdefault(id(value), (value, []))[1].append(condition)
    rows = [(any_of(conditions), value) for value, conditions in by_value.values()]
    return mux(any_of(condition for condition, _ in rows), _chosen(rows), otherwise) if rows else otherwise


def _chosen(rows: Sequence[tuple[Expr, Expr]]) -> Expr:
    if len(rows) == 1:
        return rows[0][1]
    half = len(rows) // 2
    return mux(any_of(condition for condition, _ in rows[:half]), _chosen(rows[:half]), _chosen(rows[half:]))


def count_bits(values: int) -> int:
    """Return the width of a register that holds the numbers 0 to `values` - 1.

    >>> [count_bits(k) for k in (1, 2, 3, 4, 5)]
    [1, 1, 2, 2, 3]
    """
    return max((values - 1).bit_length(), 1)
