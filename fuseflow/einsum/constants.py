"""Einsums that compute one number alone become that number where they are read.

    A[i] = 2
    Y[i] = x[i] * A[i]        ->        Y[i] = x[i] * 2

Such an Einsum has nothing to stream, so no region could compute it by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from fuseflow.einsum.nodes import Access, Const, Einsum, Expr, Keep, Program, map_accesses
from fuseflow.tensors.dtypes import DTYPES


def inline_constants(program: Program) -> Program:
    """Return a program without offsets and factors in which no Einsum computes one number alone. An output stays, a result whose format is
    declared, and one from which a reader takes the extent of an index, or keeps entries.

    >>> from fuseflow.einsum.parse import parse
    >>> from fuseflow.einsum.text import show_einsum
    >>> text = "tensor x[3]\\n tensor a[3]\\n a[i] = 2\\n y[i] = x[i] * a[i]\\n output y"
    >>> [show_einsum(einsum) for einsum in inline_constants(parse(text)).einsums]
    ['y[i] = x[i] * 2']
    """
    numbers = _numbers(program)
    if not numbers:
        return program

    def number(access: Access) -> Expr:
        return numbers.get(access.tensor, access)

    einsums = tuple(replace(e, body=map_accesses(number, e.body)) for e in program.einsums if e.name not in numbers)
    return replace(program, tensors=tuple(t for t in program.tensors if t.name not in numbers), einsums=einsums)


def _numbers(program: Program) -> dict[str, Const]:
    """Return the number of each Einsum that vanishes, by its name, rounded to the dtype of the Einsum."""
    declared = program.declared
    numbers: dict[str, Const] = {}
    for einsum in program.einsums:
        type = declared.get(einsum.name)
        if (
            isinstance(einsum.body, Const)
            and einsum.name not in program.outputs
            and type is not None
            and type.format is None
            and not type.like
        ):
            numbers[einsum.name] = Const(DTYPES[type.dtype].nearest(einsum.body.value))
    for einsum in program.einsums if numbers else ():
        for name in _needed(einsum, program, numbers):
            numbers.pop(name, None)
    return numbers


def _needed(einsum: Einsum, program: Program, numbers: Mapping[str, Const]) -> list[str]:
    """Return the constants, among `numbers`, that an Einsum needs as tensors: it keeps some of their entries, or no other operand
    and no declared result has one of their indices."""
    constants = [access for access in einsum.accesses if access.tensor in numbers]
    if isinstance(einsum.body, Keep):
        return [access.tensor for access in constants]
    bound = set(einsum.indices) if einsum.name in program.declared else set()
    bound.update(i for access in einsum.accesses if access.tensor not in numbers for i in access.indices)
    return [access.tensor for access in constants if not bound.issuperset(access.indices)]
