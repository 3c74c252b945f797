"""The n:m level: of every m coordinates from 0, a group, exactly n are stored, each as its offset in the group.

    nm(2:4), coordinates 1, 3 and 6 of 8     offsets 1, 3 | 0, 2     padding 0 in the second group

Entry (r * groups + g) * n + s is the s-th of group g below reference r, and its coordinate is g * m + its offset. So nothing tells where a
fiber lies: no positions are stored, and an offset has as many bits as the largest one needs.

A group in which fewer coordinates are stored is padded with the lowest offsets that are free, and offsets ascend. A pad is an
entry like any other: its value is the implicit one, as for an explicit zero in `compressed`. A scan emits it, for it cannot do
otherwise: the offsets of a group with coordinate 3 alone are 0 and 3, and so are the offsets of a group with coordinates 0 and 3. An array
of offsets has no bit that tells them apart. Where every group is full, which is what this level is for, there are no pads.

The last group may have fewer than n coordinates. Then its last offsets are at or beyond the end of the dimension. They are stored, for
every group has n, and no scan reads them: how many there are follows from the sizes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from fuseflow.errors import TensorError
from fuseflow.keep_rules import MAX_GROUP, Largest, Rule
from fuseflow.tensors.levels.base import (
    Coordinates,
    Fibers,
    Ints,
    Level,
    Listed,
    Overfull,
    StoredArray,
    Unreadable,
    narrowed,
    run_starts,
)

_TEXT = re.compile(r"nm\(\s*(\d{1,9})\s*:\s*(\d{1,9})\s*\)")


class NMFibers(Fibers):
    """Below reference r: the coordinates of entries r * stride .. r * stride + length, with the numbers of the entries as references."""

    __slots__ = ("_listed", "length", "offsets", "parents", "stride", "within")

    def __init__(self, size: int, level: NM, parents: int, offsets: npt.NDArray[np.uint8]) -> None:
        super().__init__(size)
        self.parents, self.offsets = parents, offsets
        self.stride, self.length = level.room(size), level.entries(size)
        self.within = np.repeat(np.arange(level.groups(size), dtype=np.int64) * level.m, level.n)
        self._listed: Listed | None = None

    def fiber(self, ref: int) -> tuple[Sequence[int], Sequence[int]]:
        low = ref * self.stride
        high = low + self.length
        return (self.within[: self.length] + self.offsets[low:high]).tolist(), range(low, high)

    def expand(self, refs: Ints) -> tuple[Ints, Ints, Ints]:
        at = (refs[:, None] * self.stride + np.arange(self.length)).reshape(-1)
        crds = np.tile(self.within[: self.length], len(refs)) + self.offsets[at]
        return np.repeat(np.arange(len(refs), dtype=np.int64), self.length), crds, at

    def walk(self) -> Listed:
        if self._listed is None:
            crds = narrowed((self.within + self.offsets.reshape(self.parents, self.stride)).reshape(-1), self.size)
            pos = np.arange(self.parents + 1, dtype=np.int64) * self.stride
            if self.length == self.stride:
                self._listed = Listed.between(pos, crds)
            else:
                self._listed = Listed(crds, pos[:-1], pos[:-1] + self.length)
        return self._listed

    @property
    def entries(self) -> int:
        return len(self.offsets)

    @property
    def elements(self) -> int:
        return self.parents * self.length

    @property
    def arrays(self) -> Mapping[str, Coordinates]:
        return {"crd": self.offsets}


@dataclass(frozen=True, slots=True)
class NM(Level):
    """n entries for every m coordinates. Raises `TensorError` unless 1 <= n <= m <= 256."""

    n: int
    m: int

    pads: ClassVar[bool] = True
    readable: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not 1 <= self.m <= MAX_GROUP:
            raise TensorError(
                f"level `{self.text}`: a group has {self.m} coordinates",
                hint=f"write a group of 1 to {MAX_GROUP}, as in `nm(2:4)`",
            )
        if not 1 <= self.n <= self.m:
            stored = "nothing is stored" if self.n == 0 else f"{self.n} entries are stored"
            raise TensorError(
                f"level `{self.text}`: {stored} of a group of {self.m} coordinates",
                hint="the entries come first, and are at most the coordinates: `nm(2:4)` stores two of every four",
            )

    @classmethod
    def parse(cls, text: str) -> NM:
        """Read `nm(n:m)`. Raises `TensorError` for any other text."""
        match = _TEXT.fullmatch(text.strip())
        if not match:
            raise TensorError(f"cannot read the level `{text}`", hint="write `nm(2:4)`: two entries for every four coordinates")
        return cls(int(match[1]), int(match[2]))

    @property
    def text(self) -> str:
        return f"nm({self.n}:{self.m})"

    @property
    def rule(self) -> Rule:
        return Largest(self.n, every=self.m)

    def groups(self, size: int) -> int:
        """The number of groups of a fiber."""
        return -(-size // self.m)

    def entries(self, size: int) -> int:
        """The number of entries of a fiber whose coordinates are inside the dimension. Other entries are at the end of the last group."""
        groups = self.groups(size)
        return groups and (groups - 1) * self.n + min(self.n, size - (groups - 1) * self.m)

    def room(self, size: int) -> int:
        return self.n * self.groups(size)

    def arrays(self, size: int) -> tuple[StoredArray, ...]:
        return (StoredArray("crd", "crd", entry=1, bits=max((self.m - 1).bit_length(), 1)),)

    def expected(self, size: int, density: float) -> float:
        return float(self.entries(size))

    def pack(self, size: int, parents: int, refs: Ints, prefixes: Ints, crds: Ints) -> tuple[Fibers, Ints]:
        first = run_starts(refs, crds)
        below = np.cumsum(first) - 1
        group, offset = refs[first] * self.groups(size) + crds[first] // self.m, crds[first] % self.m
        held = np.bincount(group, minlength=parents * self.groups(size))
        if (held > self.n).any():
            entry = int(np.flatnonzero((held > self.n)[group[below]])[0])
            raise Overfull(
                entry,
                int(crds[entry]) // self.m * self.m,
                f"{held[group[below[entry]]]} of {self.m} coordinates are stored, and there is room for {self.n}",
                "store it `compressed`, or set the smallest entries of every group to the implicit value before",
            )
        offsets = self._padded(group, offset, held)
        # The number of an entry in its group is the number of offsets that are stored there below its own.
        rank = (offsets[group] < offset[:, None]).sum(axis=1)
        return NMFibers(size, self, parents, offsets.reshape(-1)), (group * self.n + rank)[below]

    def _padded(self, group: Ints, offset: Ints, held: Ints) -> npt.NDArray[np.uint8]:
        """Return the offsets of every group, ascending, padding included: [groups, n]. `group` and `offset` are those of the
        stored coordinates, and `held` is the number of stored ones in each group."""
        offsets = np.empty((len(held), self.n), dtype=np.uint8)
        full = held == self.n
        inside = full[group]
        offsets[full] = offset[inside].reshape(-1, self.n)
        number = np.cumsum(~full) - 1  # of a group among the padded ones
        stored = np.zeros((len(held) - int(full.sum()), self.m), dtype=bool)
        stored[number[group[~inside]], offset[~inside]] = True
        pads = np.cumsum(~stored, axis=1) <= (self.n - held[~full])[:, None]
        offsets[~full] = np.nonzero(stored | pads)[1].reshape(-1, self.n)
        return offsets

    def read(self, size: int, parents: int, arrays: Mapping[str, Ints]) -> Fibers:
        offsets, count = arrays["crd"], parents * self.groups(size) * self.n
        if len(offsets) != count:
            raise Unreadable(
                "crd", f"these are {len(offsets)} offsets, {self.n} for each of {count // self.n} groups are {count}"
            )
        if ((offsets < 0) | (offsets >= self.m)).any():
            raise Unreadable("crd", f"an offset is outside 0..{self.m - 1}")
        if (np.diff(offsets.reshape(-1, self.n).astype(np.int64), axis=1) <= 0).any():
            raise Unreadable("crd", "the offsets of a group do not ascend")
        fibers = NMFibers(size, self, parents, offsets.astype(np.uint8))
        tail = fibers.walk().crds.reshape(parents, fibers.stride)[:, : fibers.length]
        if tail.size and tail.max() >= size:
            raise Unreadable("crd", f"a coordinate is outside 0..{size - 1}, where others of its group are free")
        return fibers
