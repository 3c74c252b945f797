"""Renaming the indices of Einsums: a model file may say what its loops are called (`INDICES = {"attn.scores": "b h i j"}`)."""

from __future__ import annotations

import string
from collections.abc import Mapping
from dataclasses import replace

from fuseflow.einsum.nodes import Access, Apply, Const, Einsum, Expr, Index, Program, Reduce, Split, index_names, walk
from fuseflow.errors import ProgramError, did_you_mean

LETTERS = "ijklmnopqrstuvwxyz" + "abcdefgh" + string.ascii_uppercase
"""Index names in the order in which they are given out."""


def with_indices(program: Program, names: Mapping[str, str]) -> Program:
    """The program with the left-side indices of the named Einsums renamed, outermost first; reductions that would clash move on.

    Raises `ProgramError` for an Einsum that is not there and for names that do not fit its dimensions.
    """
    for name in names:
        if name not in program.defined:
            raise ProgramError(f"index names for `{name}`: there is no such Einsum", hint=did_you_mean(name, program.defined))
    einsums = tuple(_renamed(e, names[e.name].split()) if e.name in names else e for e in program.einsums)
    return replace(program, einsums=einsums)


def _renamed(einsum: Einsum, wanted: list[str]) -> Einsum:
    left = index_names(einsum.indices)
    if len(wanted) != len(left) or len(set(wanted)) < len(wanted) or not all(w.isidentifier() for w in wanted):
        raise ProgramError(
            f"index names `{' '.join(wanted)}` do not fit `{einsum.name}[{', '.join(map(str, einsum.indices))}]`",
            hint=f"give {len(left)} different names, separated by spaces",
        )
    table = dict(zip(left, wanted, strict=True))
    reduced = dict.fromkeys(v for n in walk(einsum.body) if isinstance(n, Reduce) for v in n.over)
    taken = {*wanted, *(v for v in reduced if v not in wanted)}
    for v in reduced:
        if v in wanted:
            table[v] = next(c for c in LETTERS if c not in taken)
            taken.add(table[v])
    return replace(einsum, indices=tuple(_index(i, table) for i in einsum.indices), body=_expr(einsum.body, table))


def _index(index: Index, table: Mapping[str, str]) -> Index:
    if isinstance(index, Split):
        return Split(table.get(index.outer, index.outer), table.get(index.inner, index.inner), index.size)
    return table.get(index, index)


def _expr(node: Expr, table: Mapping[str, str]) -> Expr:
    match node:
        case Const():
            return node
        case Access():
            return Access(node.tensor, tuple(_index(i, table) for i in node.indices))
        case Apply():
            return Apply(node.op, tuple(_expr(a, table) for a in node.args))
        case Reduce():
            return Reduce(node.op, tuple(table.get(v, v) for v in node.over), _expr(node.body, table))
