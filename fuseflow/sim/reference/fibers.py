"""Access to the fibers of a level, which counts the elements requested from memory."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any, assert_never

from fuseflow.memory.layout import ArrayKind
from fuseflow.samml.tokens import N
from fuseflow.sim.reference.process import Process
from fuseflow.tensors import Tensor
from fuseflow.tensors.levels.base import Computed, Listed


class FiberReader:
    """A call opens the fiber below a reference (empty for `N`) and returns its size. Then `crds` has the coordinates of the
    fiber, `refs` the reference of each in the next level, and `end` the element after the entries of the fiber. `requested`
    counts the elements read of each array, by its kind. References are smaller than `parents`."""

    crds: Sequence[int]
    refs: Sequence[int]
    size = end = 0

    def __init__(self, tensor: Tensor, level: int) -> None:
        fibers = tensor.levels[level]
        arrays = tensor.format.levels[level].arrays(fibers.size)
        self.scanned = tuple((array.kind, array.scanned) for array in arrays if array.scanned)
        self.entries = tuple(array.kind for array in arrays if array.entry)
        self.requested: dict[ArrayKind, int] = {array.kind: 0 for array in arrays}
        self.look = fibers.look()
        match walk := fibers.walk():
            case Computed() | Listed():
                self.parents: float = inf if walk.parents is None else walk.parents
            case _:
                assert_never(walk)

    def __call__(self, p: Process, ref: Any) -> int:
        """Open the fiber below a reference, for the process `p`, and return its size. Raises `SimulationError` if the tensor has
        no such reference."""
        if ref is N:
            self.crds, self.refs, self.size = (), (), 0
            return 0
        if not 0 <= ref < self.parents:
            raise p.outside()
        self.crds, self.refs, entries = self.look(ref)
        self.size = len(self.crds)
        for kind, count in self.scanned:
            self.requested[kind] += count
        for kind in self.entries:
            self.requested[kind] += entries
        self.end = self.refs[0] + entries if entries else 0
        return self.size


class RangeReader:
    """The reader of a `range`, whose fibers all have the coordinates 0 to `size` - 1."""

    def __init__(self, size: int) -> None:
        self.crds = self.refs = range(size)
        self.size = size

    def __call__(self, p: Process, ref: Any) -> int:
        return self.size
