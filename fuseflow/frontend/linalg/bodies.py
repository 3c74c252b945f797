"""Writing of the scalar operations in the body of a `linalg.generic`, which `named_linalg` reads as one expression again."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import assert_never

import numpy as np

from fuseflow.einsum.nodes import Access, Apply, Const, Expr, Keep, Reduce, walk
from fuseflow.errors import FrontendError
from fuseflow.frontend.linalg import modules as names
from fuseflow.frontend.linalg.operators import ARGUMENTS, COMPARISONS, COMPOSITIONS, OPERATIONS, ROUNDING
from fuseflow.frontend.linalg.text import UNSIGNED, element_type, float_attribute, quoted
from fuseflow.tensors import DTYPES


@dataclass(slots=True)
class ScalarBody:
    """The scalar operations of a generic, on numbers of the type `dtype`. `elements` are the numbers that it reads, with their types."""

    new: Callable[[str], str]
    elements: Mapping[Expr, tuple[str, str]]
    dtype: str
    known: dict[Expr, str] = field(default_factory=dict)

    def value(self, expr: Expr) -> str:
        """Write the operations of an expression, and return its value."""
        if expr not in self.known:
            self.known[expr] = self._value(expr)
        return self.known[expr]

    def _value(self, expr: Expr) -> str:
        match expr:
            case Access() | Reduce():
                return converted(self.new, *self.elements[expr], self.dtype)
            case Const():
                return self._constant(expr.value)
            case Apply() if expr.op == ROUNDING:
                return self._rounding(expr)
            case Apply() if expr.op in COMPOSITIONS:
                return self._composed(COMPOSITIONS[expr.op], tuple(map(self.value, expr.args)), expr.op)
            case Apply():
                return self.operation(expr.op, tuple(map(self.value, expr.args)))
            case Keep():
                raise FrontendError("Linalg keeps no part of a result", hint="`--emit einsum-mlir` has a form for every program")
            case unknown:
                assert_never(unknown)

    def operation(self, op: str, operands: Sequence[str], mark: str = "") -> str:
        """Write the operation of an operator, and return its value. `mark` names the operator that the operation completes."""
        attributes = f" {{{names.OPERATOR} = {quoted(mark)}}}" if mark else ""
        if op in COMPARISONS:
            return self.new(f"arith.uitofp {self._comparison(op, operands)}{attributes} : i1 to {self.dtype}")
        return self.new(f"{OPERATIONS[op]} {', '.join(operands)}{attributes} : {self.dtype}")

    def _comparison(self, op: str, operands: Sequence[str]) -> str:
        return self.new(f"arith.cmpf {COMPARISONS[op]}, {', '.join(operands)} : {self.dtype}")

    def _constant(self, number: float) -> str:
        return self.new(f"arith.constant {float_attribute(number, self.dtype)}")

    def _composed(self, pattern: Expr, arguments: Sequence[str], mark: str = "") -> str:
        """Write the operations of a composition, and return its value. The last one has the name `mark` of the operator."""
        attributes = f" {{{names.OPERATOR} = {quoted(mark)}}}" if mark else ""
        match pattern:
            case Access():
                return arguments[ARGUMENTS.index(pattern)]
            case Const():
                return self._constant(pattern.value)
            case Apply("where", (Apply() as test, *choices)):
                condition = self._comparison(test.op, [self._composed(arg, arguments) for arg in test.args])
                first, second = (self._composed(choice, arguments) for choice in choices)
                return self.new(f"arith.select {condition}, {first}, {second}{attributes} : {self.dtype}")
            case Apply("saturate", (number, *_)):
                return self.new(f"math.roundeven {self._composed(number, arguments)}{attributes} : {self.dtype}")
            case Apply():
                return self.operation(pattern.op, [self._composed(arg, arguments) for arg in pattern.args], mark)
        raise AssertionError(pattern)

    def _rounding(self, expr: Apply) -> str:
        """Write the rounding to a type of floats with fewer bits, and the way back."""
        number, *parameters = expr.args
        narrower = [row.name for row in DTYPES.values() if row.rounding == ROUNDING and row.bits < DTYPES[self.dtype].bits]
        for name in narrower:
            if tuple(parameters) == tuple(map(Const, DTYPES[name].parameters)):
                mark = f" {{{names.OPERATOR} = {quoted(ROUNDING)}}}"
                rounded = self.new(f"arith.truncf {self.value(number)}{mark} : {self.dtype} to {name}")
                return self.new(f"arith.extf {rounded} : {name} to {self.dtype}")
        raise FrontendError("it rounds to a type that MLIR does not have", hint="round to f32, f16 or bf16")


def computed_in(expr: Expr, dtypes: Sequence[str], result: str) -> str:
    """Return the float, `f32` or `f64`, in which an expression on operands of `dtypes` is computed, so that no number that it
    reads or names has to be rounded."""
    wide = any(DTYPES[t].is_integer or t == "f64" for t in (*dtypes, result))
    return "f64" if wide or any(_needs_f64(node) for node in walk(expr)) else "f32"


def _needs_f64(node: Expr) -> bool:
    match node:
        case Const():
            return not math.isnan(node.value) and float(str(np.float32(node.value))) != node.value
        case Apply():
            return node.op == ROUNDING
        case Access() | Reduce() | Keep():
            return False
        case unknown:
            assert_never(unknown)


def converted(new: Callable[[str], str], value: str, source: str, target: str) -> str:
    """Write the conversion of a number between two types with `new`, which writes an operation, and return the result."""
    a, b = DTYPES[source], DTYPES[target]
    if source == target:
        return value
    match a.is_integer, b.is_integer:
        case True, False:
            operation = "arith.uitofp" if source in UNSIGNED else "arith.sitofp"
        case False, True:
            operation = "arith.fptoui" if target in UNSIGNED else "arith.fptosi"
        case False, False:
            operation = "arith.extf" if a.bits < b.bits else "arith.truncf"
        case _:  # a body computes in floats, so that one of the two is a float
            raise AssertionError(source, target)
    return new(f"{operation} {value} : {element_type(source)} to {element_type(target)}")
