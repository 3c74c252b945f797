"""Names of indices: how they are given out and replaced. A model file may name the loops of its Einsums (`INDICES = {"attn.scores": "b h i
j"}`).
"""

from __future__ import annotations

import string
from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import assert_never

from fuseflow.einsum.dimension_unification import Axis, Dimensions, axes_of, unify_dimensions
from fuseflow.einsum.nodes import (
    Access,
    Affine,
    Einsum,
    Expr,
    Index,
    Keep,
    Program,
    Reduce,
    Split,
    index_names,
    linear_form,
    map_accesses,
    map_children,
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


def unused_name(wanted: str, taken: Collection[str], between: str = "_") -> str:
    """Return a name that is not taken: the wanted one, or it with the first number, from 2 on, that makes it new."""
    return next(n for k in count(1) if (n := wanted if k == 1 else f"{wanted}{between}{k}") not in taken)


def underscored_name(wanted: str, taken: Container[str]) -> str:
    """Return a name that is not taken: the wanted one, with as many underscores behind it as that needs."""
    while wanted in taken:
        wanted += "_"
    return wanted


def substitute(expr: Expr, indices: Mapping[str, Index]) -> Expr:
    """Return the expression with other index names. A part of a split, or a term, may become a sum of terms."""
    if isinstance(expr, Access):
        return Access(expr.tensor, substitute_indices(expr.indices, indices))
    if isinstance(expr, Reduce | Keep):
        expr = replace(expr, over=tuple(str(indices.get(name, name)) for name in expr.over))
    return map_children(lambda child: substitute(child, indices), expr)


def substitute_indices(indices: tuple[Index, ...], names: Mapping[str, Index]) -> tuple[Index, ...]:
    """Return an index list with other index names."""
    return tuple(_index(index, names) for index in indices)


def substitute_tensors(expr: Expr, names: Mapping[str, str]) -> Expr:
    """Return the expression with other names of tensors."""
    return map_accesses(lambda access: Access(names.get(access.tensor, access.tensor), access.indices), expr)


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


def with_output_names(program: Program, outputs: Sequence[str]) -> Program:
    """Return the program with other names for its outputs, in order. Another tensor that has one of these names gets a number."""
    wanted = dict(zip(program.outputs, outputs, strict=True))
    taken = {*wanted.values(), *program.defined, *program.declared}
    names = dict(wanted)
    for name in (*program.defined, *program.declared):
        if name not in wanted and name in wanted.values():
            names[name] = unused_name(name, taken)
            taken.add(names[name])
    tensors = tuple(replace(tensor, name=names.get(tensor.name, tensor.name)) for tensor in program.tensors)
    einsums = tuple(replace(e, name=names.get(e.name, e.name), body=substitute_tensors(e.body, names)) for e in program.einsums)
    return replace(program, tensors=tensors, einsums=einsums, outputs=tuple(outputs))


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
    table, reduced = dict(zip(left, wanted, strict=True)), _reduced(einsum)
    taken = {*wanted, *reduced}
    for v in reduced:
        if v in wanted:
            table[v] = next(name for name in fresh_indices() if name not in taken)
            taken.add(table[v])
    return _with_indices(einsum, table)


def name_split_indices(program: Program) -> Program:
    """Return the program with new names for the indices that run over a part of a split dimension: heads are called h and d, and a batch
    b, wherever they are used. The other indices of these Einsums become i, j, k, ...

    T[i, j, k] = sum(l) Q[j, i, l] * K[k, i, l]     ->     T[h, i, j] = sum(d) Q[i, h, d] * K[j, h, d]
    """
    dims = unify_dimensions(program)
    names: dict[Axis, str] = {}
    for einsum in program.einsums:
        for indices in (einsum.indices, *(access.indices for access in einsum.accesses)):
            for position, index in enumerate(indices):
                if isinstance(
                    index, Split
                ):  # the outermost dimension is a batch and rows; any other has heads and their elements
                    is_batch = position == 0 and len(indices) > 1
                    names.setdefault(dims.find((einsum.name, index.outer)), "b" if is_batch else "h")
                    if not is_batch:
                        names.setdefault(dims.find((einsum.name, index.inner)), "d")
    return replace(program, einsums=tuple(_with_names(e, dims, names) for e in program.einsums)) if names else program


def _with_names(einsum: Einsum, dims: Dimensions, names: Mapping[Axis, str]) -> Einsum:
    table: dict[str, Index] = {}
    for v in dict.fromkeys((*index_names(einsum.indices), *_reduced(einsum))):
        name = names.get(dims.find((einsum.name, v)))
        if name is not None and name not in table.values():
            table[v] = name
    if not table:
        return einsum
    letters = (v for v in fresh_indices() if v not in names.values())
    for v in index_names(tuple(index for _, index in axes_of(einsum))):
        if v not in table:
            table[v] = next(letters)
    return _with_indices(einsum, table)


def _reduced(einsum: Einsum) -> tuple[str, ...]:
    return tuple(dict.fromkeys(v for node in walk(einsum.body) if isinstance(node, Reduce) for v in node.over))


def _with_indices(einsum: Einsum, table: Mapping[str, Index]) -> Einsum:
    indices, body = substitute_indices(einsum.indices, table), substitute(einsum.body, table)
    return replace(einsum, indices=indices, body=body, order=tuple([str(table.get(v, v)) for v in einsum.order]))
