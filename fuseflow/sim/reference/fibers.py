"""Reading the fibers of a level, counting what is requested from memory."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any, TypeAlias

from fuseflow.samml.tokens import N
from fuseflow.sim.outcome.statistics import Array
from fuseflow.tensors.levels import Fibers
from fuseflow.tensors.levels.compressed import CompressedFibers
from fuseflow.tensors.levels.singleton import SingletonFibers

Fiber: TypeAlias = tuple[Sequence[int], Sequence[int]]
"""Coordinates, and the reference of each in the next level."""

EMPTY: Fiber = ((), ())


class FiberReader:
    """The fiber below a reference; `N` has an empty one. `requested` counts the elements read of each array: pos, crd. References are
    below `parents`.

    This one is for computed levels, which read nothing.
    """

    def __init__(self, level: Fibers) -> None:
        self.level = level
        self.requested: dict[Array, int] = {}
        # A level of size 0 does not say how many parents it has; it is the same below all.
        self.parents: float = level.entries // level.size if level.size else inf

    def __call__(self, ref: Any) -> Fiber:
        return EMPTY if ref is N else self.level.fiber(ref)


class CompressedReader(FiberReader):
    """Reads pos[r] and pos[r+1], then the coordinates between them; of equal ones in a row (`unique=False`) the first counts."""

    level: CompressedFibers

    def __init__(self, level: CompressedFibers) -> None:
        super().__init__(level)
        self.requested = {"pos": 0, "crd": 0}
        self.pos: list[int] = level.pos.tolist()
        self.parents = len(self.pos) - 1
        self.crd: list[int] = level.crd.tolist()

    def __call__(self, ref: Any) -> Fiber:
        if ref is N:
            return EMPTY
        low, high = self.pos[ref], self.pos[ref + 1]
        self.requested["pos"] += 2
        self.requested["crd"] += high - low
        return (self.crd[low:high], range(low, high)) if self.level.firsts is None else self.level.fiber(ref)


class SingletonReader(FiberReader):
    """Reads the coordinates of all entries that share the parent's coordinate."""

    level: SingletonFibers

    def __init__(self, level: SingletonFibers) -> None:
        super().__init__(level)
        self.requested = {"crd": 0}
        self.parents = len(level.crd)

    def __call__(self, ref: Any) -> Fiber:
        if ref is N:
            return EMPTY
        self.requested["crd"] += int(self.level.stop[ref]) - ref
        return self.level.fiber(ref)


def reader(level: Fibers) -> FiberReader:
    match level:
        case CompressedFibers():
            return CompressedReader(level)
        case SingletonFibers():
            return SingletonReader(level)
        case _:
            return FiberReader(level)
