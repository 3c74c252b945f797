"""Large sparse arrays in the meaning of a program: their dense form is never made, and work on them takes as long as their entries need.

An array that stores little has its values at some positions and `fill` everywhere else. Pointwise operators keep it so where one operand
annihilates outside of its positions, or where all operands have the same indices. Reductions always keep it so.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from fuseflow.ops import Array, Reducer
from fuseflow.selection import Largest, Rule, kept_entries
from fuseflow.tensors import Tensor
from fuseflow.tensors.levels.base import Ints

if TYPE_CHECKING:
    from scipy import sparse

LARGEST_SIZE = 1 << 62
"""The most elements of an array whose positions fit 64-bit integers."""


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


Operand: TypeAlias = Array | SparseArray
"""An operand of an Einsum: a dense array, or one that stores little."""


def flat_positions(shape: tuple[int, ...], points: Ints) -> Ints:
    """Return the positions of some points, counted row by row."""
    positions = np.zeros(points.shape[1], dtype=np.int64)
    for size, crds in zip(shape, points, strict=True):
        positions = positions * size + crds
    return positions


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
