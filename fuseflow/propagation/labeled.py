"""Arrays of attributes with the index of each axis, masks that are true at listed coordinates alone, and sums of products of both, without
the space of all their indices.

If only the pattern of a large sparse tensor is known, its numbers are unknown at the coordinates of its entries, and 0 elsewhere. A mask
of the tensor is then only computed at these coordinates, so that nothing dense is made of it.
"""

from __future__ import annotations

import math
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from fuseflow.einsum.nodes import Access, Index, index_names
from fuseflow.einsum.selections import read_affine
from fuseflow.einsum.sparse_arrays import LabeledArray, flat_positions, union
from fuseflow.tensors.levels.base import Ints

Bits: TypeAlias = npt.NDArray[np.bool_]

MAX_POINTS = 1 << 26
"""The most elements of an array of attributes. If a result has more, all of it counts as unknown, which is never wrong."""
_CHUNK = 1 << 22
"""The most elements of an array that is made for some of the entries at a time."""
EVERYWHERE = LabeledArray(np.asarray(True))
"""The mask that is true for all elements."""


@dataclass(frozen=True, slots=True, eq=False)
class Entries:
    """A mask over indices that is true at some of the listed coordinates: `crds[n]` are the coordinates of the index `names[n]`,
    and `mask` says where it is true."""

    crds: Ints
    mask: Bits
    names: tuple[str, ...] = ()

    def same_place(self, other: Entries) -> bool:
        """Return whether another mask has the same array of coordinates, for the same indices."""
        return self.crds is other.crds and self.names == other.names

    def at(self, mask: LabeledArray | Entries) -> Bits:
        """Return a mask at the listed coordinates. If the mask has indices that this one lacks, it counts as true where it is
        true for any of them. If it lists other coordinates, it counts as true."""
        if isinstance(mask, Entries):
            return mask.mask if self.same_place(mask) else np.ones(self.mask.shape, dtype=bool)
        own = any_over(mask, self.names)
        places = tuple(self.crds[self.names.index(name)] for name in own.names)
        return np.broadcast_to(own.array[places], self.mask.shape)

    def both(self, mask: LabeledArray | Entries) -> Entries:
        """Return this mask where `mask` is true, too, in the sense of `at`."""
        return replace(self, mask=self.mask & self.at(mask))

    def whole(self, sizes: Mapping[str, int]) -> LabeledArray:
        """Return the mask as an array over its indices."""
        array = np.zeros([sizes[name] for name in self.names], dtype=bool)
        array[tuple(self.crds[:, self.mask])] = True
        return LabeledArray(array, self.names)

    def any_over(self, names: Sequence[str], sizes: Mapping[str, int]) -> LabeledArray | Entries:
        """Return the mask over some of its indices: whether it is true for any of the others. It is true everywhere if it would have more
        than `MAX_POINTS` elements."""
        kept = [number for number, name in enumerate(self.names) if name in names]
        if len(kept) == len(self.names):
            return self
        shape = tuple(sizes[self.names[number]] for number in kept)
        if math.prod(shape) > MAX_POINTS:
            return EVERYWHERE
        array = np.zeros(shape, dtype=bool)
        array[tuple(self.crds[number][self.mask] for number in kept)] = True
        return LabeledArray(array, tuple(self.names[number] for number in kept))


Mask: TypeAlias = LabeledArray | Entries


def any_over(value: LabeledArray, names: Sequence[str]) -> LabeledArray:
    """Return a mask over the indices `names`: whether the mask is true for any coordinate of its other indices."""
    gone = tuple(axis for axis, name in enumerate(value.names) if name not in names)
    if not gone:
        return value
    return LabeledArray(np.asarray(value.array.any(axis=gone)), tuple(name for name in value.names if name in names))


