"""The restriction of a tensor: some coordinates of one mode, numbered again from 0, with all that is stored below them.

rows 1 and 3 of a matrix in (dense, compressed)     a matrix of two rows in (dense, compressed)
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from fuseflow.tensors.levels.base import Fibers, Ints
from fuseflow.tensors.pack import from_coordinates
from fuseflow.tensors.tensor import Tensor


def restrict(tensor: Tensor, mode: int, coordinates: Ints) -> Tensor:
    """Return the tensor at some `coordinates` of a mode, which ascend. Its levels are the tensor's: explicit zeros and empty
    fibers stay, and the restriction to all coordinates stores what the tensor stores.

    >>> from fuseflow.tensors import Format, pack
    >>> tensor = pack([[0, 5], [0, 0], [7, 0]], Format.parse("csr", 2))
    >>> restrict(tensor, 0, np.array([1, 2])).to_dense().tolist()
    [[0, 0], [7, 0]]
    """
    shape = tuple(len(coordinates) if d == mode else size for d, size in enumerate(tensor.shape))
    number = np.full(tensor.shape[mode], -1, dtype=np.int64)
    number[coordinates] = np.arange(len(coordinates))
    if tensor.format.all_dense:
        stored = tensor.values.reshape([*(tensor.shape[d] for d in tensor.format.order), *tensor.tile])
        values = stored.take(coordinates, axis=tensor.format.order.index(mode)).reshape(-1, *tensor.tile)
        return Tensor(
            shape,
            tensor.format,
            tuple(_dense_levels(tensor, 0, 1, [shape[d] for d in tensor.format.order])),
            values,
            tensor.fill,
            tensor.type,
        )
    if not all(level.appended for level in tensor.format.levels):
        return _from_entries(tensor, mode, shape, number)
    levels, refs = list[Fibers](), np.zeros(1, dtype=np.int64)
    reached = _levels_above_dense_tail(tensor, mode)
    for level, fibers, d in list(zip(tensor.format.levels, tensor.levels, tensor.format.order, strict=True))[:reached]:
        owner, crds, below = fibers.expand(refs)
        if d == mode:
            crds = number[crds]
            owner, crds, below = (column[crds >= 0] for column in (owner, crds, below))
        ends = np.searchsorted(owner, np.arange(len(refs) + 1)).astype(np.int64)
        levels.append(level.append(shape[d], len(refs), ends, crds))
        refs = below
    tail = [shape[d] for d in tensor.format.order[reached:]]
    entries, each = tensor.levels[reached - 1].entries, math.prod(tail)
    values = tensor.values.reshape(entries, each, *tensor.tile)[refs].reshape(len(refs) * each, *tensor.tile)
    return Tensor(
        shape, tensor.format, (*levels, *_dense_levels(tensor, reached, len(refs), tail)), values, tensor.fill, tensor.type
    )


def _levels_above_dense_tail(tensor: Tensor, mode: int) -> int:
    """Return the number of levels above the dense tail: down to the level of the mode and to the last level that is not dense."""
    kinds = zip(tensor.format.levels, tensor.format.order, strict=True)
    return max(p + 1 for p, (level, d) in enumerate(kinds) if d == mode or not level.full)


def _dense_levels(tensor: Tensor, first: int, parents: int, sizes: Sequence[int]) -> list[Fibers]:
    levels, none = list[Fibers](), np.zeros(0, dtype=np.int64)
    for level, size in zip(tensor.format.levels[first:], sizes, strict=True):
        levels.append(level.append(size, parents, none, none))
        parents *= size
    return levels


def _from_entries(tensor: Tensor, mode: int, shape: tuple[int, ...], number: Ints) -> Tensor:
    """Return the restriction by packing the kept entries anew: for a format that stores only entries, as COO does, or that adds
    entries itself. `number` has the new number of each coordinate of the mode, or -1."""
    entries, values = tensor.entries()
    kept = number[entries[mode]] >= 0
    entries = entries[:, kept]
    entries[mode] = number[entries[mode]]
    return from_coordinates(shape, entries, values[kept], tensor.format, tensor.fill, tensor.type)
