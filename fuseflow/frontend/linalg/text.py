"""MLIR as text: types, affine maps, numbers, texts and names, as its parser reads them, and the scalar operations in the body of a
`linalg.generic`, which `named_reader` reads as one expression again."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import assert_never

import numpy as np

from fuseflow.einsum.nodes import Access, Apply, Const, Expr, Index, Keep, Reduce, linear_form, walk
from fuseflow.errors import FrontendError
from fuseflow.frontend.linalg import module_io as names
from fuseflow.frontend.linalg.scalars import ARGUMENTS, COMPARISONS, COMPOSITIONS, OPERATIONS, ROUNDINGS
from fuseflow.tensors import DTYPES

UNSIGNED = {"u4": "i4", "u8": "i8"}
"""The types of elements for which MLIR's operations have no type of their own."""
_SYMBOL_NAME = re.compile(r"[A-Za-z_][\w$.]*", re.ASCII)
_LOOP_NAME = re.compile(r"(?!mod$|floordiv$|ceildiv$|symbol$)[A-Za-z_]\w*", re.ASCII)


def affine_map(loops: Sequence[str], indices: Sequence[Index]) -> str:
    """Return the affine map from loops to the coordinates of an operand."""
    written = {v: v if _LOOP_NAME.fullmatch(v) else f"d${n}" for n, v in enumerate(loops)}
    return f"affine_map<({', '.join(written.values())}) -> ({', '.join(_coordinate(i, written) for i in indices)})>"


def _coordinate(index: Index, written: Mapping[str, str]) -> str:
    if isinstance(index, str):
        return written[index]
    form = linear_form(index)
    terms = [f"{written[name]} * {factor}" if factor != 1 else written[name] for name, factor in form.terms]
    return " + ".join([*terms, *([str(form.offset)] if form.offset or not terms else [])])


def tensor_type(shape: Sequence[int], dtype: str, encoding: str = "") -> str:
    return f"tensor<{''.join(f'{size}x' for size in shape)}{element_type(dtype)}{encoding}>"


def element_type(dtype: str) -> str:
    return UNSIGNED.get(dtype, DTYPES[dtype].mlir)


def float_attribute(value: float, dtype: str) -> str:
    """Return a float as MLIR reads it, with its type. Floats that decimals cannot say are written in bits."""
    if math.isfinite(value):
        mantissa, _, exponent = repr(float(value)).partition("e")
        return f"{mantissa if '.' in mantissa else mantissa + '.0'}{f'e{exponent}' if exponent else ''} : {element_type(dtype)}"
    if dtype == "f64":
        return f"0x{struct.pack('>d', value).hex().upper()} : f64"
    return f"0x{struct.pack('>f', value).hex().upper()} : f32"


def quoted_list(words: Sequence[str]) -> str:
    return f"[{', '.join(map(quoted, words))}]"


def quoted(text: str) -> str:
    """Return a text as MLIR quotes it: beyond ASCII, and for quotation marks, it takes the bytes of UTF-8."""
    plain = (chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\{b:02X}" for b in text.encode())
    return f'"{"".join(plain)}"'


def symbol_name(name: str) -> str:
    return f"@{name}" if _SYMBOL_NAME.fullmatch(name) else f"@{quoted(name)}"


def parenthesized(types: Sequence[str]) -> str:
    return types[0] if len(types) == 1 else f"({', '.join(types)})"


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
            case Apply() if expr.op in ROUNDINGS:
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
        for row in DTYPES.values():
            if row.bits < DTYPES[self.dtype].bits and (row.rounding, tuple(parameters)) == (
                expr.op,
                tuple(map(Const, row.parameters)),
            ):
                mark = f" {{{names.OPERATOR} = {quoted(expr.op)}}}"
                rounded = self.new(f"arith.truncf {self.value(number)}{mark} : {self.dtype} to {row.mlir}")
                return self.new(f"arith.extf {rounded} : {row.mlir} to {self.dtype}")
        raise FrontendError("it rounds to a type that MLIR does not have", hint="round to f32, f16 or bf16")


def computed_in(expr: Expr, dtypes: Sequence[str], result: str) -> str:
    """Return the float, `f32` or `f64`, in which an expression on operands of `dtypes` is computed, so that no number that it
    reads or names has to be rounded."""
    wide = any(DTYPES[t].is_integer or t == "f64" for t in (*dtypes, result))
    return "f64" if wide or any(_needs_f64(node) for node in walk(expr)) else "f32"


def _needs_f64(node: Expr) -> bool:
    if isinstance(node, Const):
        return not math.isnan(node.value) and float(str(np.float32(node.value))) != node.value
    return isinstance(node, Apply) and node.op in ROUNDINGS


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