def read(access: Access, array: npt.NDArray[Any], shape: tuple[int, ...], sizes: Mapping[str, int], outside: Any) -> LabeledArray:
    """Return the elements that an access reads from the array of a tensor of a shape. An element beyond the tensor is `outside`."""
    if not access.is_affine:
        changing = [index for index, extent in zip(access.indices, array.shape, strict=True) if extent != 1]
        names = index_names(tuple(changing))
        return _diagonal(array.reshape([sizes[name] for name in names]), names)
    full = np.broadcast_to(array, shape)
    numbers = np.arange(1, math.prod(shape) + 1, dtype=np.float64).reshape(shape)
    taken = read_affine(numbers, access.indices, sizes).astype(np.int64)  # 0 beyond the tensor
    flat = np.concatenate([np.asarray([outside], full.dtype), full.reshape(-1)])
    return _diagonal(flat[taken].reshape([sizes[name] for name in access.names]), access.names)


def written(access: Access, need: LabeledArray, shape: tuple[int, ...], sizes: Mapping[str, int]) -> Bits:
    """Return which elements of a tensor an access reads where the mask `need` over its indices is true. Dimensions of the result
    may have extent 1."""
    names = access.names
    if not access.is_affine and len(set(names)) == len(names):
        return tensor_array(access.indices, any_over(need, names), sizes)
    positions = read(access, np.arange(1, math.prod(shape) + 1).reshape(shape), shape, sizes, 0)
    space = union(positions, any_over(need, names))
    chosen = np.broadcast_arrays(positions.over(space), any_over(need, names).over(space))
    mask = np.zeros(math.prod(shape) + 1, dtype=bool)
    mask[chosen[0][chosen[1]]] = True
    return mask[1:].reshape(shape)


def tensor_array(indices: tuple[Index, ...], value: LabeledArray, sizes: Mapping[str, int]) -> npt.NDArray[Any]:
    """Return an array over indices as one over the dimensions of a tensor. A dimension along which nothing changes has extent 1."""
    names = index_names(indices)
    array, extents = value.over(names), []
    for index in indices:
        parts = index_names((index,))
        changes = any(name in value.names for name in parts)
        for name in parts if changes else ():
            array = np.repeat(array, sizes[name], names.index(name)) if name not in value.names else array
        extents.append(math.prod(sizes[name] for name in parts) if changes else 1)
    return array.reshape(extents)


def _diagonal(array: npt.NDArray[Any], names: Sequence[str]) -> LabeledArray:
    """Return an array with each index once: the diagonal is taken for an index that stands twice."""
    while len(set(names)) < len(names):
        name = next(n for n in names if list(names).count(n) > 1)
        first, second = [axis for axis, other in enumerate(names) if other == name][:2]
        array = np.moveaxis(np.diagonal(array, axis1=first, axis2=second), -1, first)
        names = [n for axis, n in enumerate(names) if axis != second]
    return LabeledArray(array, tuple(names))


