"""Reshapes as splits of one dimension into two and merges of two dimensions into one. Dimensions of extent 1 do not count."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from fuseflow.frontend.linalg.unit_dimensions import squeeze_shape


@dataclass(frozen=True, slots=True)
class DimensionSplit:
    """A split of `dimension` into two dimensions; the inner one has the extent `size`."""

    dimension: int
    size: int


@dataclass(frozen=True, slots=True)
class DimensionMerge:
    """A merge of `dimension` and the next one into a single dimension."""

    dimension: int


def reshape_steps(
    source: tuple[int, ...], result: tuple[int, ...], groups: Sequence[Sequence[int]]
) -> list[DimensionSplit | DimensionMerge]:
    """Return the steps of a `tensor.expand_shape` or a `tensor.collapse_shape`.

    `groups` is the reassociation of the operation: for each dimension of the shorter shape, the dimensions of the longer one.

    >>> reshape_steps((1, 5, 6), (1, 5, 2, 3), [[0], [1], [2, 3]])
    [DimensionSplit(dimension=1, size=3)]
    >>> reshape_steps((5, 2, 3), (5, 6), [[0], [1, 2]])
    [DimensionMerge(dimension=1)]
    """
    longer, expands = (result, True) if len(result) > len(source) else (source, False)
    parts = [part for part in (squeeze_shape(tuple(longer[p] for p in group)) for group in groups) if part]
    steps: list[DimensionSplit | DimensionMerge] = []
    dimension = 0
    for part in parts:
        if expands:
            steps += [DimensionSplit(dimension + n, math.prod(part[n + 1 :])) for n in range(len(part) - 1)]
            dimension += len(part)
        else:
            steps += [DimensionMerge(dimension)] * (len(part) - 1)
            dimension += 1
    return steps
