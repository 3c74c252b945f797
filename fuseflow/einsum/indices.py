"""Names of indices: how they are given out and replaced. A model file may name the loops of its Einsums (`INDICES = {"attn.scores": "b h i
j"}`).
"""

from __future__ import annotations

import string
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import count
from typing import assert_never

from fuseflow.einsum.nodes import (
    Access,
    Affine,
    Apply,
    Const,
    Einsum,
    Expr,
    Index,
    Keep,
    Program,
    Reduce,
    Split,
    index_names,
    linear_form,
    walk,
)
from fuseflow.errors import ProgramError, did_you_mean

LETTERS = "ijklmnopqrstuvwxyz" + "abcdefgh" + string.ascii_uppercase
"""The one-letter index names, in the order in which they are given out."""


def fresh_indices() -> Iterator[str]:
    """Yield index names: i, j, k, ..., and then i1, j1, ..."""
    yield from LETTERS
    for n in count(1):
        yield from (f"{letter}{n}" for letter in LETTERS)


def substitute(expr: Expr, indices: Mapping[str, Index]) -> Expr:
    """Return the expression with other index names. A part of a split, or a term, may become a sum of terms."""
    match expr:
        case Access():
            return Access(expr.tensor, substitute_indices(expr.indices, indices))
        case Const():
            return expr
        case Apply():
            return Apply(expr.op, tuple(substitute(arg, indices) for arg in expr.args))
        case Reduce():
            return Reduce(expr.op, tuple(str(indices.get(name, name)) for name in expr.over), substitute(expr.body, indices))
        case Keep():
            return Keep(expr.rule, tuple(str(indices.get(name, name)) for name in expr.over), substitute(expr.body, indices))
        case unknown:
            assert_never(unknown)


def substitute_indices(indices: tuple[Index, ...], names: Mapping[str, Index]) -> tuple[Index, ...]:
    """Return an index list with other index names."""
    return tuple(_index(index, names) for index in indices)


def substitute_tensors(expr: Expr, names: Mapping[str, str]) -> Expr:
    """Return the expression with other names of tensors."""
    match expr:
        case Access():
            return Access(names.get(expr.tensor, expr.tensor), expr.indices)
        case Const():
            return expr
        case Apply():
            return Apply(expr.op, tuple(substitute_tensors(arg, names) for arg in expr.args))
        case Reduce():
            return Reduce(expr.op, expr.over, substitute_tensors(expr.body, names))
        case Keep():
            return Keep(expr.rule, expr.over, substitute_tensors(expr.body, names))
        case unknown:
            assert_never(unknown)


def _index(index: Index, indices: Mapping[str, Index]) -> Index:
    match index:
        case str():
            return indices.get(index, index)
        case Split():
            outer, inner = indices.get(index.outer, index.outer), indices.get(index.inner, index.inner)
            if isinstance(outer, str) and isinstance(inner, str):
                return Split(outer, inner, index.size)
            return _composed(linear_form(index), indices)
        case Affine():
            return _composed(index, indices)
        case unknown:
            assert_never(unknown)


def _composed(index: Affine, indices: Mapping[str, Index]) -> Affine:
    """Return an affine index after its terms were replaced by the affine forms of `indices`."""
    terms, offset = list[tuple[str, int]](), index.offset
    for name, factor in index.terms:
        form = linear_form(indices.get(name, name))
        terms += [(inner, factor * inner_factor) for inner, inner_factor in form.terms]
        offset += factor * form.offset
    return Affine(tuple(terms), offset)


def rename_left_side(program: Program, names: Mapping[str, str]) -> Program:
    """Return the program with other left-side indices for the Einsums in `names`, outermost first. Indices of reductions that would clash
    get fresh names.

    Raises `ProgramError` for an Einsum that does not exist, and for names that do not fit its dimensions.
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
            table[v] = next(name for name in fresh_indices() if name not in taken)
            taken.add(table[v])
    indices, body = substitute_indices(einsum.indices, table), substitute(einsum.body, table)
    return replace(einsum, indices=indices, body=body, order=tuple([table.get(v, v) for v in einsum.order]))
