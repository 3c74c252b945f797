"""Roundings that writers do: a result that nothing in its region reads is rounded where it is written, and by no operator before."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from fuseflow.einsum.format_inference import fill_of
from fuseflow.einsum.narrowing import is_narrow, rounds
from fuseflow.einsum.nodes import Access, Const, Einsum, Program
from fuseflow.einsum.verify import extents


def leave_to_writers(program: Program, regions: Collection[Collection[str]]) -> Program:
    """Return a program, of which all types are declared, without the roundings that the writers of its results do.

    A rounding stays where it decides the implicit value, and where nothing else is computed.
    """
    types, defined = program.declared, program.defined
    if not any(is_narrow(einsum, types) for einsum in program.einsums):
        return program
    read = {name for region in regions for reader in region for name in defined[reader].operands if name in region}
    sizes = extents(program)
    written = {e.name: _unrounded(e, program, sizes[e.name]) for e in program.einsums if e.name not in read}
    return replace(program, einsums=tuple(written.get(e.name, e) for e in program.einsums))


def _unrounded(einsum: Einsum, program: Program, sizes: Mapping[str, int]) -> Einsum:
    body, type = einsum.body, program.declared[einsum.name]
    if not rounds(body, type.dtype) or isinstance(body.args[0], Access | Const):
        return einsum
    fills = {name: program.declared[name].fill for name in einsum.operands}
    plain = body.args[0]
    return replace(einsum, body=plain) if fill_of(plain, fills, sizes) == type.fill else einsum
