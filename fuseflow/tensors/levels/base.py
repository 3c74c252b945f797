"""What a level format is: how one dimension of a fibertree is stored below the references of the dimension above it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]

POS_BYTES = 4
"""Bytes of one position in accelerator memory (32-bit words)."""
CRD_BYTES = 4
"""Bytes of one coordinate in accelerator memory (32-bit words)."""


class Fibers(ABC):
    """The stored fibers of one level: below each reference of its parent, coordinates and their references in the next level."""

    __slots__ = ("size",)

    def __init__(self, size: int) -> None:
        self.size = size  # number of coordinates of the dimension

    @abstractmethod
    def fiber(self, ref: int) -> tuple[Sequence[int], Sequence[int]]:
        """The coordinates of the fiber below `ref`, ascending, and the reference of each."""

    @abstractmethod
    def expand(self, refs: Ints) -> tuple[Ints, Ints, Ints]:
        """All fibers below `refs` at once: (position of the parent in `refs`, coordinate, reference) of each entry."""

    @property
    @abstractmethod
    def entries(self) -> int:
        """Number of references this level hands to the next one."""

    @property
    def elements(self) -> int:
        """Number of coordinates over all fibers: fewer than `entries` where stored coordinates repeat."""
        return self.entries

    @property
    def arrays(self) -> dict[str, Ints]:
        """What is stored: positions as `seg`, coordinates as `crd` (the names of fibertree files)."""
        return {}

    @property
    def pos_count(self) -> int:
        """Number of stored positions."""
        return len(self.arrays.get("seg", ()))

    @property
    def crd_count(self) -> int:
        """Number of stored coordinates."""
        return len(self.arrays.get("crd", ()))


class Level(ABC):
    """A level format: a value without data. `text` is its name in formats and program text."""

    @property
    @abstractmethod
    def text(self) -> str: ...

    full: ClassVar[bool] = False
    """Whether every coordinate of the dimension has a reference, so that the level can be located instead of scanned."""

    @abstractmethod
    def pack(self, size: int, parents: int, refs: Ints, prefixes: Ints, crds: Ints) -> tuple[Fibers, Ints]:
        """Store coordinates below parent references.

        `refs` (parent of each entry, ascending, below `parents`), `prefixes` (equal for entries with the same coordinates in all
        levels above) and `crds` (its coordinate, ascending within a prefix) have one element for each stored value of the
        tensor. Returns the fibers and the reference of each entry in the next level.
        """


def segments(counts: Ints) -> tuple[Ints, Ints]:
    """For fibers of the given lengths: (index of the fiber, position within it) of every entry.

    >>> [x.tolist() for x in segments(np.array([2, 0, 1]))]
    [[0, 0, 2], [0, 1, 0]]
    """
    owner = np.repeat(np.arange(len(counts), dtype=np.int64), counts)
    starts = np.cumsum(counts) - counts
    return owner, np.arange(len(owner), dtype=np.int64) - starts[owner]
