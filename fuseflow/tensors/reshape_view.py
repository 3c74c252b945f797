"""Views of stored tensors in other dimensions, in which dense levels are split or merged and the values stay where they are.

(dense, compressed) of [768, 10]     seen as [12, 64, 10]     (dense, dense, compressed)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

from fuseflow.tensors.format import Format
from fuseflow.tensors.levels.base import Fibers
from fuseflow.tensors.pack import dense_levels
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
