"""The scalar body of a Linalg operation as an Einsum expression.

In programs that are written as Linalg and read again, most operators are one operation of MLIR. An operator that MLIR lacks is a few
operations, and the last has its name as an attribute:

    %1 = arith.cmpf une, %c, %zero : f32
    %2 = arith.select %1, %a, %b {samml.operator = "where"} : f32
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from torch_mlir import ir

from fuseflow.einsum.nodes import Access, Apply, Const, Expr, children
from fuseflow.einsum.rounding import round_to
from fuseflow.errors import FrontendError
from fuseflow.float32.words import rounded
from fuseflow.frontend.hints import HINT_OUTSIDE
from fuseflow.frontend.linalg.emitter import simplify_apply
from fuseflow.frontend.linalg.unit_dimensions import squeeze_shape
from fuseflow.tensors.dtypes import DTYPES, of_mlir

OPERATIONS: dict[str, str] = {
    "add": "arith.addf",
    "sub": "arith.subf",
    "mul": "arith.mulf",
    "div": "arith.divf",
    "max": "arith.maximumf",
    "min": "arith.minimumf",
    "neg": "arith.negf",
    "abs": "math.absf",
    "pow": "math.powf",
    **{name: f"math.{name}" for name in ("exp", "log", "sqrt", "rsqrt", "sin", "cos", "tanh", "erf")},
}
"""The operation of each operator that MLIR has."""
OPERATORS = {operation: name for name, operation in OPERATIONS.items()}
"""The operator of each of these operations."""

COMPARISONS = {"eq": "oeq", "ne": "une", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge"}
"""The predicate of `arith.cmpf` of each comparison."""
PREDICATES = {1: "eq", 13: "ne", 4: "lt", 5: "le", 2: "gt", 3: "ge"}
"""The comparison of each of these predicates, by its number in MLIR."""

COMBINERS = {"sum": "add", "prod": "mul", "max": "max", "min": "min"}
"""The operator that each reduction folds with."""
REDUCTIONS = {operator: name for name, operator in COMBINERS.items()}
"""The reduction that folds with each of these operators."""
ACCUMULATOR = Access("%accumulator", ())
"""The access that stands for the result so far in the body of a reduction."""

CONVERSIONS = ("arith.extf", "arith.truncf", "arith.sitofp", "arith.uitofp", "arith.fptosi", "arith.fptoui")
"""Operations that carry a number into another type. Without a name of an operator they have no meaning in a program, whose tensors have
types and whose operators have none."""

ARGUMENTS = tuple(Access(f"%{n}", ()) for n in range(3))
"""The accesses that stand for the operands of an operator in its composition."""
_X, _Y, _Z = ARGUMENTS
COMPOSITIONS: dict[str, Expr] = {
    "where": Apply("where", (Apply("ne", (_X, Const(0.0))), _Y, _Z)),
    "relu": Apply("max", (_X, Const(0.0))),
    "copy": Apply("sub", (_X, Const(0.0))),
    "sigmoid": Apply("div", (Const(1.0), Apply("add", (Const(1.0), Apply("exp", (Apply("neg", (_X,)),)))))),
    "threshold": Apply("where", (Apply("lt", (Apply("abs", (_X,)), _Y)), Const(0.0), _X)),
    "saturate": Apply("saturate", (Apply("min", (Apply("max", (_X, _Y)), _Z)), Const(-math.inf), Const(math.inf))),
}
"""How the other operators are composed. In a composition, `where` is `arith.select`, and `saturate` is `math.roundeven`."""

ROUNDINGS = ("nearest", "nearest_finite")
"""The operators that are `arith.truncf` to a type, and back. A number beyond the type is NaN in MLIR where `nearest_finite` saturates."""


def operands(name: str, composed: Expr) -> tuple[Expr, ...] | None:
    """Return the operands of the operator `name` in the expression `composed`. None if it is no composition of that operator.

    >>> operands("relu", Apply("max", (Access("x", ("i",)), Const(0.0))))
    (Access(tensor='x', indices=('i',)),)
    """
    bindings: dict[Expr, Expr] = {}
    if name not in COMPOSITIONS or not _matches(COMPOSITIONS[name], composed, bindings):
        return None
    return tuple(bindings[argument] for argument in ARGUMENTS if argument in bindings)


def _matches(pattern: Expr, expr: Expr, bindings: dict[Expr, Expr]) -> bool:
    """Return whether an expression is a pattern, and record in `bindings` which operand each argument of the pattern is."""
    match pattern, expr:
        case (Access(), _):
            return bindings.setdefault(pattern, expr) == expr
        case (Apply(), Apply()) if (pattern.op, len(pattern.args)) == (expr.op, len(expr.args)):
            return all(_matches(p, e, bindings) for p, e in zip(children(pattern), children(expr), strict=True))
    return pattern == expr


_SIMPLE = OPERATORS | {
    "arith.addi": "add",
    "arith.subi": "sub",
    "arith.muli": "mul",
    **dict.fromkeys(("arith.maxnumf", "arith.maxsi"), "max"),
    **dict.fromkeys(("arith.minnumf", "arith.minsi"), "min"),
    "arith.select": "where",
    "math.fpowi": "pow",
    "math.absi": "abs",
}
_CONVERSIONS = ("arith.extf", "arith.sitofp", "arith.uitofp", "arith.extsi", "arith.extui")
"""Conversions of type that keep the number."""
_TO_INTEGERS = {"arith.fptosi": True, "arith.fptoui": True, "arith.trunci": False}
"""Conversions to integers, and whether they leave a fraction out. Numbers are taken to be in the range of the integers."""

_FLOAT_PREDICATES = PREDICATES | {8: "eq", 9: "gt", 10: "ge", 11: "lt", 12: "le"}
"""The comparison of each predicate of `arith.cmpf`. Ordered and unordered predicates are the same here, since they differ on NaN only."""
_ORDERED_AND_UNEQUAL = 6
"""The predicate `one` of `arith.cmpf`, with which a remainder is compared with 0."""
_INTEGER_PREDICATES = ("eq", "ne", "lt", "le", "gt", "ge", "lt", "le", "gt", "ge")

_ROUNDINGS = ("math.floor", "math.ceil", "math.roundeven", "math.trunc")


def _rounded(x: Expr) -> Expr:
    """Return the nearest integer, ties to even."""
    return simplify_apply("saturate", x, Const(-math.inf), Const(math.inf))


def _floor(x: Expr) -> Expr:
    return simplify_apply("sub", _rounded(x), simplify_apply("gt", _rounded(x), x))


def _ceil(x: Expr) -> Expr:
    return simplify_apply("add", _rounded(x), simplify_apply("lt", _rounded(x), x))


def _truncated(x: Expr) -> Expr:
    return simplify_apply("where", simplify_apply("lt", x, Const(0.0)), _ceil(x), _floor(x))


_DERIVED: dict[str, Callable[[Expr], Expr]] = {
    "math.exp2": lambda x: simplify_apply("pow", Const(2.0), x),
    "math.expm1": lambda x: simplify_apply("sub", simplify_apply("exp", x), Const(1.0)),
    "math.log1p": lambda x: simplify_apply("log", simplify_apply("add", x, Const(1.0))),
    "math.floor": _floor,
    "math.ceil": _ceil,
    "math.roundeven": _rounded,
    "math.trunc": _truncated,
}
_LOGARITHMS = {"math.log2": 1.4426950408889634, "math.log10": 0.4342944819032518}
"""Logarithms of another base, with the factor from the natural one."""


class ScalarEvaluator:
    """An evaluator of scalar SSA values. It works on demand, so that it reads only the operations that a used result needs.

    `arguments` has the expressions of block arguments; the expressions of all other values follow from them. `element` computes the element
    of a tensor of one element. `extracted` computes the element that a `tensor.extract` reads at coordinates of loops.
    """

    def __init__(
        self, arguments: dict[Any, Expr], element: Callable[[Any], Expr], extracted: Callable[[Any], Expr] | None = None
    ) -> None:
        self._expressions = dict(arguments)
        self._element = element
        self._extracted = extracted

    def value(self, ssa: Any) -> Expr:
        """Return the expression of an SSA value. Raise `FrontendError` if it has no Einsum form."""
        if ssa not in self._expressions:
            owner = ssa.owner
            if isinstance(owner, ir.Block):
                raise FrontendError("a scalar argument of the function is used as a number", hint="make it a tensor")
            self._expressions[ssa] = self._result(owner.operation if hasattr(owner, "operation") else owner)
        expression: Expr = self._expressions[ssa]
        return expression

    def _result(self, op: Any) -> Expr:
        name, type = op.name, str(op.results[0].type)
        if name == "arith.constant":
            return constant_value(op.attributes["value"])
        if name == "tensor.extract" and len(squeeze_shape(tuple(op.operands[0].type.shape))) == 0:
            return self._element(op.operands[0])
        if name == "tensor.extract" and self._extracted is not None:
            return self._extracted(op)
        operands = [self.value(operand) for operand in op.operands] if name in _READABLE else []
        if name in _CONVERSIONS:
            return operands[0] if type != "f64" or _is_compared(op.results[0]) else _to_float(operands[0])
        if name == "arith.truncf":
            return _narrowed(operands[0], of_mlir(type))
        if name in _TO_INTEGERS and type in ("i32", "i64"):
            return _truncated(operands[0]) if _TO_INTEGERS[name] and not _is_whole(op.operands[0]) else operands[0]
        if name in _DERIVED:
            return _DERIVED[name](operands[0])
        if name in _LOGARITHMS:  # in 64 bits, so that one of a power of the base is a whole number
            scaled = simplify_apply("mul", simplify_apply("log", _to_float(operands[0])), Const(_LOGARITHMS[name]))
            return scaled if type == "f64" else _to_float(scaled, "f32")
        if name in ("arith.cmpf", "arith.cmpi"):
            return self._compare(name, ir.IntegerAttr(op.attributes["predicate"]).value, operands)
        if name in _BOOLEAN and type == "i1":
            return _BOOLEAN[name](*operands)
        if name == "arith.select" and isinstance(op.operands[0].owner, ir.Block):
            return _chosen(*operands)
        if name == "arith.remf" and type == "f64" and not _is_power_of_two(operands[1]):
            raise FrontendError("a remainder of 64-bit floats has no exact Einsum form", hint="convert its operands to float32")
        if name in _SIMPLE:
            return simplify_apply(_SIMPLE[name], *operands)
        if name in _DIVISIONS:
            result = _DIVISIONS[name](*operands)  # in 64 bits
            return result if type == "f64" or type.startswith("i") else _to_float(result, "f32")
        if name in ("linalg.index", "arith.index_cast"):
            raise FrontendError("a loop index is used as a value", hint="pass the result as a tensor (a buffer)")
        raise FrontendError(f"the scalar operation `{name}` has no Einsum form", hint=HINT_OUTSIDE)

    def _compare(self, name: str, predicate: int, operands: list[Expr]) -> Expr:
        if name == "arith.cmpi":
            return simplify_apply(_INTEGER_PREDICATES[predicate], *operands)
        if predicate == _ORDERED_AND_UNEQUAL:  # others that differ on NaN alone belong to a maximum or a minimum
            return simplify_apply("gt", simplify_apply("abs", simplify_apply("sub", *operands)), Const(0.0))
        if predicate not in _FLOAT_PREDICATES:
            raise FrontendError("a test for NaN has no Einsum form", hint=HINT_OUTSIDE)
        return simplify_apply(_FLOAT_PREDICATES[predicate], *operands)


def _xor(a: Expr, b: Expr) -> Expr:
    """Return the exclusive or of two truth values. `x xor true` is `x == 0`."""
    return simplify_apply("eq", a, Const(0.0)) if b == Const(1.0) else simplify_apply("ne", a, b)


_BOOLEAN: dict[str, Callable[[Expr, Expr], Expr]] = {
    "arith.andi": lambda a, b: simplify_apply("mul", a, b),
    "arith.ori": lambda a, b: simplify_apply("max", a, b),
    "arith.xori": _xor,
}


def _chosen(condition: Expr, a: Expr, b: Expr) -> Expr:
    """Return the choice of `a` where a comparison of the user holds, else `b`. It may become a maximum or a minimum only if it
    returns NaN for NaN, for which no comparison is true: if `a` is a constant and `b` is not."""
    if isinstance(condition, Const) or (isinstance(a, Const) and not isinstance(b, Const)):
        return simplify_apply("where", condition, a, b)
    return Apply("where", (condition, a, b))


def _narrowed(x: Expr, dtype: str) -> Expr:
    """Return a float as a float of a type with fewer bits. PyTorch leaves out the sign of a power of 2, and has none for 0."""
    if dtype == "e8m0":
        x = simplify_apply("max", simplify_apply("abs", x), Const(2.0**-127))
    return round_to(x, dtype) if DTYPES[dtype].narrow else _to_float(x, dtype)


def _to_float(x: Expr, dtype: str = "f64") -> Expr:
    """Return a number as a float of this type. A constant stays as it is written."""
    row = DTYPES[dtype]
    return x if isinstance(x, Const) else Apply(row.rounding, (x, *map(Const, row.parameters)))


def _is_compared(value: Any) -> bool:
    """Return whether a number is compared with others and nothing else, for which torch-mlir makes it a number of 64 bits.
    PyTorch rounds the other number to the type of the tensor, and compares in that type."""
    users = [use.owner.name for use in value.uses]
    return bool(users) and all(user == "arith.cmpf" for user in users)


def _is_whole(value: Any) -> bool:
    """Return whether a number has no fraction, because the operation that computes it is a rounding."""
    return not isinstance(value.owner, ir.Block) and getattr(value.owner, "operation", value.owner).name in _ROUNDINGS


def _is_power_of_two(x: Expr) -> bool:
    return isinstance(x, Const) and abs(math.frexp(x.value)[0]) == 0.5


def _remainder_of_floats(x: Expr, y: Expr) -> Expr:
    """Return the remainder of x, with its sign, after subtracting the largest multiple of y. In 64 bits it is exact for 32-bit
    floats whose quotient is below 2^29: the quotient is then no integer by rounding, and its product with y has 53 digits."""
    magnitude = Apply("abs", (_to_float(x),))
    divisor = Const(abs(rounded(y.value))) if isinstance(y, Const) else Apply("abs", (_to_float(y),))
    whole = _to_float(_floor(Apply("div", (magnitude, divisor))))
    left: Expr = Apply("sub", (magnitude, Apply("mul", (whole, divisor))))  # NaN of infinite ones, where -inf would stay -inf
    left = Apply("where", (Apply("gt", (divisor, Const(0.0))), left, Const(math.nan)))
    return Apply("where", (Apply("lt", (x, Const(0.0))), Apply("neg", (left,)), left))


def _quotient_of_integers(a: Expr, b: Expr) -> Expr:
    """Return the quotient of integers without its fraction. It is exact below 2^52."""
    return _truncated(Apply("div", (_to_float(a), b)))


_DIVISIONS: dict[str, Callable[[Expr, Expr], Expr]] = {
    "arith.remf": _remainder_of_floats,
    "arith.remsi": lambda a, b: Apply("sub", (a, Apply("mul", (_quotient_of_integers(a, b), b)))),
    "arith.divsi": _quotient_of_integers,
}
_READABLE = frozenset(
    (
        *_SIMPLE,
        *_DIVISIONS,
        *_CONVERSIONS,
        *_TO_INTEGERS,
        "arith.truncf",
        *_DERIVED,
        *_LOGARITHMS,
        *_BOOLEAN,
        "arith.cmpf",
        "arith.cmpi",
    )
)


def constant_value(attribute: Any) -> Expr:
    """Return the number in the `value` of an `arith.constant`. Raise `FrontendError` for a tensor whose elements are not all equal."""
    if isinstance(attribute, ir.DenseElementsAttr):
        if not attribute.is_splat:
            hint = "make it a buffer of the module or an input"
            raise FrontendError("a constant tensor in the code has no Einsum form", hint=hint)
        attribute = attribute.get_splat_value()
    match attribute:
        case ir.BoolAttr():
            return Const(float(attribute.value))
        case ir.IntegerAttr():
            return Const(float(abs(attribute.value) if str(attribute.type) == "i1" else attribute.value))
        case ir.FloatAttr() if str(attribute.type) == "f32":
            return Const(float(str(np.float32(attribute.value))))  # 0.1, not 0.10000000149
        case ir.FloatAttr():
            return Const(float(attribute.value))
    hint = "make it a buffer of the module or an input"
    raise FrontendError(f"the constant {str(attribute)[:60]} has no Einsum form", hint=hint)
