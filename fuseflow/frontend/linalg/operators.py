"""Operators of the table as scalar operations of MLIR, for programs that are written as Linalg and read again.

Most operators are one operation. An operator that MLIR lacks is a few operations, and the last has its name as an attribute:

    %1 = arith.cmpf une, %c, %zero : f32
    %2 = arith.select %1, %a, %b {samml.operator = "where"} : f32
"""

from __future__ import annotations

import math

from fuseflow.einsum.nodes import Access, Apply, Const, Expr, children

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
