"""The singleton level: one stored coordinate for each reference of its parent (the later levels of COO)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fuseflow.errors import TensorError
from fuseflow.tensors.levels.base import (
    Coordinates,
    Fibers,
    Ints,
    Level,
    Listed,
    Look,
    StoredArray,
    Walk,
    narrowed,
    run_starts,
    segments,
)


class SingletonFibers(Fibers):
    """Below reference r: the coordinates crd[r..stop[r]), with their positions as references.

    `stop` ends the run of entries that share the parent's coordinate (r + 1 below a unique parent). It is not stored: a scanner
    sees the end of a run in the parent's coordinates. If coordinates repeat here too (`unique=False`), a run of equal ones is one
    element and its first position is its reference.
    """

    __slots__ = ("crd", "starts", "stop")

    def __init__(self, size: int, crd: Ints, parent: Ints, unique: bool = True) -> None:
        super().__init__(size)
        self.crd = narrowed(crd, size)
        edges = np.flatnonzero(np.diff(parent) != 0) + 1
        bounds = np.concatenate((edges, [len(crd)])).astype(np.int64)
        self.stop = bounds[np.searchsorted(edges, np.arange(len(crd)), side="right")] if len(crd) else np.zeros(0, dtype=np.int64)
        self.starts = np.arange(len(crd), dtype=np.int64) if unique else np.flatnonzero(run_starts(parent, crd))

    def fiber(self, ref: int) -> tuple[Sequence[int], Sequence[int]]:
        a, b = np.searchsorted(self.starts, (ref, int(self.stop[ref])))
        refs = self.starts[a:b]
        return self.crd[refs].tolist(), refs.tolist()

    def expand(self, refs: Ints) -> tuple[Ints, Ints, Ints]:
        low, high = np.searchsorted(self.starts, refs), np.searchsorted(self.starts, self.stop[refs])
        owner, within = segments(high - low)
        positions = self.starts[low[owner] + within]
        return owner, self.crd[positions].astype(np.int64), positions

    def walk(self) -> Walk:
        return Listed.runs(self.crd, self.starts, np.arange(len(self.crd), dtype=np.int64), self.stop)

    def look(self) -> Look:
        stop = self.stop.tolist()

        def look(ref: int) -> tuple[Sequence[int], Sequence[int], int]:
            return *self.fiber(ref), stop[ref] - ref

        return look

    @property
    def entries(self) -> int:
        return len(self.crd)

    @property
    def elements(self) -> int:
        return len(self.starts)

    @property
    def arrays(self) -> Mapping[str, Coordinates]:
        return {"crd": self.crd}


@dataclass(frozen=True, slots=True)
class Singleton(Level):
    """One coordinate for each entry of a level whose coordinates repeat. `unique=False`: repeats too, more singletons follow."""

    unique: bool = True

    leads: ClassVar[bool] = True
    follows: ClassVar[bool] = True

    @property
    def text(self) -> str:
        return "singleton" if self.unique else "singleton(nonunique)"

    @property
    def mlir(self) -> str | None:
        return "singleton(soa)" if self.unique else "singleton(nonunique, soa)"

    def arrays(self, size: int) -> tuple[StoredArray, ...]:
        return (StoredArray("crd", "crd", entry=1),)

    def pack(self, size: int, parents: int, refs: Ints, prefixes: Ints, crds: Ints) -> tuple[Fibers, Ints]:
        if (np.diff(refs) == 0).any():
            raise TensorError(
                "a singleton level holds one coordinate for each entry of the level above it, and more are stored here",
                hint="let the coordinates of the levels above repeat, as `coo` does: `(compressed(nonunique), singleton)`",
            )
        return SingletonFibers(size, crds, prefixes, self.unique), refs
