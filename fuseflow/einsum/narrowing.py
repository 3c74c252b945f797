"""Results of narrow types: what a statement computes is rounded to the type of its result.

A result is rounded where it is written. Where a reader in the same region takes it from the graph, nothing is written, so the statement
says the rounding itself, as an operator: `H[i] = relu(X[i])`, declared `i8`, is `H[i] = saturate(relu(X[i]), -128, 127)`. So the values
of a program do not depend on what is fused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeGuard

from fuseflow.einsum.nodes import Access, Apply, Const, Einsum, Expr, Keep, Program, TensorType
from fuseflow.tensors.dtypes import DTYPES


def round_results(program: Program, types: Mapping[str, TensorType]) -> Program:
    """Return the program with every rounding said. `types` are those of all tensors."""
    if not any(is_narrow(einsum, types) for einsum in program.einsums):
        return program
    return replace(program, einsums=tuple(rounded(einsum, types) for einsum in program.einsums))


def is_narrow(einsum: Einsum, types: Mapping[str, TensorType]) -> bool:
    """Return whether the result of a statement is declared in a narrow type."""
    return einsum.name in types and DTYPES[types[einsum.name].dtype].narrow


def rounded(einsum: Einsum, types: Mapping[str, TensorType]) -> Einsum:
    """Return a statement that rounds its result itself. A `keep` compares what is rounded already, and what only sees a tensor of the same
    type is rounded already."""
    if not is_narrow(einsum, types):
        return einsum
    dtype, body = types[einsum.name].dtype, einsum.body
    if isinstance(body, Keep):
        return replace(einsum, body=replace(body, body=round_to(body.body, dtype)))
    is_same = isinstance(body, Access) and body.tensor in types and types[body.tensor].dtype == dtype
    return einsum if is_same else replace(einsum, body=round_to(body, dtype))


def round_to(body: Expr, dtype: str) -> Expr:
    """Return an expression rounded to a narrow type. One that is rounded to it already stays as it is, and so does one of a wide type."""
    row = DTYPES[dtype]
    return body if not row.narrow or rounds(body, dtype) else Apply(row.rounding, (body, *map(Const, row.parameters)))


def rounds(body: Expr, dtype: str) -> TypeGuard[Apply]:
    """Return whether an expression rounds to a narrow type."""
    row = DTYPES[dtype]
    return isinstance(body, Apply) and body.op == row.rounding and body.args[1:] == tuple(map(Const, row.parameters))
