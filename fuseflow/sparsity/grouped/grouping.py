"""A selection n:m:g of a tensor: which column of which chunk has which pattern."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
import numpy.typing as npt

from fuseflow import selection
from fuseflow.errors import SparsityError
from fuseflow.sparsity.grouped.assignment import Method, assignment
from fuseflow.sparsity.grouped.chunks import ChunkGrid
from fuseflow.sparsity.grouped.patterns import patterns

MAX_PATTERNS = 10_000
"""The most patterns: a chunk weighs every one of them for every column, and has at least as many columns."""
MAX_COLUMNS = (1 << 15) - 1
"""The most columns of a chunk: their numbers are stored in 16 bits."""


@dataclass(frozen=True, slots=True, eq=False)
class Grouping:
    """The patterns of the columns of a tensor: `pattern_of` is [chunks, columns], and every pattern stands `g` times in each chunk."""

    n: int
    g: int
    grid: ChunkGrid
    pattern_of: npt.NDArray[np.int16]

    @property
    def patterns(self) -> npt.NDArray[np.intp]:
        """The patterns by their numbers, [patterns, n]."""
        return patterns(self.n, self.grid.m)

    def mask(self) -> npt.NDArray[np.bool_]:
        """Return which elements of the tensor are kept."""
        chunks = np.zeros((*self.pattern_of.shape, self.grid.m), dtype=bool)
        np.put_along_axis(chunks, self.patterns[self.pattern_of], True, axis=-1)
        return self.grid.join(chunks)


def grouping(
    array: npt.ArrayLike, n: int, m: int, g: int, sparse_dim: int = -2, group_dim: int = -1, method: Method = "exact"
) -> Grouping:
    """Return the selection n:m:g that keeps large magnitudes of a tensor. `n` of `m` are kept in `sparse_dim`, and columns follow each
    other in `group_dim`.

    NaN counts more than any number, and an infinite element more than any finite one, so that as many of them are kept as patterns allow.
    float32 and narrower numbers are added as float32, others as float64.

    Raises:
        SparsityError: No n:m:g is like that, the tensor does not have these dimensions, or its elements have no order.
    """
    dense = np.asarray(array)
    _require_magnitudes(dense)
    if method not in get_args(Method):
        raise SparsityError(f"no method `{method}` gives columns their patterns", hint="there are `exact` and `greedy`")
    grid = chunk_grid(dense.shape, n, m, g, sparse_dim, group_dim)
    return Grouping(n, g, grid, assignment(grid.split(dense), patterns(n, m), g, method))


def grouping_of_mask(mask: npt.NDArray[np.bool_], n: int, m: int, g: int, sparse_dim: int = -2, group_dim: int = -1) -> Grouping:
    """Return a selection n:m:g that keeps all that `mask` keeps.

    Raises:
        SparsityError: There is none, or the arguments are wrong as in `grouping`.
    """
    covering = grouping(mask, n, m, g, sparse_dim, group_dim)
    outside = np.argwhere(mask & ~covering.mask())
    if len(outside):
        place = ", ".join(map(str, outside[0]))
        raise SparsityError(
            f"no selection {n}:{m}:{g} keeps all of the mask; the best one lacks {len(outside):,} of {mask.sum():,} elements, "
            f"the first at ({place})",
            hint="make the mask with `grouped_mask`, with the same n, m, g and dimensions",
        )
    return covering


def _require_magnitudes(array: npt.NDArray[Any]) -> None:
    if array.dtype.kind not in "biuf":
        raise SparsityError(
            f"elements of type {array.dtype} cannot be compared by magnitude", hint="give a tensor of real numbers"
        )


def chunk_grid(shape: tuple[int, ...], n: int, m: int, g: int, sparse_dim: int, group_dim: int) -> ChunkGrid:
    """Return the grid of chunks of a tensor, for arguments as in `grouping`. Raise `SparsityError` if it cannot be cut so."""
    require_sizes(n, m, g)
    rank = len(shape)
    for name, dim in (("sparse_dim", sparse_dim), ("group_dim", group_dim)):
        if not -rank <= dim < rank:
            raise SparsityError(f"`{name}` is {dim}, but the tensor has {rank} dimensions", hint=_dimensions_of(rank))
    if sparse_dim % rank == group_dim % rank:
        raise SparsityError(f"`sparse_dim` and `group_dim` are both dimension {group_dim % rank}", hint=_dimensions_of(rank))
    return ChunkGrid(shape, m, math.comb(m, n) * g, sparse_dim % rank, group_dim % rank)


def _dimensions_of(rank: int) -> str:
    if rank < 2:
        return f"n:m:g needs two dimensions; give a tensor with more than {rank}"
    return f"give two different dimensions between {-rank} and {rank - 1}"


def require_sizes(n: int, m: int, g: int) -> None:
    reason, hint = selection.group_refusal(n, m)
    if reason:
        raise SparsityError(f"`{n}:{m}:{g}`: {reason}", hint=hint)
    if g < 1:
        raise SparsityError(f"`{n}:{m}:{g}`: a pattern cannot have {g} columns", hint="give a g of at least 1")
    count = math.comb(m, n)
    if count > MAX_PATTERNS:
        raise SparsityError(
            f"`{n}:{m}:{g}`: there are more than {MAX_PATTERNS:,} ways to choose {n} of {m} places",
            hint=f"choose a smaller m, so that C(m, n) is at most {MAX_PATTERNS:,}, such as 5:12",
        )
    if count * g > MAX_COLUMNS:
        raise SparsityError(
            f"`{n}:{m}:{g}`: {count:,} patterns with {g:,} columns each make chunks of {count * g:,} columns",
            hint=f"a chunk has at most {MAX_COLUMNS:,}: give a g of at most {MAX_COLUMNS // count:,}",
        )
