"""A level format that misses a fact is refused when it joins the table, and is never scanned as a dense one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from fuseflow.tensors.levels import LEVELS, Level, table
from fuseflow.tensors.levels.base import StoredArray
from fuseflow.tensors.levels.bitmap import Bitmap
from fuseflow.tensors.levels.compressed import Compressed
from fuseflow.tensors.levels.dense import Dense
from fuseflow.tensors.levels.nm import NM


@dataclass(frozen=True, slots=True)
class SaysNothing(Compressed):
    def arrays(self, size: int) -> tuple[StoredArray, ...]:
        return ()


@dataclass(frozen=True, slots=True)
class TwoOfAKind(Compressed):
    def arrays(self, size: int) -> tuple[StoredArray, ...]:
        return StoredArray("crd", "seg", first=1, fiber=1, scanned=2), StoredArray("crd", "crd", entry=1)


@dataclass(frozen=True, slots=True)
class NoBits(Compressed):
    def arrays(self, size: int) -> tuple[StoredArray, ...]:
        return (StoredArray("crd", "crd", entry=1, bits=0),)


@dataclass(frozen=True, slots=True)
class NeverRead(Compressed):
    def arrays(self, size: int) -> tuple[StoredArray, ...]:
        return (StoredArray("crd", "crd", fiber=1),)


@dataclass(frozen=True, slots=True)
class TwoListsOfEntries(Compressed):
    def arrays(self, size: int) -> tuple[StoredArray, ...]:
        return StoredArray("pos", "low", entry=1), StoredArray("crd", "crd", entry=1)


@dataclass(frozen=True, slots=True)
class StoresAll(Dense):
    def arrays(self, size: int) -> tuple[StoredArray, ...]:
        return (StoredArray("crd", "crd", entry=1),)


@dataclass(frozen=True, slots=True)
class NotTold(Bitmap):
    def arrays(self, size: int) -> tuple[StoredArray, ...]:
        return (StoredArray("crd", "bits", fiber=1, scanned=1),)


@dataclass(frozen=True, slots=True)
class NoFiles(NM):
    read = Level.read


@dataclass(frozen=True, slots=True)
class NoResults(Compressed):
    append = Level.append


@pytest.mark.parametrize(
    ("level", "why"),
    [
        (SaysNothing(), "is not full, and does not say what it stores"),
        (TwoOfAKind(), "stores two arrays of one kind"),
        (NoBits(), "stores elements without bits"),
        (NeverRead(), "stores arrays, and a scan reads none of them"),
        (TwoListsOfEntries(), "stores what nothing reads: no scan reads the arrays"),
        (StoresAll(), "is full and stores arrays"),
        (NotTold(), "is located, and no array tells of a coordinate"),
        (NoFiles(2, 4), "is readable, and has no `read`"),
        (NoResults(), "is appended, and has no `append`"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Level) else "",
)
def test_what_is_missing_is_said(level: Level, why: str) -> None:
    with pytest.raises(TypeError, match=why):
        table([level])


def test_a_level_that_does_not_say_its_arrays_cannot_be_made() -> None:
    silent: Any = type("Silent", (Level,), {"text": "silent", "pack": Compressed.pack})
    with pytest.raises(TypeError, match=r"abstract method.*arrays"):
        silent()


def test_ours_are_complete() -> None:
    assert table([*LEVELS.values(), NM(2, 4)]).keys() == {*LEVELS, "nm(2:4)"}
