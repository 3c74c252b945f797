"""A packed tensor: a fibertree with its values, its shape and its implicit value."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import sparse

from fuseflow.tensors.format import Format
from fuseflow.tensors.levels.base import WORD_BYTES, Fibers, Ints, Kind


@dataclass(frozen=True, slots=True, eq=False)
class Tensor:
    """`levels[p]` are the stored fibers of dimension `format.order[p]`; `values` is indexed by the last level's references.
    Values may be tiles, all of one shape: then `values` is [stored, rows, columns], and `shape` counts tiles.

    Entries that are not stored have the implicit value `fill`.
    """

    shape: tuple[int, ...]
    format: Format
    levels: tuple[Fibers, ...]
    values: npt.NDArray[np.generic]
    fill: float = 0.0

    @property
    def dtype(self) -> np.dtype[np.generic]:
        return self.values.dtype

    @property
    def tile(self) -> tuple[int, ...]:
        """The shape of every value: () for scalars."""
        return self.values.shape[1:]

    @property
    def stored(self) -> int:
        """Number of stored values."""
        return len(self.values)

    def words(self, kind: Kind) -> int:
        """Number of stored positions, or coordinates, of all levels."""
        pairs = zip(self.format.levels, self.levels, strict=True)
        return sum(len(f.arrays[a.name]) for level, f in pairs for a in level.arrays(f.size) if a.kind == kind)

    @property
    def pos_bytes(self) -> int:
        return WORD_BYTES["pos"] * self.words("pos")

    @property
    def crd_bytes(self) -> int:
        return WORD_BYTES["crd"] * self.words("crd")

    @property
    def nbytes(self) -> int:
        """Bytes of the positions, coordinates and values in accelerator memory."""
        return self.pos_bytes + self.crd_bytes + self.values.nbytes

    def coordinates(self) -> Ints:
        """Coordinates of every stored value in storage order: an array [rank, stored], dimension by dimension."""
        refs = np.zeros(1, dtype=np.int64)
        columns: list[Ints] = []
        for level in self.levels:
            owner, crds, refs = level.expand(refs)
            columns = [c[owner] for c in columns] + [crds]
        out = np.empty((len(self.shape), len(refs)), dtype=np.int64)
        for dimension, column in zip(self.format.order, columns, strict=True):
            out[dimension] = column
        return out

    def to_dense(self) -> npt.NDArray[np.generic]:
        """The array, implicit entries filled in; tiles stay apart, in the last two dimensions."""
        out = np.full(self.shape + self.tile, self.fill, dtype=self.values.dtype)
        out[tuple(self.coordinates())] = self.values if self.shape else self.values[0]
        return out

    def to_scipy(self) -> sparse.coo_array:
        """A scipy COO array with the stored entries (explicit zeros included); for tensors whose implicit value is 0."""
        if self.tile:
            raise ValueError("scipy arrays have no tiles")
        if self.fill != 0:
            raise ValueError("scipy arrays have the implicit value 0")
        return sparse.coo_array((self.values, tuple(self.coordinates())), shape=self.shape)

    def __repr__(self) -> str:
        fill = f", fill {self.fill:g}" if self.fill else ""
        tile = f", tiles {self.tile}" if self.tile else ""
        return f"Tensor({self.shape}, {self.format.short()}, {self.dtype}, {self.stored} stored{fill}{tile})"
