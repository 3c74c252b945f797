"""The dense level: every coordinate is there, nothing is stored; the reference is computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fuseflow.tensors.levels.base import Computed, Coordinates, Fibers, Ints, Level, StoredArray, Walk


class DenseFibers(Fibers):
    """Below reference r: coordinates 0..size-1 with references r*size + coordinate."""

    __slots__ = ("parents",)

    def __init__(self, size: int, parents: int) -> None:
        super().__init__(size)
        self.parents = parents

    def fiber(self, ref: int) -> tuple[Sequence[int], Sequence[int]]:
        return range(self.size), range(ref * self.size, (ref + 1) * self.size)

    def expand(self, refs: Ints) -> tuple[Ints, Ints, Ints]:
        owner = np.repeat(np.arange(len(refs), dtype=np.int64), self.size)
        crds = np.tile(np.arange(self.size, dtype=np.int64), len(refs))
        return owner, crds, refs[owner] * self.size + crds

    def walk(self) -> Walk:
        # A level without coordinates is the same below any number of parents.
        return Computed(self.size, self.parents if self.size else None)

    def locate(self, ref: int, crd: int) -> int | None:
        return ref * self.size + crd

    @property
    def entries(self) -> int:
        return self.parents * self.size


@dataclass(frozen=True, slots=True)
class Dense(Level):
    """Every coordinate of the dimension, in order, below every parent."""

    text: ClassVar[str] = "dense"
    full: ClassVar[bool] = True
    located: ClassVar[bool] = True
    appended: ClassVar[bool] = True
    public: ClassVar[str] = "dense"
    mlir: ClassVar[str] = "dense"

    def arrays(self, size: int) -> tuple[StoredArray, ...]:
        return ()

    def pack(self, size: int, parents: int, refs: Ints, prefixes: Ints, crds: Ints) -> tuple[Fibers, Ints]:
        return DenseFibers(size, parents), refs * size + crds

    def append(self, size: int, parents: int, pos: Ints, crd: Coordinates) -> Fibers:
        return DenseFibers(size, parents)

    def read(self, size: int, parents: int, arrays: Mapping[str, Ints]) -> Fibers:
        return DenseFibers(size, parents)
