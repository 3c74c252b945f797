"""Offsets and strides as products: an affine index becomes a selection, which is a known tensor of ones and zeros.

    Y[c, p] = sum(r) W[c, r] * X[2*p + r - 1]    ->    Y[c, p] = sum(r, i) W[c, r] * select[p, r, i] * X[i]

`select` is 1 where i = 2*p + r - 1 lies inside of `X`. Only the ones are stored. Its index joins the sum around the product that reads it;
elsewhere, as inside of a maximum, it gets a sum of its own. Equal selections are one tensor.

The interpreter reads such an access directly (`read_affine`): `X[2*p + r - 1]` is an array over p and r, with 0 where the coordinate lies
outside of `X`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import TypeAlias

import numpy as np

from fuseflow.einsum.index_names import fresh_indices, unused_name
from fuseflow.einsum.nodes import (
    Access,
    Affine,
    Apply,
    Einsum,
    Expr,
    Index,
    Program,
    Reduce,
    TensorType,
    index_names,
    map_children,
)
from fuseflow.einsum.verify import shapes_and_extents
from fuseflow.ops import Array
from fuseflow.tensors import Format, Tensor
from fuseflow.tensors.pack import from_coordinates

SelectionKey: TypeAlias = tuple[tuple[int, ...], tuple[int, ...], int, int]
"""The facts that decide a selection: the factors and the extents of its terms, the offset, and the extent of the dimension that is read."""

NAME = "select"
"""The name of the first selection of a program. Others are `select_2`, `select_3`, ..."""


def has_affine(program: Program) -> bool:
    """Return whether a program has an index with an offset or a factor."""
    return any(access.is_affine for e in program.einsums for access in e.accesses)


def replace_affine(program: Program) -> tuple[Program, dict[str, Tensor]]:
    """Return the program without affine indices, and its selections, which are new inputs. Raises `ProgramError` as `verify` does.

    >>> from fuseflow.einsum.parse import parse
    >>> from fuseflow.einsum.text import show_einsum
    >>> program, selections = replace_affine(parse("tensor x[4]\\n tensor y[3]\\n y[i] = x[i + 1]\\n output y"))
    >>> show_einsum(program.einsums[0])
    'y[i] = sum(j) select[i, j] * x[j]'
    >>> selections["select"].to_dense().tolist()
    [[0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
    """
    if not has_affine(program):
        return program, {}
    shapes, extents = shapes_and_extents(program)
    selections = _Selections({*program.declared, *program.defined})
    statements = ((e, _Statement(e, shapes, extents[e.name], selections)) for e in program.einsums)
    einsums = tuple(replace(einsum, body=statement.closed(einsum.body)) for einsum, statement in statements)
    declared = (*program.tensors, *(type for type, _ in selections.by_key.values()))
    return replace(program, tensors=declared, einsums=einsums), {t.name: tensor for t, tensor in selections.by_key.values()}


@dataclass(slots=True)
class _Selections:
    """The selections of a program so far, as declarations with their ones, and the names that are taken."""

    taken: set[str]
    by_key: dict[SelectionKey, tuple[TensorType, Tensor]] = field(default_factory=dict)

    def name(self, index: Affine, sizes: Mapping[str, int], extent: int) -> str:
        """Return the name of the selection for an affine index of a dimension."""
        factors = tuple(factor for _, factor in index.terms)
        key = factors, tuple(sizes[name] for name, _ in index.terms), index.offset, extent
        if key not in self.by_key:
            name = unused_name(NAME, self.taken)
            self.taken.add(name)
            self.by_key[key] = _selection(name, index, sizes, extent)
        return self.by_key[key][0].name


def _selection(name: str, index: Affine, sizes: Mapping[str, int], extent: int) -> tuple[TensorType, Tensor]:
    """Return the selection of a dimension. It has the dtype of a truth value, so that it changes no dtype that it is multiplied with."""
    wanted = coordinates(index, sizes)
    wanted = np.broadcast_to(wanted, [sizes[term] for term, _ in index.terms])
    inside = (wanted >= 0) & (wanted < extent)
    points = [*np.nonzero(inside)] if wanted.ndim else []
    format = Format.of(*["dense"] * wanted.ndim, "compressed")
    type = TensorType(name, (*wanted.shape, extent), format, "i32")
    table = np.stack([*points, wanted[inside]])
    return type, from_coordinates(type.shape, table, np.ones(table.shape[1], np.int32), format)


@dataclass(slots=True)
class _Statement:
    """One Einsum, whose accesses are rewritten."""

    einsum: Einsum
    shapes: Mapping[str, tuple[int, ...]]
    sizes: Mapping[str, int]
    selections: _Selections
    letters: Iterator[str] = field(init=False)

    def __post_init__(self) -> None:
        used = {*self.sizes, *index_names(self.einsum.indices)}
        self.letters = (name for name in fresh_indices() if name not in used)

    def closed(self, node: Expr) -> Expr:
        """Return an expression with a sum around it over the coordinates that its selections read."""
        body, selected = self.opened(node)
        return Reduce("sum", selected, body) if selected else body

    def opened(self, node: Expr) -> tuple[Expr, tuple[str, ...]]:
        """Return `node` with a sum over a selection in place of each affine index, but without these sums, and the indices over which
        the result is still to be summed. Sums are moved outward past products and past sums over other indices, and no further."""
        match node:
            case Access():
                return self.access(node)
            case Apply(op="mul", args=(first, second)):
                (left, left_over), (right, right_over) = self.opened(first), self.opened(second)
                return Apply("mul", (left, right)), (*left_over, *right_over)
            case Reduce(op="sum"):
                body, selected = self.opened(node.body)
                return Reduce("sum", (*node.over, *selected), body), ()
            case _:
                return map_children(self.closed, node), ()

    def access(self, node: Access) -> tuple[Expr, tuple[str, ...]]:
        indices, selected, factors = list[Index](), list[str](), list[Expr]()
        for index, extent in zip(node.indices, self.shapes[node.tensor], strict=True):
            if isinstance(index, Affine):
                name = self.selections.name(index, self.sizes, extent)
                selected.append(next(self.letters))
                factors.append(Access(name, (*(term for term, _ in index.terms), selected[-1])))
            indices.append(selected[-1] if isinstance(index, Affine) else index)
        product: Expr = Access(node.tensor, tuple(indices))
        for factor in reversed(factors):
            product = Apply("mul", (factor, product))
        return product, tuple(selected)


def read_affine(array: Array, indices: tuple[Index, ...], sizes: Mapping[str, int]) -> Array:
    """Return the array with the axis of each affine index replaced by one axis for each of its terms. Other axes stay.

    >>> read_affine(np.array([5.0, 6.0, 7.0]), (Affine((("p", 2),), -1),), {"p": 3}).tolist()
    [0.0, 6.0, 0.0]
    """
    widths = [len(index_names((index,))) if isinstance(index, Affine) else 1 for index in indices]
    for axis, index in zip(accumulate(widths, initial=0), indices, strict=False):
        if isinstance(index, Affine):
            array = _gathered(array, axis, coordinates(index, sizes))
    return array


def coordinates(index: Affine, sizes: Mapping[str, int]) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """Return an array of coordinates with an axis for each term of an affine index, in the order of the terms. `sizes` are the
    extents of the terms."""
    grid = np.full([1] * len(index.terms), index.offset, np.int64)
    for position, (name, factor) in enumerate(index.terms):
        column = [-1 if other == position else 1 for other in range(len(index.terms))]
        grid = grid + (factor * np.arange(sizes[name], dtype=np.int64)).reshape(column)
    return grid


def _gathered(array: Array, axis: int, wanted: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> Array:
    inside = (wanted >= 0) & (wanted < array.shape[axis])
    if not inside.any():  # an empty axis has nothing to take
        return np.zeros((*array.shape[:axis], *wanted.shape, *array.shape[axis + 1 :]))
    taken = np.take(array, np.where(inside, wanted, 0), axis=axis)
    mask = inside.reshape([1] * axis + list(wanted.shape) + [1] * (array.ndim - axis - 1))
    return np.where(mask, taken, 0.0)
