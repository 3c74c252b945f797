"""A selection n:m:g of a tensor: which column of which chunk has which pattern, and how the kept entries are stored."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, get_args

import numpy as np
import numpy.typing as npt

from fuseflow import keep_rules
from fuseflow.errors import SparsityError

if TYPE_CHECKING:
    import torch

Method: TypeAlias = Literal["exact", "greedy"]
"""How columns get their patterns: so that they keep the most, or one after the other as STen does."""

PAIRS_AT_ONCE = 1 << 22
"""About how many pairs of a column and a pattern are in memory at a time, unless one chunk has more. A pair needs up to 40 bytes."""


def magnitudes(chunks: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the magnitudes of the entries of chunks, [chunks, columns, m], in the precision in which they are added: float64 if float32
    does not hold all numbers of the type.

    If some are not finite, all are float64 and relative to the largest finite one, and entries that are not finite get numbers so
    large that NaN counts more than all infinite entries of a chunk, and an infinite one more than all finite ones.
    """
    exact: npt.NDArray[Any] = np.abs(chunks.astype(np.float32 if np.can_cast(chunks.dtype, np.float32) else np.float64))
    finite = np.isfinite(exact)
    if finite.all():
        return exact
    largest = np.max(exact, where=finite, initial=0).astype(np.float64)
    relative = np.divide(exact, largest or 1, where=finite, out=np.zeros(exact.shape))
    infinity = float(chunks[0].size + 1)
    return np.where(np.isnan(exact), infinity**2, np.where(finite, relative, infinity))


def kept_sums(chunks: npt.NDArray[Any], patterns: npt.NDArray[np.intp]) -> npt.NDArray[Any]:
    """Return the sum of the magnitudes that each pattern keeps of each column, [chunks, columns, patterns]. `chunks` has magnitudes.

    They are added one after the other in the order of places, in the precision of `chunks`. A sum beyond its range is infinite.
    """
    sums = np.zeros((*chunks.shape[:2], len(patterns)), dtype=chunks.dtype)
    with np.errstate(over="ignore"):
        for places in patterns.T:
            sums += chunks[..., places]
    return sums


def exact_assignment(sums: npt.NDArray[Any], g: int) -> npt.NDArray[np.int16]:
    """Return the pattern of each column, [chunks, columns], from the sum that each pattern keeps of it, [chunks, columns,
    patterns].

    Every pattern can be taken by `g` columns of a chunk, and columns and patterns are matched so that the sum of the kept
    magnitudes is greatest. This is the linear assignment problem, which takes polynomial time, and needs no search as with
    CP-SAT. Of several best assignments it returns any one, but always the same.
    """
    from scipy.optimize import linear_sum_assignment

    pattern_of = np.empty(sums.shape[:2], dtype=np.int16)
    for chunk, kept in enumerate(sums):
        _, place_of = linear_sum_assignment(np.repeat(-kept.astype(np.float64), g, axis=1))
        pattern_of[chunk] = place_of // g
    return pattern_of


