"""The compressed level: stored coordinates between two positions (the `pos`/`crd` arrays of TACO and MLIR)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fuseflow.tensors.levels.base import Fibers, Ints, Level, segments


class CompressedFibers(Fibers):
    """Below reference r: the coordinates crd[pos[r]..pos[r+1]), with their positions as references.

    If coordinates repeat (`unique=False`), a run of equal ones is one element of the fiber and its reference is the run's first
    position: `firsts` lists those positions.
    """

    __slots__ = ("crd", "firsts", "pos")

    def __init__(self, size: int, pos: Ints, crd: Ints, unique: bool = True) -> None:
        super().__init__(size)
        self.pos, self.crd = pos, crd
        self.firsts = None if unique else _run_starts(pos, crd)

    def fiber(self, ref: int) -> tuple[Sequence[int], Sequence[int]]:
        low, high = int(self.pos[ref]), int(self.pos[ref + 1])
        if self.firsts is None:
            return self.crd[low:high].tolist(), range(low, high)
        a, b = np.searchsorted(self.firsts, (low, high))
        refs = self.firsts[a:b]
        return self.crd[refs].tolist(), refs.tolist()

    def expand(self, refs: Ints) -> tuple[Ints, Ints, Ints]:
        if self.firsts is None:
            low, high = self.pos[refs], self.pos[refs + 1]
            owner, within = segments(high - low)
            found = low[owner] + within
        else:
            low, high = np.searchsorted(self.firsts, self.pos[refs]), np.searchsorted(self.firsts, self.pos[refs + 1])
            owner, within = segments(high - low)
            found = self.firsts[low[owner] + within]
        return owner, self.crd[found], found

    @property
    def entries(self) -> int:
        return len(self.crd)

    @property
    def elements(self) -> int:
        return len(self.crd) if self.firsts is None else len(self.firsts)

    @property
    def arrays(self) -> dict[str, Ints]:
        return {"seg": self.pos, "crd": self.crd}


@dataclass(frozen=True, slots=True)
class Compressed(Level):
    """Only coordinates below which something is stored. `unique=False`: one coordinate for each entry of the singleton levels
    that follow, so equal ones repeat (the first level of COO)."""

    unique: bool = True

    @property
    def text(self) -> str:
        return "compressed" if self.unique else "compressed(nonunique)"

    def pack(self, size: int, parents: int, refs: Ints, prefixes: Ints, crds: Ints) -> tuple[Fibers, Ints]:
        if self.unique:
            first = np.ones(len(crds), dtype=bool)
            first[1:] = (np.diff(refs) != 0) | (np.diff(crds) != 0)
            below = np.cumsum(first) - 1
            refs, crds = refs[first], crds[first]
        else:
            below = np.arange(len(crds), dtype=np.int64)
        pos = np.zeros(parents + 1, dtype=np.int64)
        np.cumsum(np.bincount(refs, minlength=parents), out=pos[1:])
        return CompressedFibers(size, pos, crds.copy(), self.unique), below


def _run_starts(pos: Ints, crd: Ints) -> Ints:
    first = np.ones(len(crd), dtype=bool)
    first[1:] = np.diff(crd) != 0
    first[pos[:-1][pos[:-1] < len(crd)]] = True
    return np.flatnonzero(first)
