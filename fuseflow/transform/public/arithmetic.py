"""Operators as arithmetic of the public operators: `add`, `sub`, `mul`, `div` of two streams, these and `max` of a stream and a
constant, and `exp`, `sin`, `cos`, `rsqrt`, `sigmoid`, `relu` of one stream.

Selections are sums and products of truth values, 0 and 1. A condition is a difference, scaled by 1e30 and cut off. An infinity
that is selected comes from 1 / sqrt(0). `log` and `erf` are approximations, as exact as numbers of 32 bits: a graph that writes
other types keeps them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from fuseflow.samml.nodes import Alu, Operand, Port
from fuseflow.transform.public.rewriter import GraphRewriter

Value: TypeAlias = Port | float
"""An operand: a stream, or a constant."""
LARGE = 1e30
"""A factor that makes every difference of two 32-bit floats 1 or more, except differences between the smallest floats."""


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """A builder of public operators under the name of the operator that they replace. `slots` are the operands of that one: the
    streams that it reads have their implicit values."""

    rewriter: GraphRewriter
    name: str
    slots: Mapping[Port, Operand]

    def apply(self, function: str, *operands: Value) -> Port:
        ports = tuple(x for x in operands if isinstance(x, Port))
        slots = tuple(self.slots.get(x, Operand(0.0)) if isinstance(x, Port) else Operand(x, constant=True) for x in operands)
        return self.rewriter.put(Alu(self.name, ports, function, slots))[0]

    def add(self, a: Value, b: Value) -> Port:
        return self.apply("add", a, b)

    def sub(self, a: Value, b: Value) -> Port:
        if isinstance(b, float):
            return self.add(a, -b)
        return self.add(self.mul(b, -1.0), a) if isinstance(a, float) else self.apply("sub", a, b)

    def mul(self, a: Value, b: Value) -> Port:
        return self.apply("mul", a, b)

    def div(self, a: Value, b: Value) -> Port:
        return self.apply("div", self.add(self.mul(b, 0.0), a) if isinstance(a, float) else a, b)

    def polynomial(self, x: Port, coefficients: Sequence[float]) -> Port:
        """Return c[0] x + c[1] x^2 + ..., by Horner's rule."""
        *others, value = coefficients
        total = self.mul(x, value)
        for c in reversed(others):
            total = self.mul(self.add(total, c), x)
        return total

    def is_zero(self, a: Port) -> Port:
        """Return 1 where a value is 0, and 0 elsewhere."""
        scaled = self.mul(a, LARGE)
        return self.truth(self.apply("relu", self.sub(1.0, self.mul(scaled, scaled))))

    def positive(self, a: Port) -> Port:
        """Return 1 where a value is above 0, and 0 elsewhere."""
        return self.negated(self.apply("relu", self.sub(1.0, self.mul(self.apply("relu", a), LARGE))))

    def negated(self, a: Port) -> Port:
        """Return 1 - a, for truth values."""
        return self.truth(self.sub(1.0, a))

    def truth(self, a: Port) -> Port:
        self.rewriter.truth_values.add(a)
        return a

    def minus_infinity_at_0(self, a: Port) -> Port:
        """Return -inf where a truth value is 0, and a number that changes no sum of 32-bit floats where it is 1."""
        return self.mul(self.apply("rsqrt", a), -1.0 / LARGE)


def _max(a: Arithmetic, x: Value, y: Value) -> Port | None:
    """Return the maximum of a stream and a constant. None for two streams: y + relu(x - y) would round, and lose infinities."""
    if isinstance(x, Port) and isinstance(y, Port):
        return None
    return a.apply("max", x, y)


def _min(a: Arithmetic, x: Value, y: Value) -> Port | None:
    if isinstance(x, Port) and isinstance(y, Port):
        return None
    minus = [-v if isinstance(v, float) else a.mul(v, -1.0) for v in (x, y)]
    return a.mul(a.apply("max", *minus), -1.0)


def _sqrt(a: Arithmetic, x: Port) -> Port:
    inverse = a.apply("rsqrt", x)
    return a.apply("rsqrt", a.mul(inverse, inverse))


def _pow(a: Arithmetic, x: Value, y: Value) -> Port | None:
    if isinstance(x, float) or isinstance(y, Port):
        return None
    match y:
        case 0.5:
            return _sqrt(a, x)
        case -0.5:
            return a.apply("rsqrt", x)
        case -1.0:
            return a.div(1.0, x)
        case 2.0:
            return a.mul(x, x)
        case 3.0:
            return a.mul(a.mul(x, x), x)
        case 4.0:
            square = a.mul(x, x)
            return a.mul(square, square)
        case _:
            return None


def _eq(a: Arithmetic, x: Value, y: Value) -> Port:
    return a.is_zero(a.sub(x, y))


def _gt(a: Arithmetic, x: Value, y: Value) -> Port:
    return a.positive(a.sub(x, y))


