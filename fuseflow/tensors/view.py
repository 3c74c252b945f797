"""A stored tensor seen in other dimensions: dense levels taken apart or together, the same values at the same places.

(dense, compressed) of [768, 10]     seen as [12, 64, 10]     (dense, dense, compressed)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from fuseflow.tensors.format import Format
from fuseflow.tensors.levels.base import Fibers
from fuseflow.tensors.tensor import Tensor

DimensionGroups: TypeAlias = Sequence[Sequence[str]]
"""For each dimension the names of its parts, outermost first."""


def regroup_format(format: Format, before: DimensionGroups, after: DimensionGroups) -> Format | None:
    """How a tensor is stored whose parts are grouped to other dimensions, or None if that is no way to see what is stored: a level
    would come apart that is not dense, or levels together that are not dense and next to each other, the outer one above."""
    stored = [part for d in format.order for part in before[d]]
    full = {part for level, d in zip(format.levels, format.order, strict=True) if level.full for part in before[d]}
    if any(len(parts) > 1 and not full.issuperset(parts) for parts in (*before, *after)):
        return None
    home = {part: d for d, parts in enumerate(after) for part in parts}
    order = list(dict.fromkeys(home[part] for part in stored))
    if [part for d in order for part in after[d]] != stored:
        return None
    level = {part: level.text for level, d in zip(format.levels, format.order, strict=True) for part in before[d]}
    return Format.of(*(level[after[d][0]] for d in order), order=tuple(order))


def regroup_tensor(tensor: Tensor, format: Format, shape: tuple[int, ...]) -> Tensor:
    """The tensor in a format that `seen_format` gives, with the extents of its new dimensions. Nothing is copied."""
    sparse = iter(fibers for fibers, level in zip(tensor.levels, tensor.format.levels, strict=True) if not level.full)
    levels, parents = list[Fibers](), 1
    none = np.zeros(0, dtype=np.int64)
    for level, d in zip(format.levels, format.order, strict=True):
        levels.append(level.pack(shape[d], parents, none, none, none)[0] if level.full else next(sparse))
        parents = levels[-1].entries
    assert math.prod(shape) == math.prod(tensor.shape) and parents == tensor.stored
    return Tensor(shape, format, tuple(levels), tensor.values, tensor.fill)