def sampled(entries: Entries, others: Sequence[LabeledArray | Entries], sizes: Mapping[str, int]) -> Entries:
    """Return the listed coordinates at which all masks are true for some element of the indices that `entries` lack."""
    dense, mask = [], entries.mask.copy()
    for other in others:
        if isinstance(other, Entries) or set(other.names) <= set(entries.names):
            mask &= entries.at(other)
        else:
            dense.append(other)
    extra = tuple(name for name in union(*dense) if name not in entries.names)
    width = math.prod(sizes[name] for name in extra)
    places = np.flatnonzero(mask)
    for first in range(0, len(places), step := max(1, _CHUNK // max(1, width))):
        some = places[first : first + step]
        mask[some] = _product(entries, dense, extra, some).any(axis=tuple(range(1, len(extra) + 1)))
    return replace(entries, mask=mask)


def _product(entries: Entries, masks: Sequence[LabeledArray], extra: Sequence[str], places: Ints) -> Bits:
    """Return where all masks are true, at the listed coordinates numbered `places`, with one more axis for each `extra` index."""
    product = np.ones((len(places), *[1] * len(extra)), dtype=bool)
    for mask in masks:
        own = [name for name in mask.names if name in entries.names]
        array = mask.over([*own, *extra])
        gathered = array[tuple(entries.crds[entries.names.index(name)][places] for name in own)]
        product = product & (gathered if own else gathered[None])
    return product


def contracted(
    factors: Sequence[LabeledArray], kept: Sequence[str], over: Sequence[str], sizes: Mapping[str, int]
) -> LabeledArray:
    """Return the sum over `over` of the product of arrays, for each element of `kept`. An index of `over` that no array has
    multiplies the sum by its extent."""
    names = union(*factors)
    present = tuple(name for name in kept if name in names)
    letters = dict(zip(names, string.ascii_letters, strict=False))
    terms = ",".join("".join(letters[name] for name in factor.names) for factor in factors)
    arrays: list[Any] = [factor.array.astype(np.float64) for factor in factors]
    total = np.einsum(f"{terms}->{''.join(letters[name] for name in present)}", *arrays, optimize=len(factors) > 1)
    repeats = math.prod(sizes[name] for name in over if name not in names)
    return LabeledArray(np.asarray(total) * repeats, present)


def any_product(masks: Sequence[Mask], kept: Sequence[str], over: Sequence[str], sizes: Mapping[str, int]) -> LabeledArray:
    """Return the mask over `kept` that is true where all masks are, for some element of the other indices. It is true everywhere if it
    would have more than `MAX_POINTS` elements."""
    first = next((mask for mask in masks if isinstance(mask, Entries)), None)
    dense = [mask for mask in masks if isinstance(mask, LabeledArray)]
    if first is not None:
        return _any_of_entries(first, [mask for mask in masks if mask is not first], kept, sizes)
    return contracted(dense, kept, over, sizes).map(lambda count: count > 0.5)


def _any_of_entries(entries: Entries, others: Sequence[Mask], kept: Sequence[str], sizes: Mapping[str, int]) -> LabeledArray:
    """Return `any_product` of masks where one mask lists its coordinates: a product of a sparse matrix with a dense one."""
    dense = list[LabeledArray]()
    for other in others:
        if isinstance(other, LabeledArray) and not set(other.names) <= set(entries.names):
            dense.append(other)
        else:
            entries = entries.both(other)
    names = union(*dense)
    own = [name for name in kept if name in entries.names]
    shared = [name for name in names if name in entries.names]
    extra = [name for name in kept if name in names and name not in entries.names]
    if _points([*own, *extra], sizes) > MAX_POINTS or _points([*shared, *extra], sizes) > MAX_POINTS:
        return EVERYWHERE
    table = any_product(dense, [*shared, *extra], (), sizes).over([*shared, *extra]) if dense else np.ones((), dtype=bool)
    table = np.broadcast_to(table, [sizes[name] for name in (*shared, *extra)])
    counts = _incidence(entries, own, shared, sizes) @ table.reshape(_points(shared, sizes), -1).astype(np.float32)
    return LabeledArray(np.asarray(counts > 0).reshape([sizes[name] for name in (*own, *extra)]), (*own, *extra))


def _incidence(entries: Entries, rows: Sequence[str], columns: Sequence[str], sizes: Mapping[str, int]) -> Any:
    """Return a matrix of 0 and 1 of listed entries: its rows are the points of some indices, its columns the points of others."""
    from scipy import sparse  # takes long to load, and few programs have so large tensors

    numbers = []
    for names in (rows, columns):
        points = entries.crds[[entries.names.index(name) for name in names]][:, entries.mask]
        numbers.append(flat_positions(tuple(sizes[name] for name in names), points))
    ones = np.ones(len(numbers[0]), dtype=np.float32)
    return sparse.csr_array((ones, tuple(numbers)), shape=(_points(rows, sizes), _points(columns, sizes)))


def _points(names: Sequence[str], sizes: Mapping[str, int]) -> int:
    return math.prod(sizes[name] for name in names)
