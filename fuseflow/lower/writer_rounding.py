"""Leaves roundings to writers: a result that nothing in its region reads is rounded where it is written, and by no operator
before."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from fuseflow.einsum.nodes import Access, Const, Einsum, Program
from fuseflow.einsum.precision import rounds


def leave_to_writers(program: Program, regions: Collection[Collection[str]], drop_zeros: Collection[str]) -> Program:
    """Return a program (all its types are declared) without the roundings that the writers of its results do.

    A rounding stays where nothing else is computed. It stays where zeros are dropped before the writer, since it decides what is 0.
    """
    types, defined = program.declared, program.defined
    if not any(rounds(einsum.body, types[einsum.name].dtype) for einsum in program.einsums):
        return program
    needed = {name for region in regions for reader in region for name in defined[reader].operands if name in region}
    needed |= set(drop_zeros)
    return replace(program, einsums=tuple(e if e.name in needed else _unrounded(e, types[e.name].dtype) for e in program.einsums))


def _unrounded(einsum: Einsum, dtype: str) -> Einsum:
    body = einsum.body
    if not rounds(body, dtype) or isinstance(body.args[0], Access | Const):
        return einsum
    return replace(einsum, body=body.args[0])
