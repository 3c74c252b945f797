"""The precision in which the expressions of a program compute, and the roundings that follow from it.

    H[i] = sum(k) floor(A[i, k] / 0.1)

Here the quotient is rounded to a 32-bit float if `A` has such elements, as PyTorch does it, and 0.1 is the nearest one. A sum is rounded
at its end, and not term by term. In a graph this holds for each loop of the sum: the sum of an inner loop is a 32-bit float, too.

The value of a statement is rounded to the type of its result, where it is written. Where a reader in the same region takes it from the
graph, nothing is written, so the statement has the rounding as an operator: `H[i] = relu(X[i])`, declared `i8`, is
`H[i] = saturate(relu(X[i]), -128, 127)`. So the values of a program do not depend on fusion.

A float of 64 bits becomes one of 32 in the same way. The other way round, operands are made floats of 64 bits before they meet, by a
rounding that changes no number: `nearest(X[i], 2^-52, 2^-1074)`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeGuard, assert_never

from fuseflow.einsum.nodes import Access, Apply, Const, Einsum, Expr, Keep, Program, Reduce, TensorType
from fuseflow.float32.operator_precision import computing_precision, precision_of_number, result_precision
from fuseflow.float32.words import rounded as rounded_number
from fuseflow.ops import Precision, operator, reducer
from fuseflow.tensors.dtypes import DTYPES


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
        case Keep() if node.marks:
            return "integer"
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


def round_to(body: Expr, dtype: str) -> Expr:
    """Return an expression rounded to a narrow type. An expression that is rounded to it already stays as it is. So does every
    expression if the type is wide."""
    return _rounded_to(body, dtype) if DTYPES[dtype].narrow else body


def rounds(body: Expr, dtype: str) -> TypeGuard[Apply]:
    """Return whether an expression rounds to a type."""
    row = DTYPES[dtype]
    return isinstance(body, Apply) and body.op == row.rounding and body.args[1:] == tuple(map(Const, row.parameters))


def _rounded_to(body: Expr, dtype: str) -> Expr:
    row = DTYPES[dtype]
    return body if rounds(body, dtype) else Apply(row.rounding, (body, *map(Const, row.parameters)))


def round_results(program: Program, types: Mapping[str, TensorType]) -> Program:
    """Return the program with every rounding as an operator. `types` are the types of all tensors."""
    precisions = {t.name: DTYPES[types[t.name].dtype].precision for t in program.inputs}
    einsums = list[Einsum]()
    for einsum in program.einsums:
        einsums.append(converted(einsum, types, precisions))
        precisions[einsum.name] = expression_precision(einsums[-1].body, precisions)
    return replace(program, einsums=tuple(einsums)) if einsums != list(program.einsums) else program


def rounded(einsum: Einsum, types: Mapping[str, TensorType]) -> Einsum:
    """Return a statement that rounds its result to a narrow type itself. A view of a tensor of the same type is rounded already."""
    if einsum.name not in types or not DTYPES[types[einsum.name].dtype].narrow:
        return einsum
    dtype, body = types[einsum.name].dtype, einsum.body
    is_same = isinstance(body, Access) and body.tensor in types and types[body.tensor].dtype == dtype
    return einsum if is_same else _with_result(einsum, dtype)


def _with_result(einsum: Einsum, dtype: str) -> Einsum:
    """Return a statement that rounds its result to a type. A `keep` compares rounded values."""
    body = einsum.body
    if isinstance(body, Keep):
        return replace(einsum, body=replace(body, body=_rounded_to(body.body, dtype)))
    return replace(einsum, body=_rounded_to(body, dtype))


def converted(einsum: Einsum, types: Mapping[str, TensorType], precisions: Mapping[str, Precision]) -> Einsum:
    """Return a statement that rounds its result itself. It computes in 64 bits if its result is declared so, and rounds from 64
    to 32 bits if its result has 32. `precisions` are the precisions of the values that it reads."""
    declared = types.get(einsum.name)
    if declared is not None and DTYPES[declared.dtype].narrow:
        return rounded(einsum, types)
    computed = expression_precision(einsum.body, precisions)
    precision = computed if declared is None else DTYPES[declared.dtype].precision
    if precision == "f64":
        return replace(einsum, body=_rounded_inside(einsum.body, precisions, wide=True).expr)
    narrows = precision == "f32" and computed == "f64" and any(precisions[name] == "f64" for name in einsum.operands)
    return _with_result(einsum, "f32") if narrows else einsum


def with_roundings(einsum: Einsum, precisions: Mapping[str, Precision]) -> Einsum:
    """Return a statement that has its roundings to 32-bit floats as operators, so that 64-bit floats compute what it means.

    >>> from fuseflow.einsum.parse import parse
    >>> program = parse("tensor A[4]\\n B[i] = A[i] / 0.5\\n output B")
    >>> with_roundings(program.einsums[0], {"A": "f32"}).body.op
    'nearest'
    """
    return replace(einsum, body=_rounded_inside(einsum.body, precisions, wide=False).expr)


def _rounded_inside(node: Expr, precisions: Mapping[str, Precision], wide: bool) -> Valued:
    """Return an expression that rounds the results of its operators and reductions to 32-bit floats where they have this precision. Or
    return one that computes in 64 bits (`wide`): where an operator would round, an operand becomes a float of 64 bits."""
    match node:
        case Const() | Access():
            return Valued(node, expression_precision(node, precisions))
        case Keep():
            body = _rounded_inside(node.body, precisions, wide)
            return Valued(replace(node, body=body.expr), "integer" if node.marks else body.precision)
        case Reduce():
            body = _rounded_inside(node.body, precisions, wide)
            if body.precision != "f32" or not reducer(node.op).rounds:
                return Valued(replace(node, body=body.expr), body.precision)
            if wide:
                return Valued(replace(node, body=_rounded_to(body.expr, "f64")), "f64")
            return Valued(_rounded_to(replace(node, body=body.expr), "f32"), "f32")
        case Apply():
            args = [_rounded_inside(arg, precisions, wide) for arg in node.args]
            computing, result = operator_precisions(node.op, args)
            exprs, is_rounded = [arg.expr for arg in args], computing == "f32" and operator(node.op).rounds
            if wide and is_rounded:
                k = next((k for k, expr in enumerate(exprs) if not isinstance(expr, Const)), 0)
                exprs[k], result = _rounded_to(exprs[k], "f64"), "f64"
            elif not wide and computing == "f32":
                exprs = [Const(rounded_number(expr.value)) if isinstance(expr, Const) else expr for expr in exprs]
            applied = replace(node, args=tuple(exprs))
            return Valued(_rounded_to(applied, "f32") if is_rounded and not wide else applied, result)
        case unknown:
            assert_never(unknown)
