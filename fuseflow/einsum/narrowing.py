"""Results of other types than their operands: the value of a statement is rounded to the type of its result.

A result is rounded where it is written. Where a reader in the same region takes it from the graph, nothing is written, so the
statement has the rounding as an operator: `H[i] = relu(X[i])`, declared `i8`, is `H[i] = saturate(relu(X[i]), -128, 127)`. So the
values of a program do not depend on fusion.

A float of 64 bits becomes one of 32 in the same way. The other way round, operands are made floats of 64 bits before they meet, by a
rounding that changes no number: `nearest(X[i], 2^-52, 2^-1074)`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeGuard, assert_never

from fuseflow.einsum.nodes import Access, Apply, Const, Einsum, Expr, Keep, Program, Reduce, TensorType
from fuseflow.einsum.precision import Valued, expression_precision, operator_precisions
from fuseflow.ops import Precision, operator, reducer
from fuseflow.tensors.dtypes import DTYPES


def round_results(program: Program, types: Mapping[str, TensorType]) -> Program:
    """Return the program with every rounding as an operator. `types` are the types of all tensors."""
    precisions = {t.name: DTYPES[types[t.name].dtype].precision for t in program.inputs}
    einsums = list[Einsum]()
    for einsum in program.einsums:
        einsums.append(converted(einsum, types, precisions))
        precisions[einsum.name] = expression_precision(einsums[-1].body, precisions)
    return replace(program, einsums=tuple(einsums)) if einsums != list(program.einsums) else program


def is_narrow(einsum: Einsum, types: Mapping[str, TensorType]) -> bool:
    """Return whether the result of a statement is declared in a narrow type."""
    return einsum.name in types and DTYPES[types[einsum.name].dtype].narrow


def rounded(einsum: Einsum, types: Mapping[str, TensorType]) -> Einsum:
    """Return a statement that rounds its result to a narrow type itself. A `keep` compares rounded values, and a view of a tensor
    of the same type is rounded already."""
    if not is_narrow(einsum, types):
        return einsum
    dtype, body = types[einsum.name].dtype, einsum.body
    if isinstance(body, Keep):
        return replace(einsum, body=replace(body, body=round_to(body.body, dtype)))
    is_same = isinstance(body, Access) and body.tensor in types and types[body.tensor].dtype == dtype
    return einsum if is_same else replace(einsum, body=round_to(body, dtype))


def round_to(body: Expr, dtype: str) -> Expr:
    """Return an expression rounded to a narrow type. An expression that is rounded to it already stays as it is. So does every
    expression if the type is wide."""
    row = DTYPES[dtype]
    return body if not row.narrow or rounds(body, dtype) else Apply(row.rounding, (body, *map(Const, row.parameters)))


def rounds(body: Expr, dtype: str) -> TypeGuard[Apply]:
    """Return whether an expression rounds to a narrow type."""
    row = DTYPES[dtype]
    return isinstance(body, Apply) and body.op == row.rounding and body.args[1:] == tuple(map(Const, row.parameters))


def converted(einsum: Einsum, types: Mapping[str, TensorType], precisions: Mapping[str, Precision]) -> Einsum:
    """Return a statement that rounds its result itself. It computes in 64 bits if its result is declared so, and rounds from 64
    to 32 bits if its result has 32. `precisions` are the precisions of the values that it reads."""
    if is_narrow(einsum, types):
        return rounded(einsum, types)
    declared = types.get(einsum.name)
    precision = expression_precision(einsum.body, precisions) if declared is None else DTYPES[declared.dtype].precision
    if "f64" not in (precision, *(precisions[name] for name in einsum.operands)):
        return einsum
    match precision:
        case "integer":
            return einsum
        case "f64":
            return replace(einsum, body=_widened(einsum.body, precisions).expr)
        case "f32":
            if expression_precision(einsum.body, precisions) != "f64":
                return einsum
            keep = einsum.body if isinstance(einsum.body, Keep) else None
            body = _to_float(einsum.body if keep is None else keep.body, "f32")
            return replace(einsum, body=body if keep is None else replace(keep, body=body))
        case unknown:
            assert_never(unknown)


def _to_float(body: Expr, dtype: str) -> Expr:
    row = DTYPES[dtype]
    return body if rounds(body, dtype) else Apply(row.rounding, (body, *map(Const, row.parameters)))


def _widened(node: Expr, precisions: Mapping[str, Precision]) -> Valued:
    """Return an expression that computes in 64 bits: where an operator would round to 32 bits, an operand becomes a float of 64
    bits."""
    match node:
        case Const() | Access():
            return Valued(node, expression_precision(node, precisions))
        case Keep():
            body = _widened(node.body, precisions)
            return Valued(replace(node, body=body.expr), body.precision)
        case Reduce():
            body = _widened(node.body, precisions)
            if body.precision == "f32" and reducer(node.op).rounds:
                body = Valued(_to_float(body.expr, "f64"), "f64")
            return Valued(replace(node, body=body.expr), body.precision)
        case Apply():
            args = [_widened(arg, precisions) for arg in node.args]
            computing, result = operator_precisions(node.op, args)
            if computing == "f32" and operator(node.op).rounds:
                k = next((k for k, arg in enumerate(args) if not isinstance(arg.expr, Const)), 0)
                args[k], result = Valued(_to_float(args[k].expr, "f64"), "f64"), "f64"
            return Valued(replace(node, args=tuple(arg.expr for arg in args)), result)
        case unknown:
            assert_never(unknown)