def _where(a: Arithmetic, condition: Value, x: Value, y: Value) -> Port | None:
    if isinstance(condition, float) or math.inf in (x, y):
        return None
    true = condition if condition in a.rewriter.truth_values else a.negated(a.is_zero(condition))
    if x == -math.inf and isinstance(y, Port):
        return a.add(y, a.minus_infinity_at_0(a.negated(true)))
    if y == -math.inf and isinstance(x, Port):
        return a.add(x, a.minus_infinity_at_0(true))
    if -math.inf in (x, y):
        return None
    return a.add(a.mul(true, x), a.mul(a.negated(true), y))


ROOTS = 8
"""The number of times that `log` takes a reciprocal root: after these, all 32-bit floats are near 1."""


def _log(a: Arithmetic, x: Port) -> Port:
    """Return the logarithm: of a root r near 1 by (r - 1) / (r + 1), times the power of the root; then three steps of Halley's
    iteration on exp; and -inf where x is 0. The exponents are limited so that exp neither overflows nor vanishes."""
    root = x
    for _ in range(ROOTS):
        root = a.apply("rsqrt", root)
    log = a.mul(a.div(a.sub(root, 1.0), a.add(root, 1.0)), 2.0 * 2**ROOTS)
    for _ in range(3):
        log = a.apply("max", log, -87.0)
        exponential = a.apply("exp", log)
        log = a.add(log, a.mul(a.div(a.sub(x, exponential), a.add(x, exponential)), 2.0))
    return a.add(log, a.minus_infinity_at_0(x))


ERF_SCALE = 0.3275911
ERF_COEFFICIENTS = (0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429)
"""Abramowitz and Stegun, Handbook of Mathematical Functions, 7.1.26: the error is below 1.5e-7, of values up to 1."""


def _erf(a: Arithmetic, x: Port) -> Port:
    """Return erf of the positive part of x minus erf of the negative part, where t = 1 / (1 + p x) and 1 - erf(x) = polynomial(t)
    exp(-x^2)."""

    def complement(part: Port) -> Port:
        scaled = a.add(a.mul(part, ERF_SCALE), 1.0)
        t = a.apply("rsqrt", a.mul(scaled, scaled))
        return a.mul(a.polynomial(t, ERF_COEFFICIENTS), a.apply("exp", a.mul(a.mul(part, part), -1.0)))

    return a.sub(complement(a.apply("relu", a.mul(x, -1.0))), complement(a.apply("relu", x)))


FORMS: Mapping[str, Callable[..., Port | None]] = {
    "copy": lambda a, x: a.add(x, 0.0),
    "neg": lambda a, x: a.mul(x, -1.0),
    "abs": lambda a, x: a.add(a.apply("relu", x), a.apply("relu", a.mul(x, -1.0))),
    "sqrt": _sqrt,
    "tanh": lambda a, x: a.sub(a.mul(a.apply("sigmoid", a.mul(x, 2.0)), 2.0), 1.0),
    "sub": Arithmetic.sub,
    "div": Arithmetic.div,
    "max": _max,
    "min": _min,
    "pow": _pow,
    "eq": _eq,
    "ne": lambda a, x, y: a.negated(_eq(a, x, y)),
    "gt": _gt,
    "lt": lambda a, x, y: _gt(a, y, x),
    "le": lambda a, x, y: a.negated(_gt(a, x, y)),
    "ge": lambda a, x, y: a.negated(_gt(a, y, x)),
    "where": _where,
}
"""The forms of operators. Each is called with the operands, and returns None for operands for which it has no form."""
SELECTIONS = frozenset(("eq", "ne", "gt", "lt", "le", "ge", "where"))
"""The operators whose forms are right for finite values alone: an infinity or NaN that is not selected turns the selected value
to NaN."""
FORMS_OF_32_BITS: Mapping[str, Callable[..., Port | None]] = {"log": _log, "erf": _erf}
"""The forms that are as exact as numbers of 32 bits."""


def public_alu(w: GraphRewriter, node: Alu) -> Sequence[Port] | None:
    """Return an operator that the public schema lacks, made of operators that it has. None if it needs no form or has none."""
    streams = iter(node.inputs)
    operands: list[Value] = [slot.value if slot.constant else next(streams) for slot in node.operands]
    if any(w.facts(port).type.tile for port in node.inputs) or _is_public(node, operands):
        return None
    form = FORMS.get(node.function)
    if form is None and all(w.graph.declared[name].dtype == "f32" for name in w.graph.outputs):
        form = FORMS_OF_32_BITS.get(node.function)
    slots = dict(zip(node.inputs, (slot for slot in node.operands if not slot.constant), strict=True))
    if form is None or any(w.facts(port).nullable and slot.value != 0 for port, slot in slots.items()):
        return None
    result = form(Arithmetic(w, node.name, {p: replace(s, value=0.0) for p, s in slots.items()}), *operands)
    return None if result is None else (result,)


def _is_public(node: Alu, operands: Sequence[Value]) -> bool:
    """Return whether the public schema has this quotient or difference of these operands, or this maximum with a constant."""
    if node.function in ("div", "sub"):
        return isinstance(operands[0], Port) and (node.function == "div" or isinstance(operands[1], Port))
    return node.function == "max" and any(isinstance(x, float) for x in operands)
