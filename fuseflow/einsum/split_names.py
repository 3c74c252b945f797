"""Index names for the parts of split dimensions: heads are called h and d, and a batch b, wherever they are used.

T[i, j, k] = sum(l) Q[j, i, l] * K[k, i, l]     ->     T[h, i, j] = sum(d) Q[i, h, d] * K[j, h, d]
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from fuseflow.einsum.dimensions import Axis, Dimensions, unify_dimensions
from fuseflow.einsum.indices import fresh_indices, substitute, substitute_indices
from fuseflow.einsum.nodes import Einsum, Index, Program, Reduce, Split, accesses, index_names, walk


def name_split_indices(program: Program) -> Program:
    """Return the program with new names for the indices that run over a part of a split dimension. The other indices of these Einsums
    become i, j, k, ...
    """
    dims = unify_dimensions(program)
    names: dict[Axis, str] = {}
    for einsum in program.einsums:
        for indices in (einsum.indices, *(a.indices for a in accesses(einsum.body))):
            for position, index in enumerate(indices):
                if isinstance(index, Split):
                    _name(dims, names, einsum, index, batch=position == 0 and len(indices) > 1)
    return replace(program, einsums=tuple(_renamed(e, dims, names) for e in program.einsums)) if names else program


def _name(dims: Dimensions, names: dict[Axis, str], einsum: Einsum, split: Split, batch: bool) -> None:
    """Add names for the two parts of a split to `names`. The outermost dimension (`batch`) is split into a batch and rows; any
    other into heads and their elements."""
    names.setdefault(dims.find((einsum.name, split.outer)), "b" if batch else "h")
    if not batch:
        names.setdefault(dims.find((einsum.name, split.inner)), "d")


def _renamed(einsum: Einsum, dims: Dimensions, names: Mapping[Axis, str]) -> Einsum:
    reduced = (v for node in walk(einsum.body) if isinstance(node, Reduce) for v in node.over)
    table: dict[str, Index] = {}
    for v in dict.fromkeys((*index_names(einsum.indices), *reduced)):
        name = names.get(dims.find((einsum.name, v)))
        if name is not None and name not in table.values():
            table[v] = name
    if not table:
        return einsum
    letters = (v for v in fresh_indices() if v not in names.values())
    for v in dict.fromkeys((*index_names(einsum.indices), *(n for a in accesses(einsum.body) for n in a.names))):
        if v not in table:
            table[v] = next(letters)
    indices, body = substitute_indices(einsum.indices, table), substitute(einsum.body, table)
    return replace(einsum, indices=indices, body=body, order=tuple([str(table.get(v, v)) for v in einsum.order]))
