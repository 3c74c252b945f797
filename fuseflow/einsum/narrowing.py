"""Results of narrow types: what a statement computes is rounded to the type of its result.

A result is rounded where it is written. Where a reader in the same region takes it from the graph, nothing is written, so the statement
says the rounding itself, as an operator: `H[i] = relu(X[i])`, declared `i8`, is `H[i] = saturate(relu(X[i]), -128, 127)`. So the values
of a program do not depend on what is fused.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from fuseflow.einsum.nodes import Access, Apply, Const, Einsum, Expr, Keep, Program, TensorType
from fuseflow.tensors.dtypes import DTYPES


def round_results(program: Program, types: Mapping[str, TensorType]) -> Program:
    """Return the program with every rounding said. `types` are those of all tensors."""
    return replace(program, einsums=tuple(rounded(einsum, types) for einsum in program.einsums))


def rounded(einsum: Einsum, types: Mapping[str, TensorType]) -> Einsum:
    """Return a statement that rounds its result itself. A `keep` compares what is rounded already."""
    if einsum.name not in types or not DTYPES[types[einsum.name].dtype].narrow:
        return einsum
    dtype = types[einsum.name].dtype
    if isinstance(einsum.body, Keep):
        return replace(einsum, body=replace(einsum.body, body=_rounded(einsum.body.body, dtype, types)))
    return replace(einsum, body=_rounded(einsum.body, dtype, types))


def _rounded(body: Expr, dtype: str, types: Mapping[str, TensorType]) -> Expr:
    row = DTYPES[dtype]
    if isinstance(body, Access) and body.tensor in types and types[body.tensor].dtype == dtype:
        return body
    if isinstance(body, Apply) and body.op == row.rounding and body.args[1:] == tuple(map(Const, row.parameters)):
        return body
    return Apply(row.rounding, (body, *map(Const, row.parameters)))


def leave_to_writers(program: Program, regions: Collection[Collection[str]]) -> Program:
    """Return the program without the roundings that the writer of a result does: of results that nothing in their region reads."""
    inside = {name for region in regions for name in region if _read_in(program, name, region)}
    return replace(program, einsums=tuple(e if e.name in inside else _unrounded(e, program) for e in program.einsums))


def _read_in(program: Program, name: str, region: Collection[str]) -> bool:
    return any(name in program.defined[reader].operands for reader in region if reader in program.defined)


def _unrounded(einsum: Einsum, program: Program) -> Einsum:
    row = DTYPES[program.declared[einsum.name].dtype]
    body = einsum.body
    if not row.narrow or not isinstance(body, Apply) or body.op != row.rounding or isinstance(body.args[0], Access | Const):
        return einsum
    return replace(einsum, body=body.args[0]) if body.args[1:] == tuple(map(Const, row.parameters)) else einsum
