"""Large sparse arrays in the meaning of a program, and operators and products of them: their dense form is never made, and work on them
takes as long as their entries need.

An array that stores little has its values at some positions and `fill` everywhere else. Pointwise operators keep it so where one operand
annihilates outside of its positions, or where all operands have the same indices. Reductions always keep it so. A packed tensor is such
an array, too: a product of matrices reads its levels as they are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from fuseflow.keep_rules import Largest, Rule, kept_entries
from fuseflow.ops import Array, Reducer
from fuseflow.tensors import Tensor
from fuseflow.tensors.levels.base import Ints
from fuseflow.tensors.levels.compressed import CompressedFibers

if TYPE_CHECKING:
    from scipy import sparse
from collections.abc import Callable
from typing import TypeGuard

import numpy.typing as npt

from fuseflow.ops import Operator

LARGEST_SIZE = 1 << 62
"""The most elements of an array whose positions fit 64-bit integers."""
STORED_SHARE = 1 / 2
"""The largest share of elements that a sparse array may store. With more, its dense form is smaller."""


@dataclass(frozen=True, slots=True, eq=False)
class SparseArray:
    """An array of `shape`: element `positions[n]`, counted row by row, is `values[n]`, and every other one is `fill`. Positions ascend."""

    shape: tuple[int, ...]
    positions: Ints
    values: Array
    fill: float = 0.0

    @classmethod
    def of_tensor(cls, tensor: Tensor) -> SparseArray:
        """Return the elements of a tensor without tiles."""
        coordinates, values = tensor.entries()
        return cls.of_points(tensor.shape, coordinates, values.astype(np.float64), tensor.fill)

    @classmethod
    def of_points(cls, shape: tuple[int, ...], points: Ints, values: Array, fill: float = 0.0) -> SparseArray:
        """Return the array with these values at these points, which are all different. `points` is [rank, n]."""
        positions = flat_positions(shape, points)
        order = np.argsort(positions, kind="stable")
        return cls(shape, positions[order], values[order], fill)

    @classmethod
    def of_scipy(cls, matrix: Any) -> SparseArray:
        """Return the elements of a scipy array. Entries of one coordinate are added up."""
        from scipy import sparse  # see `tensors.pack.is_scipy`

        coo = sparse.coo_array(matrix)
        if coo.dtype != np.bool_:  # integers would wrap around
            coo = coo.astype(np.float64)
        coo.sum_duplicates()
        return cls.of_points(coo.shape, np.array(coo.coords, dtype=np.int64), coo.data.astype(np.float64))

    @property
    def size(self) -> int:
        """The number of elements, stored or not."""
        return math.prod(self.shape)

    @property
    def points(self) -> Ints:
        """The coordinates of the stored elements, as an array [rank, n]."""
        return np.array(np.unravel_index(self.positions, self.shape), dtype=np.int64).reshape(
            len(self.shape), len(self.positions)
        )

    def at(self, positions: Ints) -> Array:
        """Return the elements at these positions."""
        places = np.searchsorted(self.positions, positions)
        stored = places < len(self.positions)
        stored[stored] = self.positions[places[stored]] == positions[stored]
        out = np.full(len(positions), self.fill)
        out[stored] = self.values[places[stored]]
        return out

    def reshape(self, shape: Sequence[int]) -> SparseArray:
        """Return the same elements, in the same order, in another shape."""
        return SparseArray(tuple(shape), self.positions, self.values, self.fill)

    def transpose(self, axes: Sequence[int]) -> SparseArray:
        """Return the array with its axes in this order."""
        if tuple(axes) == tuple(range(len(self.shape))):
            return self
        return SparseArray.of_points(tuple(self.shape[a] for a in axes), self.points[list(axes)], self.values, self.fill)

    def toarray(self) -> Array:
        """Return the dense array."""
        out = np.full(self.size, self.fill)
        out[self.positions] = self.values
        return out.reshape(self.shape)

    def tocsr(self) -> sparse.csr_array:
        """Return the elements of a matrix whose implicit value is 0 as a scipy array."""
        from scipy import sparse  # see `tensors.pack.is_scipy`

        rows, columns = self.shape
        return sparse.csr_array((self.values, tuple(self.points)), shape=(rows, columns))


class TensorArray(SparseArray):
    """The elements of a tensor without tiles. Their positions are computed when they are first needed, and take several times the
    memory of the tensor."""

    __slots__ = ("_listed", "tensor")

    tensor: Tensor
    _listed: SparseArray | None

    def __init__(self, tensor: Tensor) -> None:
        for name, value in (("tensor", tensor), ("shape", tensor.shape), ("fill", tensor.fill), ("_listed", None)):
            object.__setattr__(self, name, value)

    @property
    def positions(self) -> Ints:
        return self._list().positions

    @property
    def values(self) -> Array:
        return self._list().values

    def tocsr(self) -> sparse.csr_array:
        """Return the elements of a matrix. One that is stored row by row shares its coordinates with the tensor."""
        tensor, (outer, inner) = self.tensor, self.tensor.levels
        if tensor.format.order != (0, 1) or not isinstance(inner, CompressedFibers) or inner.firsts is not None:
            return super().tocsr()
        from scipy import sparse  # see `tensors.pack.is_scipy`

        _, rows, _ = outer.expand(np.zeros(1, dtype=np.int64))
        counts = np.zeros(tensor.shape[0] + 1, dtype=np.int64)
        counts[rows + 1] = np.diff(inner.pos)
        pos = np.cumsum(counts, dtype=inner.crd.dtype if tensor.stored < 1 << 31 else np.int64)
        return sparse.csr_array((tensor.values.astype(np.float64), inner.crd, pos), shape=(tensor.shape[0], tensor.shape[1]))

    def _list(self) -> SparseArray:
        """Return the elements with their positions, which are computed once."""
        if self._listed is None:
            object.__setattr__(self, "_listed", SparseArray.of_tensor(self.tensor))
        assert self._listed is not None
        return self._listed


Operand: TypeAlias = Array | SparseArray
"""An operand of an Einsum: a dense array, or one that stores little."""


def dense(operand: Operand) -> Array:
    """Return the elements of an operand as a dense array."""
    return operand.toarray() if isinstance(operand, SparseArray) else operand


def flat_positions(shape: tuple[int, ...], points: Ints) -> Ints:
    """Return the positions of some points, counted row by row."""
    positions = np.zeros(points.shape[1], dtype=np.int64)
    for size, crds in zip(shape, points, strict=True):
        positions = positions * size + crds
    return positions


def to_operand(tensor: Tensor, largest: int) -> Operand:
    """Return the numbers of a tensor. It stays sparse if it has more than `largest` elements and stores few of them."""
    size = math.prod(tensor.shape)
    is_sparse = not tensor.tile and not tensor.format.all_dense and largest < size < LARGEST_SIZE
    if is_sparse and tensor.stored <= STORED_SHARE * size:
        return TensorArray(tensor)
    return tensor.to_dense().astype(np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class LabeledArray:
    """An array with the index name of each of its axes. Along every other index its values are equal."""

    array: npt.NDArray[Any]
    names: tuple[str, ...] = ()

    def map(self, function: Callable[[Any], Any]) -> LabeledArray:
        """Return the array after a function of its elements."""
        return LabeledArray(function(self.array), self.names)

    def over(self, names: Sequence[str]) -> npt.NDArray[Any]:
        """Return the array with its axes in the order of `names`, and with an axis of length 1 for each name that it lacks."""
        axes = [self.names.index(n) for n in names if n in self.names]
        shape = iter(self.array.shape[a] for a in axes)
        return self.array.transpose(axes).reshape([next(shape) if n in self.names else 1 for n in names])

    def at(self, points: Mapping[str, Ints]) -> Array:
        """Return the elements at these points, which are given by index. A number is the same at all of them."""
        return self.array[tuple(points[n] for n in self.names)]


@dataclass(frozen=True, slots=True, eq=False)
class LabeledSparse:
    """A sparse array with the index name of each of its axes. All names differ."""

    array: SparseArray
    names: tuple[str, ...]

    @property
    def sizes(self) -> dict[str, int]:
        """The extent of each index."""
        return dict(zip(self.names, self.array.shape, strict=True))

    def over(self, names: Sequence[str]) -> LabeledSparse:
        """Return the array with its axes in the order of `names`, which has all its names and no others."""
        return LabeledSparse(self.array.transpose([self.names.index(n) for n in names]), tuple(names))

    def at(self, points: Mapping[str, Ints]) -> Array:
        """Return the elements at these points, which are given by index."""
        columns = np.array([points[n] for n in self.names], dtype=np.int64)
        return self.array.at(flat_positions(self.array.shape, columns))

    def diagonal(self) -> LabeledSparse:
        """Return the elements at which equal names have equal coordinates, with each name once."""
        names = tuple(dict.fromkeys(self.names))
        if len(names) == len(self.names):
            return self
        points, first = self.array.points, [self.names.index(n) for n in self.names]
        on = (points == points[first]).all(axis=0)
        kept = [self.names.index(n) for n in names]
        shape = tuple(self.array.shape[a] for a in kept)
        array = SparseArray.of_points(shape, points[kept][:, on], self.array.values[on], self.array.fill)
        return LabeledSparse(array, names)

    def part(self, ranges: Mapping[str, slice]) -> LabeledSparse:
        """Return a part of the array. An index without a range has its whole extent."""
        points, starts, shape = self.array.points, list[int](), list[int]()
        inside = np.ones(points.shape[1], dtype=bool)
        for axis, (name, size) in enumerate(self.sizes.items()):
            start, stop, _ = ranges.get(name, slice(None)).indices(size)
            inside &= (points[axis] >= start) & (points[axis] < stop)
            starts.append(start)
            shape.append(stop - start)
        moved = points[:, inside] - np.array(starts, dtype=np.int64)[:, None]
        return LabeledSparse(SparseArray.of_points(tuple(shape), moved, self.array.values[inside], self.array.fill), self.names)

    def fold(self, reducer: Reducer, over: Sequence[str]) -> LabeledSparse:
        """Return the reduction over some indices. Elements that are not stored take part with their implicit value."""
        kept = tuple(n for n in self.names if n not in over)
        shape, count = tuple(self.sizes[n] for n in kept), math.prod(self.sizes[n] for n in over)
        points = self.array.points[[self.names.index(n) for n in kept]]
        positions, group, stored = np.unique(flat_positions(shape, points), return_inverse=True, return_counts=True)
        values = np.full(len(positions), reducer.identity)
        with np.errstate(all="ignore"):
            reducer.array.at(values, group, self.array.values)
            implicit = {missing: reducer.repeated(self.array.fill, missing) for missing in set((count - stored).tolist()) - {0}}
            rest = np.array([implicit.get(missing, reducer.identity) for missing in (count - stored).tolist()], dtype=np.float64)
            values = reducer.array(values, rest)
        return LabeledSparse(SparseArray(shape, positions, values, reducer.repeated(self.array.fill, count)), kept)

    def keep(self, rule: Rule, over: Sequence[str]) -> LabeledSparse:
        """Return the entries that a rule over some indices keeps of an array whose implicit value is 0."""
        last = self.over([*(n for n in self.names if n not in over), *over])
        array, extent = last.array, math.prod(self.sizes[n] for n in over)
        groups = array.positions // max(1, extent)
        if isinstance(rule, Largest) and rule.every:
            groups = groups * math.ceil(extent / rule.every) + array.positions % extent // rule.every
        mask = kept_entries(rule, array.values, groups)
        return LabeledSparse(SparseArray(array.shape, array.positions[mask], array.values[mask]), last.names).over(self.names)


Labeled = LabeledArray | LabeledSparse
"""A value of an expression, dense or sparse."""


def union(*values: Labeled) -> tuple[str, ...]:
    """Return the indices of several arrays, each once."""
    return tuple(dict.fromkeys(name for value in values for name in value.names))


def sparse_pointwise(row: Operator, operands: Sequence[Labeled], constants: Sequence[float | None]) -> LabeledSparse | None:
    """Apply an operator to operands; some are sparse. Return None if the result is not sparse.

    It is sparse if one operand has all the indices and annihilates outside of its stored elements, or if all operands that are not numbers
    are sparse and have the same indices. `constants` gives the value of each operand that is a constant of the program.
    """
    indices = set().union(*(set(operand.names) for operand in operands))
    for position, operand in enumerate(operands):
        if isinstance(operand, LabeledSparse) and set(operand.names) == indices:
            fixed = row.annihilated(position, operand.array.fill, constants)
            if fixed is not None:
                return _at_positions(row, operands, operand, operand.array.positions, fixed)
    first = next(operand for operand in operands if isinstance(operand, LabeledSparse))
    if any(set(o.names) != indices if isinstance(o, LabeledSparse) else o.names for o in operands):
        return None
    aligned = [o.over(first.names) if isinstance(o, LabeledSparse) else o for o in operands]
    positions = np.unique(np.concatenate([o.array.positions for o in aligned if isinstance(o, LabeledSparse)]))
    fills = [o.array.fill if isinstance(o, LabeledSparse) else float(o.array) for o in aligned]
    return _at_positions(row, aligned, first, positions, float(row(*fills)))


def _at_positions(row: Operator, operands: Sequence[Labeled], like: LabeledSparse, positions: Ints, fill: float) -> LabeledSparse:
    """Return the result of the operator `row` at some positions of an array with the shape of `like`, and `fill` elsewhere."""
    columns = SparseArray(like.array.shape, positions, np.zeros(0)).points
    points = dict(zip(like.names, columns, strict=True))
    values = np.broadcast_to(row(*(operand.at(points) for operand in operands)), positions.shape)
    return LabeledSparse(SparseArray(like.array.shape, positions, values, fill), like.names)


def sparse_product(factors: Sequence[Labeled], reduced: str, largest: int) -> Labeled | None:
    """Compute the sum of a product over the one index that its two factors share, where one is a sparse matrix. A product of two sparse
    matrices with more than `largest` elements is sparse. Return None for any other form, and where an infinity or a NaN takes part: there
    the annihilators of the operator table decide.
    """
    first, second = sorted(factors, key=lambda factor: not isinstance(factor, LabeledSparse))
    if not _is_matrix(first) or set(first.names) & set(second.names) != {reduced}:
        return None
    kept = next(name for name in first.names if name != reduced)
    left = first.array.tocsr() if first.names[1] == reduced else first.array.tocsr().T
    rest = tuple(name for name in second.names if name != reduced)
    if isinstance(second, LabeledSparse):
        if not _is_matrix(second):
            return None
        right = second.array.tocsr()
        product = left.tocsr() @ (right if second.names[0] == reduced else right.T.tocsr())
        if not np.isfinite(product.data).all():
            return None
        if math.prod(product.shape) <= largest:
            return LabeledArray(product.toarray(), (kept, *rest))
        return LabeledSparse(SparseArray.of_scipy(product), (kept, *rest))
    front = np.moveaxis(second.array, second.names.index(reduced), 0)
    if not np.isfinite(front).all():
        return None
    result: npt.NDArray[np.float64] = left @ front.reshape(front.shape[0], -1)
    result = result.reshape(left.shape[0], *front.shape[1:])
    return LabeledArray(result, (kept, *rest)) if np.isfinite(result).all() else None


def _is_matrix(operand: Labeled) -> TypeGuard[LabeledSparse]:
    """Return whether an operand is a sparse matrix with the implicit value 0."""
    return isinstance(operand, LabeledSparse) and len(operand.names) == 2 and operand.array.fill == 0
