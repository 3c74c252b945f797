"""Restrictions of tensors to some coordinates of a mode, and concatenation, which undoes those to consecutive coordinates of the outermost.

rows 1 and 3 of a matrix in (dense, compressed)     a matrix of two rows in (dense, compressed)

Views show stored tensors in other dimensions, in which dense levels are split or merged and the values stay where they are:
(dense, compressed) of [768, 10]     seen as [12, 64, 10]     (dense, dense, compressed)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from fuseflow.tensors.format import Format
from fuseflow.tensors.levels.base import Coordinates, Fibers, Ints, Listed
from fuseflow.tensors.pack import dense_levels, from_coordinates
from fuseflow.tensors.tensor import Tensor

DimensionGroups: TypeAlias = Sequence[Sequence[str]]
"""For each dimension of a tensor, the names of the parts that it consists of, outermost first."""


def regroup_format(format: Format, before: DimensionGroups, after: DimensionGroups) -> Format | None:
    """Return the format of a tensor whose dimensions are regrouped from `before` to `after`, or None if the stored tensor has no such view.

    A view can split dense levels only. It can merge levels only if they are dense and follow each other in storage, the outer one first.
    """
    stored = [part for d in format.order for part in before[d]]
    full = {part for level, d in zip(format.levels, format.order, strict=True) if level.full for part in before[d]}
    if any(len(parts) > 1 and not full.issuperset(parts) for parts in (*before, *after)):
        return None
    dimension = {part: d for d, parts in enumerate(after) for part in parts}
    order = list(dict.fromkeys(dimension[part] for part in stored))
    if [part for d in order for part in after[d]] != stored:
        return None
    level = {part: level.text for level, d in zip(format.levels, format.order, strict=True) for part in before[d]}
    regrouped = Format.of(*(level[after[d][0]] for d in order), order=tuple(order))
    return replace(regrouped, complete=format.complete)


def regroup_tensor(tensor: Tensor, format: Format, shape: tuple[int, ...]) -> Tensor:
    """Return a view of a tensor in a format that `regroup_format` returned. `shape` has the extents of the new dimensions; no
    values are copied."""
    sparse = iter(fibers for fibers, level in zip(tensor.levels, tensor.format.levels, strict=True) if not level.full)
    levels, parents = list[Fibers](), 1
    for level, d in zip(format.levels, format.order, strict=True):
        levels += dense_levels([level], [shape[d]], parents) if level.full else [next(sparse)]
        parents = levels[-1].entries
    assert math.prod(shape) == math.prod(tensor.shape) and parents == tensor.stored
    return Tensor(shape, format, tuple(levels), tensor.values, tensor.fill, tensor.type)


def restrict(tensor: Tensor, mode: int, coordinates: Ints) -> Tensor:
    """Return the tensor at some `coordinates` of a mode, which ascend. Its levels are the tensor's: explicit zeros and empty
    fibers stay, and the restriction to all coordinates stores what the tensor stores.

    >>> from fuseflow.tensors import Format, pack
    >>> tensor = pack([[0, 5], [0, 0], [7, 0]], Format.parse("csr", 2))
    >>> restrict(tensor, 0, np.array([1, 2])).to_dense().tolist()
    [[0, 0], [7, 0]]
    """
    format, tile = tensor.format, tensor.tile
    shape = tuple(len(coordinates) if d == mode else size for d, size in enumerate(tensor.shape))
    sizes = [shape[d] for d in format.order]
    number = np.full(tensor.shape[mode], -1, dtype=np.int64)
    number[coordinates] = np.arange(len(coordinates))
    if format.all_dense:
        stored = tensor.values.reshape([*(tensor.shape[d] for d in format.order), *tile])
        values = stored.take(coordinates, axis=format.order.index(mode)).reshape(-1, *tile)
        return Tensor(shape, format, dense_levels(format.levels, sizes), values, tensor.fill, tensor.type)
    if not all(level.appended for level in format.levels):
        # COO, for example, stores only entries, and others add entries themselves: the kept entries are packed anew.
        entries, elements = tensor.entries()
        kept = number[entries[mode]] >= 0
        entries = entries[:, kept]
        entries[mode] = number[entries[mode]]
        return from_coordinates(shape, entries, elements[kept], format, tensor.fill, tensor.type)
    levels, refs = list[Fibers](), np.zeros(1, dtype=np.int64)
    kinds = list(zip(format.levels, tensor.levels, format.order, strict=True))
    # The dense tail is below the level of the mode and the last level that is not dense.
    reached = max(p + 1 for p, (level, _, d) in enumerate(kinds) if d == mode or not level.full)
    for level, fibers, d in kinds[:reached]:
        owner, crds, below = fibers.expand(refs)
        if d == mode:
            crds = number[crds]
            owner, crds, below = (column[crds >= 0] for column in (owner, crds, below))
        ends = np.searchsorted(owner, np.arange(len(refs) + 1)).astype(np.int64)
        levels.append(level.append(shape[d], len(refs), ends, crds))
        refs = below
    stored_below, each = tensor.levels[reached - 1].entries, math.prod(sizes[reached:])
    values = tensor.values.reshape(stored_below, each, *tile)[refs].reshape(len(refs) * each, *tile)
    levels += dense_levels(format.levels[reached:], sizes[reached:], len(refs))
    return Tensor(shape, format, tuple(levels), values, tensor.fill, tensor.type)


def concatenate(parts: Sequence[Tensor]) -> Tensor:
    """Return the tensor that has the coordinates of all `parts` in its outermost mode, part after part. They agree in everything else, and
    all their levels are `appended`: explicit zeros and empty fibers stay.

    >>> from fuseflow.tensors import Format, pack
    >>> concatenate([pack(rows, Format.parse("csr", 2)) for rows in ([[0, 5]], [[0, 0], [7, 0]])]).to_dense().tolist()
    [[0, 5], [0, 0], [7, 0]]
    """
    first = parts[0]
    if len(parts) == 1:
        return first
    outermost = first.format.order[0]
    shape = tuple(sum(part.shape[d] for part in parts) if d == outermost else size for d, size in enumerate(first.shape))
    levels, parents, none = list[Fibers](), 1, np.zeros(0, dtype=np.int64)
    for p, (level, d) in enumerate(zip(first.format.levels, first.format.order, strict=True)):
        pos, crd = (none, none) if level.full else _joined([part.levels[p] for part in parts], is_outermost=p == 0)
        levels.append(level.append(shape[d], parents, pos, crd))
        parents = levels[-1].entries
    return Tensor(shape, first.format, tuple(levels), np.concatenate([part.values for part in parts]), first.fill, first.type)


def _joined(parts: Sequence[Fibers], is_outermost: bool) -> tuple[Ints, Coordinates]:
    """Return the positions and coordinates of the fibers of all parts. The outermost level has one fiber, for all parts."""
    listed = [_listed(fibers) for fibers in parts]
    ends = np.cumsum([0, *(len(crd) for _, crd in listed)])
    if is_outermost:
        offsets = np.cumsum([0, *(fibers.size for fibers in parts)])
        crds = [crd + crd.dtype.type(offset) for (_, crd), offset in zip(listed, offsets, strict=False)]
        return ends[[0, -1]], np.concatenate(crds)
    pos = [pos[1:] + end for (pos, _), end in zip(listed, ends, strict=False)]
    return np.concatenate([ends[:1], *pos]), np.concatenate([crd for _, crd in listed])


def _listed(fibers: Fibers) -> tuple[Ints, Coordinates]:
    """Return the positions at which the fibers of a level begin and end, and its coordinates."""
    walk = fibers.walk()
    if isinstance(walk, Listed) and walk.pos is not None:
        return walk.pos, walk.crds
    assert isinstance(walk, Listed)
    owner, crds, _ = fibers.expand(np.arange(walk.parents, dtype=np.int64))
    return np.searchsorted(owner, np.arange(walk.parents + 1)).astype(np.int64), crds