def assignment(
    chunks: npt.NDArray[Any], patterns: npt.NDArray[np.intp], g: int, method: Method = "exact"
) -> npt.NDArray[np.int16]:
    """Return the pattern of each column of chunks, which are [chunks, columns, m]. Every pattern has `g` columns in a chunk."""
    pattern_of = np.empty(chunks.shape[:2], dtype=np.int16)
    weights = magnitudes(chunks)
    at_once = max(1, PAIRS_AT_ONCE // (chunks.shape[1] * len(patterns)))
    for start in range(0, len(chunks), at_once):
        part = weights[start : start + at_once]
        if method == "exact":
            # A power of 2 makes all less than 1, so that no sum overflows.
            scaled = np.ldexp(part.astype(np.float64), -np.frexp(part.max(initial=0))[1])
            assigned = exact_assignment(kept_sums(scaled, patterns), g)
        else:
            from fuseflow.sparsity.grouped.greedy import greedy_assignment  # which loads numba

            assigned = greedy_assignment(kept_sums(part, patterns), g)
        pattern_of[start : start + at_once] = assigned
    return pattern_of


MAX_PATTERNS = 10_000
"""The most patterns: a chunk weighs every one of them for every column, and has at least as many columns."""
MAX_COLUMNS = (1 << 15) - 1
"""The most columns of a chunk: their numbers are stored in 16 bits."""
Scalar = TypeVar("Scalar", bound=np.generic)


@dataclass(frozen=True, slots=True)
class ChunkGrid:
    """How a tensor is cut into chunks, each [columns, m]. A column has m entries that follow each other in `sparse_dim`; the columns of a
    chunk follow each other in `group_dim`. Both dimensions are counted from 0. The last chunks are filled up with zeros.

    Chunks are numbered by the other dimensions, then by their place in `group_dim`, then by their place in `sparse_dim`.
    """

    shape: tuple[int, ...]
    m: int
    columns: int
    sparse_dim: int
    group_dim: int

    @property
    def count(self) -> int:
        """The number of chunks."""
        return math.prod(self.extents)

    def split(self, array: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
        """Return the chunks of a tensor, [chunks, columns, m]."""
        moved = np.moveaxis(array, (self.group_dim, self.sparse_dim), (-2, -1))
        *rest, across, along = self.extents
        filling = [(0, 0)] * len(rest)
        filling += [(0, across * self.columns - moved.shape[-2]), (0, along * self.m - moved.shape[-1])]
        cut = np.pad(moved, filling).reshape(*rest, across, self.columns, along, self.m)
        return cut.swapaxes(-3, -2).reshape(self.count, self.columns, self.m)

    def join(self, chunks: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
        """Return the tensor that has these chunks, without their padding."""
        *rest, across, along = self.extents
        cut = chunks.reshape(*self.extents, self.columns, self.m).swapaxes(-3, -2)
        moved = cut.reshape(*rest, across * self.columns, along * self.m)
        inside = moved[..., : self.shape[self.group_dim], : self.shape[self.sparse_dim]]
        joined: npt.NDArray[Any] = np.moveaxis(inside, (-2, -1), (self.group_dim, self.sparse_dim))
        return np.ascontiguousarray(joined)

    @property
    def dims(self) -> tuple[int, int]:
        """The two dimensions that are cut."""
        return self.sparse_dim, self.group_dim

    @property
    def extents(self) -> tuple[int, ...]:
        """The extents of the dimensions by which chunks are numbered."""
        rest = (extent for dim, extent in enumerate(self.shape) if dim not in self.dims)
        across, along = self.shape[self.group_dim], self.shape[self.sparse_dim]
        return (*rest, -(-across // self.columns), -(-along // self.m))

    def chunk_coordinates(self, number: torch.Tensor) -> list[torch.Tensor]:
        """Return the coordinates of chunks, given by number, in the order of `extents`. `torch.unravel_index` makes constants of the
        extents, which `torch.export` refuses inside of an operator of a tensor subclass."""
        coordinates = []
        for extent in reversed(self.extents):
            coordinates.append(number % max(1, extent))
            number = number // max(1, extent)
        return coordinates[::-1]


@cache
def patterns(n: int, m: int) -> npt.NDArray[np.intp]:
    """Return the C(m, n) ways to choose n of m places, [patterns, n], places ascending. Neighbours differ in one place (a revolving door).
    The last pattern has the last n places. The array is shared, and cannot be written to.

    >>> ["".join(map(str, pattern)) for pattern in patterns(2, 4)]
    ['01', '02', '12', '13', '03', '23']
    """
    table = np.array(_path(n, m, back=2), dtype=np.intp)
    table.flags.writeable = False
    return table


def _path(n: int, m: int, *, back: int) -> list[tuple[int, ...]]:
    """Return the patterns on a path that ends with the last n of m places. It starts with the last n of the first m - `back`
    places, if these are enough; `back` is 1 or 2. A path is made of a path over the first m - 1 places and of one whose patterns
    also have the last place."""
    if n in (0, m):
        return [tuple(range(n))]
    without_last = _path(n, m - 1, back=1)
    with_last = [(*pattern, m - 1) for pattern in _path(n - 1, m - 1, back=3 - back)]
    return [*(without_last if back == 2 else reversed(without_last)), *with_last]


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

    def pack(self, array: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[np.int16]]:
        """Return the entries of a tensor that the selection keeps, [chunks, patterns, g, n], places ascending, and the number of the
        column in its chunk that has these n entries, [chunks, patterns, g]. Columns of one pattern stand in ascending order.

        The tensor may be another one than the selection was made for, of the same shape.
        """
        table, count = self.patterns, self.grid.count
        columns = np.argsort(self.pattern_of, axis=1, kind="stable").astype(np.int16).reshape(count, len(table), self.g)
        chunk = np.arange(count)[:, None, None, None]
        return self.grid.split(array)[chunk, columns[..., None], table[:, None, :]], columns


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
    if dense.dtype.kind not in "biuf":
        raise SparsityError(
            f"elements of type {dense.dtype} cannot be compared by magnitude", hint="give a tensor of real numbers"
        )
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
    reason, hint = keep_rules.group_refusal(n, m)
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


def grouped_mask(
    array: npt.ArrayLike, n: int, m: int, g: int, sparse_dim: int = -2, group_dim: int = -1, method: Method = "exact"
) -> npt.NDArray[np.bool_]:
    """Return which elements of a tensor the selection n:m:g keeps. `grouping` explains the arguments, and the errors.

    >>> grouped_mask([[5, 1, 4, 2], [3, 9, 8, 1]], 1, 2, 2).astype(int).tolist()
    [[1, 0, 0, 1], [0, 1, 1, 0]]
    """
    return grouping(array, n, m, g, sparse_dim, group_dim, method).mask()
