"""The concatenation of tensors along the mode that is outermost in storage. It undoes restrictions to consecutive coordinates.

rows 0 and 1 of a matrix, rows 2 to 4 of it     the matrix of five rows, stored as if it had been packed at once
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fuseflow.tensors.levels.base import Coordinates, Fibers, Ints, Listed
from fuseflow.tensors.tensor import Tensor


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
