"""Arrays of attributes with the index of each axis. Along an index that is not named, all values are equal."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fuseflow.einsum.affine_read import read_affine
from fuseflow.einsum.nodes import Access, Affine, Index, Split, index_names


@dataclass(frozen=True, slots=True, eq=False)
class Labeled:
    """An array with the index of each of its axes. Along every other index its values are equal."""

    array: npt.NDArray[Any]
    names: tuple[str, ...] = ()

    def over(self, names: Sequence[str]) -> npt.NDArray[Any]:
        """Return the array with its axes in the order of `names`, and extent 1 for each name that it lacks."""
        axes = [self.names.index(n) for n in names if n in self.names]
        shape = iter(self.array.shape[a] for a in axes)
        return self.array.transpose(axes).reshape([next(shape) if n in self.names else 1 for n in names])

    def map(self, function: Any) -> Labeled:
        """Return the array after a function of its elements."""
        return Labeled(function(self.array), self.names)


def union(*values: Labeled) -> tuple[str, ...]:
    """Return the indices of several arrays, each once."""
    return tuple(dict.fromkeys(name for value in values for name in value.names))


def any_over(value: Labeled, names: Sequence[str]) -> Labeled:
    """Return a mask over the indices `names`: whether the mask is true for any coordinate of its other indices."""
    gone = tuple(axis for axis, name in enumerate(value.names) if name not in names)
    return Labeled(np.asarray(value.array.any(axis=gone)), tuple(name for name in value.names if name in names))


def read(access: Access, array: npt.NDArray[Any], shape: tuple[int, ...], sizes: Mapping[str, int], outside: Any) -> Labeled:
    """Return the elements that an access reads from the array of a tensor of a shape. An element beyond the tensor is `outside`."""
    if _is_whole(access.indices):
        extents, names = [], []
        for index, extent in zip(access.indices, array.shape, strict=True):
            parts = _parts(index, sizes) if extent != 1 else []
            extents += [size for _, size in parts]
            names += [name for name, _ in parts]
        return _diagonal(array.reshape(extents), names)
    full = np.broadcast_to(array, shape)
    numbers = np.arange(1, math.prod(shape) + 1, dtype=np.float64).reshape(shape)
    taken = read_affine(numbers, access.indices, sizes).astype(np.int64)  # 0 beyond the tensor
    flat = np.concatenate([np.asarray([outside], full.dtype), full.reshape(-1)])
    names = list(access.names)
    return _diagonal(flat[taken].reshape([sizes[name] for name in names]), names)


def written(access: Access, need: Labeled, shape: tuple[int, ...], sizes: Mapping[str, int]) -> npt.NDArray[np.bool_]:
    """Return which elements of a tensor an access reads where the mask `need` over its indices is true. Dimensions of the result
    may have extent 1."""
    names = access.names
    if _is_whole(access.indices) and len(set(names)) == len(names):
        return tensor_array(access.indices, any_over(need, names), sizes)
    positions = read(access, np.arange(1, math.prod(shape) + 1).reshape(shape), shape, sizes, 0)
    space = union(positions, any_over(need, names))
    chosen = np.broadcast_arrays(positions.over(space), any_over(need, names).over(space))
    mask = np.zeros(math.prod(shape) + 1, dtype=bool)
    mask[chosen[0][chosen[1]]] = True
    return mask[1:].reshape(shape)


def tensor_array(indices: tuple[Index, ...], value: Labeled, sizes: Mapping[str, int]) -> npt.NDArray[Any]:
    """Return an array over indices as one over the dimensions of a tensor. A dimension along which nothing changes has extent 1."""
    names = index_names(indices)
    array, extents = value.over(names), []
    for index in indices:
        parts = [name for name, _ in _parts(index, sizes)]
        changes = any(name in value.names for name in parts)
        for name in parts if changes else ():
            array = np.repeat(array, sizes[name], names.index(name)) if name not in value.names else array
        extents.append(math.prod(sizes[name] for name in parts) if changes else 1)
    return array.reshape(extents)


def is_plain(access: Access) -> bool:
    """Return whether an access reads each dimension along one index of its own."""
    return all(isinstance(index, str) for index in access.indices) and len(set(access.names)) == len(access.names)


def _is_whole(indices: tuple[Index, ...]) -> bool:
    return not any(isinstance(index, Affine) for index in indices)


def _parts(index: Index, sizes: Mapping[str, int]) -> list[tuple[str, int]]:
    """Return the indices of a dimension, the outer one first, with their extents; none for an affine index."""
    return [(name, sizes[name]) for name in index_names((index,))] if isinstance(index, str | Split) else []


def _diagonal(array: npt.NDArray[Any], names: Sequence[str]) -> Labeled:
    """Return an array with each index once: the diagonal is taken for an index that stands twice."""
    while len(set(names)) < len(names):
        name = next(n for n in names if list(names).count(n) > 1)
        first, second = [axis for axis, other in enumerate(names) if other == name][:2]
        array = np.moveaxis(np.diagonal(array, axis1=first, axis2=second), -1, first)
        names = [n for axis, n in enumerate(names) if axis != second]
    return Labeled(array, tuple(names))
