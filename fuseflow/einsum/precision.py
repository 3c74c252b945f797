"""The precision in which the expressions of a program compute, and the roundings to 32-bit floats that follow from it.

    H[i] = sum(k) floor(A[i, k] / 0.1)

Here the quotient is rounded to a 32-bit float if `A` has such elements, as PyTorch does it, and 0.1 is the nearest one. A sum is rounded
at its end, and not term by term. In a graph this holds for each loop of the sum: the sum of an inner loop is a 32-bit float, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, assert_never

from fuseflow.einsum.nodes import Access, Apply, Const, Einsum, Expr, Keep, Reduce
from fuseflow.float32.precision import computing_precision, precision_of_number, result_precision
from fuseflow.float32.words import rounded as rounded_number
from fuseflow.ops import Precision, operator, reducer
from fuseflow.tensors.dtypes import DTYPES

_F32 = DTYPES["f32"]
_PARAMETERS = tuple(map(Const, _F32.parameters))


class Valued(NamedTuple):
    """An expression and the precision of its values."""

    expr: Expr
    precision: Precision


def expression_precision(node: Expr, precisions: Mapping[str, Precision]) -> Precision:
    """Return the precision of the values of an expression, given the precisions of the tensors that it reads."""
    match node:
        case Const():
            return precision_of_number(node.value)
        case Access():
            return precisions[node.tensor]
        case Keep() | Reduce():
            return expression_precision(node.body, precisions)
        case Apply():
            return operator_precisions(node.op, [Valued(arg, expression_precision(arg, precisions)) for arg in node.args])[1]
        case unknown:
            assert_never(unknown)


def operator_precisions(op: str, args: Sequence[Valued]) -> tuple[Precision, Precision]:
    """Return the precision in which an operator computes, and the precision of its result."""
    operands = [arg.precision for arg in args]
    constants = [arg.expr.value if isinstance(arg.expr, Const) else None for arg in args]
    return computing_precision(op, operands, constants), result_precision(op, operands, constants)


def with_roundings(einsum: Einsum, precisions: Mapping[str, Precision]) -> Einsum:
    """Return a statement that has its roundings to 32-bit floats as operators, so that 64-bit floats compute what it means.

    >>> from fuseflow.einsum.parse import parse
    >>> program = parse("tensor A[4]\\n B[i] = A[i] / 0.5\\n output B")
    >>> with_roundings(program.einsums[0], {"A": "f32"}).body.op
    'nearest'
    """
    return replace(einsum, body=_rounded(einsum.body, precisions).expr)


def without_rounding(node: Expr) -> Expr:
    """Return the operand that an expression rounds to a 32-bit float, or the expression if it does not round."""
    return node.args[0] if isinstance(node, Apply) and node.op == _F32.rounding and node.args[1:] == _PARAMETERS else node


def _rounded(node: Expr, precisions: Mapping[str, Precision]) -> Valued:
    """Return an expression with its roundings."""
    match node:
        case Const():
            return Valued(node, precision_of_number(node.value))
        case Access():
            return Valued(node, precisions[node.tensor])
        case Keep():
            body = _rounded(node.body, precisions)
            return Valued(replace(node, body=body.expr), body.precision)
        case Reduce():
            body = _rounded(node.body, precisions)
            fold: Expr = replace(node, body=body.expr)
            return Valued(_to_f32(fold) if reducer(node.op).rounds and body.precision == "f32" else fold, body.precision)
        case Apply():
            return _rounded_operator(node, precisions)
        case unknown:
            assert_never(unknown)


def _rounded_operator(node: Apply, precisions: Mapping[str, Precision]) -> Valued:
    args = [_rounded(arg, precisions) for arg in node.args]
    computing, result = operator_precisions(node.op, args)
    exprs = [arg.expr for arg in args]
    if computing == "f32":
        exprs = [Const(rounded_number(expr.value)) if isinstance(expr, Const) else expr for expr in exprs]
    applied = replace(node, args=tuple(exprs))
    is_rounded = computing == "f32" and operator(node.op).rounds
    return Valued(_to_f32(applied) if is_rounded else applied, result)


def _to_f32(node: Expr) -> Expr:
    return Apply(_F32.rounding, (node, *_PARAMETERS))
