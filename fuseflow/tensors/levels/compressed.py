"""The compressed level: stored coordinates between two positions (the `pos`/`crd` arrays of TACO and MLIR)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fuseflow.tensors.levels.base import (
    Coordinates,
    Fibers,
    Ints,
    Level,
    Listed,
    Look,
    StoredArray,
    Unreadable,
    Walk,
    narrowed,
    run_starts,
    segments,
)


class CompressedFibers(Fibers):
    """Below reference r: the coordinates crd[pos[r]..pos[r+1]), with their positions as references.

    If coordinates repeat (`unique=False`), a run of equal ones is one element of the fiber and its reference is the run's first
    position: `firsts` lists those positions.
    """

    __slots__ = ("crd", "firsts", "pos")

    def __init__(self, size: int, pos: Ints, crd: Coordinates, unique: bool = True) -> None:
        super().__init__(size)
        self.pos, self.crd = pos, narrowed(crd, size)
        self.firsts = None
        if not unique:
            first = run_starts(self.crd)
            first[pos[:-1][pos[:-1] < len(crd)]] = True
            self.firsts = np.flatnonzero(first)

    def fiber(self, ref: int) -> tuple[Sequence[int], Sequence[int]]:
        low, high = int(self.pos[ref]), int(self.pos[ref + 1])
        if self.firsts is None:
            return self.crd[low:high].tolist(), range(low, high)
        a, b = np.searchsorted(self.firsts, (low, high))
        refs = self.firsts[a:b]
        return self.crd[refs].tolist(), refs.tolist()

    def expand(self, refs: Ints) -> tuple[Ints, Ints, Ints]:
        low, high = self.pos[refs], self.pos[refs + 1]
        if self.firsts is not None:
            low, high = np.searchsorted(self.firsts, low), np.searchsorted(self.firsts, high)
        owner, within = segments(high - low)
        positions = low[owner] + within if self.firsts is None else self.firsts[low[owner] + within]
        return owner, self.crd[positions].astype(np.int64), positions

    def walk(self) -> Walk:
        if self.firsts is None:
            return Listed.between(self.pos, self.crd)
        return Listed.runs(self.crd, self.firsts, self.pos[:-1], self.pos[1:])

    def look(self) -> Look:
        pos, crd = self.pos.tolist(), self.crd.tolist()

        def look(ref: int) -> tuple[Sequence[int], Sequence[int], int]:
            low, high = pos[ref], pos[ref + 1]
            if self.firsts is None:
                return crd[low:high], range(low, high), high - low
            return *self.fiber(ref), high - low

        return look

    @property
    def entries(self) -> int:
        return len(self.crd)

    @property
    def elements(self) -> int:
        return len(self.crd) if self.firsts is None else len(self.firsts)

    @property
    def arrays(self) -> Mapping[str, Coordinates]:
        return {"seg": self.pos, "crd": self.crd}


@dataclass(frozen=True, slots=True)
class Compressed(Level):
    """Only coordinates below which something is stored. `unique=False`: one coordinate for each entry of the singleton levels
    that follow, so equal ones repeat (the first level of COO)."""

    unique: bool = True

    leads: ClassVar[bool] = True

    @property
    def text(self) -> str:
        return "compressed" if self.unique else "compressed(nonunique)"

    @property
    def kept(self) -> bool:
        return self.unique

    @property
    def appended(self) -> bool:
        return self.unique

    @property
    def public(self) -> str | None:
        return "compressed" if self.unique else None

    @property
    def mlir(self) -> str | None:
        return self.text

    def arrays(self, size: int) -> tuple[StoredArray, ...]:
        return StoredArray("pos", "seg", first=1, fiber=1, scanned=2), StoredArray("crd", "crd", entry=1)

    def pack(self, size: int, parents: int, refs: Ints, prefixes: Ints, crds: Ints) -> tuple[Fibers, Ints]:
        if self.unique:
            first = run_starts(refs, crds)
            below = np.cumsum(first) - 1
            refs, crds = refs[first], crds[first]
        else:
            below = np.arange(len(crds), dtype=np.int64)
        pos = np.zeros(parents + 1, dtype=np.int64)
        np.cumsum(np.bincount(refs, minlength=parents), out=pos[1:])
        return CompressedFibers(size, pos, crds, self.unique), below

    def append(self, size: int, parents: int, pos: Ints, crd: Coordinates) -> Fibers:
        return CompressedFibers(size, pos, crd, self.unique)

    def read(self, size: int, parents: int, arrays: Mapping[str, Ints]) -> Fibers:
        pos, crd = arrays["seg"], arrays["crd"]
        if len(pos) != parents + 1 or pos[0] != 0 or pos[-1] != len(crd) or (np.diff(pos) < 0).any():
            raise Unreadable("seg", f"the positions do not divide {parents} fibers with {len(crd)} coordinates")
        if len(crd) and not (crd.min() >= 0 and crd.max() < size):
            raise Unreadable("crd", f"a coordinate is outside 0..{size - 1}")
        inside = np.ones(len(crd), dtype=bool)
        inside[pos[:-1][pos[:-1] < len(crd)]] = False  # the first of a fiber may be smaller than the one before it
        if (np.diff(crd, prepend=-1)[inside] <= 0).any():
            raise Unreadable("crd", "the coordinates of a fiber do not ascend")
        return CompressedFibers(size, pos, crd)
