"""The bitmap level: one bit for every coordinate of the dimension, and a rank for every word of bits.

    coordinates 1, 3 and 34 of 40     bits 0b1010, 0b100     rank 0, 2

A set bit is a stored coordinate. The rank of a word is the number of set bits in all words before it, of earlier fibers too: it turns a bit
into a reference without reading any other word. Where one coordinate in sixteen is stored this takes as many bytes as `compressed`, and
fewer where there are more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fuseflow.tensors.levels.base import Coordinates, Fibers, Ints, Level, Listed, StoredArray, Unreadable, run_starts, segments

WORD = 32
"""Bits of a word, the size of a coordinate in memory."""


def words(size: int) -> int:
    """Return the number of words of a fiber. Each fiber begins with a word of its own, and has one even if there are no coordinates."""
    return max(-(-size // WORD), 1)


class BitmapFibers(Fibers):
    """Below reference r: the coordinates whose bits are set in words [r * words, (r + 1) * words). The reference of a coordinate is the
    rank of its word and the number of bits set below its own in that word."""

    __slots__ = ("_listed", "bits", "rank", "words")

    def __init__(self, size: int, bits: Ints, rank: Ints) -> None:
        super().__init__(size)
        self.bits, self.rank, self.words = bits, rank, words(size)
        self._listed: Listed | None = None

    @classmethod
    def of(cls, size: int, parents: int, owner: Ints, crd: Coordinates) -> BitmapFibers:
        """Return the fibers of coordinates: `crd` is below the parent `owner`, of `parents` parents. Coordinates occur once."""
        count = parents * words(size)
        word = owner * words(size) + crd // WORD
        sums = np.bincount(word, weights=2.0 ** (crd % WORD), minlength=count)  # of different powers, which are exact
        bits = sums.astype(np.int64)
        return cls(size, bits, ranks(bits))

    def fiber(self, ref: int) -> tuple[Sequence[int], Sequence[int]]:
        crds, refs = list[int](), list[int]()
        for word in range(ref * self.words, (ref + 1) * self.words):
            below, rank = WORD * (word - ref * self.words), int(self.rank[word])
            bits = [bit for bit in range(WORD) if int(self.bits[word]) >> bit & 1]
            crds += (below + bit for bit in bits)
            refs += range(rank, rank + len(bits))
        return crds, refs

    def locate(self, ref: int, crd: int) -> int | None:
        word, bit = ref * self.words + crd // WORD, crd % WORD
        bits = int(self.bits[word])
        return int(self.rank[word]) + (bits & ((1 << bit) - 1)).bit_count() if bits >> bit & 1 else None

    def expand(self, refs: Ints) -> tuple[Ints, Ints, Ints]:
        walk = self.walk()
        low, high = walk.lows[refs], walk.highs[refs]
        owner, within = segments(high - low)
        at = low[owner] + within
        return owner, walk.crds[at], at

    def walk(self) -> Listed:
        if self._listed is None:
            pos, crds = np.append(self.rank[:: self.words], self.entries), unpacked(self.bits) % (self.words * WORD)
            self._listed = Listed.between(pos, crds)
        return self._listed

    @property
    def entries(self) -> int:
        return int(self.rank[-1]) + int(self.bits[-1]).bit_count() if len(self.bits) else 0

    @property
    def arrays(self) -> Mapping[str, Coordinates]:
        return {"rank": self.rank, "bits": self.bits}


@dataclass(frozen=True, slots=True)
class Bitmap(Level):
    """Every coordinate has a bit, and those below which something is stored have a reference."""

    text: ClassVar[str] = "bitmap"
    located: ClassVar[bool] = True
    appended: ClassVar[bool] = True

    def arrays(self, size: int) -> tuple[StoredArray, ...]:
        fiber = words(size)
        return (
            StoredArray("pos", "rank", fiber=fiber, scanned=1, told=WORD),
            StoredArray("crd", "bits", fiber=fiber, scanned=fiber, told=WORD),
        )

    def pack(self, size: int, parents: int, refs: Ints, prefixes: Ints, crds: Ints) -> tuple[Fibers, Ints]:
        first = run_starts(refs, crds)
        return BitmapFibers.of(size, parents, refs[first], crds[first]), np.cumsum(first) - 1

    def append(self, size: int, parents: int, pos: Ints, crd: Coordinates) -> Fibers:
        owner, _ = segments(np.diff(pos))
        return BitmapFibers.of(size, parents, owner, crd)

    def read(self, size: int, parents: int, arrays: Mapping[str, Ints]) -> Fibers:
        bits, rank, count = arrays["bits"], arrays["rank"], parents * words(size)
        if len(bits) != count or ((bits < 0) | (bits >= 1 << WORD)).any():
            raise Unreadable("bits", f"these are not {count} words of {WORD} bits, {words(size)} for each of {parents} fibers")
        if (unpacked(bits) % (words(size) * WORD) >= size).any():
            raise Unreadable("bits", f"a coordinate is outside 0..{size - 1}")
        if not np.array_equal(rank, ranks(bits)):
            raise Unreadable("rank", "these are not the numbers of bits that are set in the words before each")
        return BitmapFibers(size, bits, rank)


def ranks(bits: Ints) -> Ints:
    """Return for each word the number of bits that are set in the words before it.

    >>> ranks(np.array([0b1010, 0b100, 0])).tolist()
    [0, 2, 3]
    """
    counts = np.bitwise_count(bits).astype(np.int64)
    return np.asarray(np.cumsum(counts) - counts)


def unpacked(bits: Ints) -> Ints:
    """Return the positions of all set bits, counted through all words.

    >>> unpacked(np.array([0b1010, 0, 0b1])).tolist()
    [1, 3, 64]
    """
    held = np.flatnonzero(bits)
    row, bit = np.nonzero(bits[held, None] >> np.arange(WORD) & 1)
    return np.asarray(held[row] * WORD + bit)
