"""Access to the fibers of a level, which counts the elements requested from memory."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any, TypeAlias, assert_never

from fuseflow.samml.tokens import N
from fuseflow.sim.memory.layout import ArrayKind
from fuseflow.tensors import Tensor
from fuseflow.tensors.levels.base import Computed, Listed

Fiber: TypeAlias = tuple[Sequence[int], Sequence[int]]
"""A fiber has coordinates, and the reference of each in the next level."""

EMPTY: Fiber = ((), ())


class FiberReader:
    """A function from a reference to the fiber below it, which is empty for `N`. `requested` counts the elements read of each array, by
    its kind. References are smaller than `parents`. `end` is the element behind the entries of the fiber that was read last."""

    def __init__(self, tensor: Tensor, level: int) -> None:
        fibers = tensor.levels[level]
        arrays = tensor.format.levels[level].arrays(fibers.size)
        self.scanned = tuple((array.kind, array.scanned) for array in arrays if array.scanned)
        self.entries = tuple(array.kind for array in arrays if array.entry)
        self.requested: dict[ArrayKind, int] = {array.kind: 0 for array in arrays}
        self.look = fibers.look()
        self.end = 0
        match walk := fibers.walk():
            case Computed() | Listed():
                self.parents: float = inf if walk.parents is None else walk.parents
            case _:
                assert_never(walk)

    def __call__(self, ref: Any) -> Fiber:
        if ref is N:
            return EMPTY
        crds, refs, entries = self.look(ref)
        for kind, count in self.scanned:
            self.requested[kind] += count
        for kind in self.entries:
            self.requested[kind] += entries
        self.end = refs[0] + entries if entries else 0
        return crds, refs
