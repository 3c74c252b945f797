"""Packed tensors: fibertrees with their values, shapes and implicit values."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fuseflow.ops import canonical
from fuseflow.tensors.dtypes import DTYPES, ElementType, dtype_name
from fuseflow.tensors.format import Format
from fuseflow.tensors.levels.base import Fibers, Ints, Kind, bytes_of

if TYPE_CHECKING:
    from scipy import sparse


@dataclass(frozen=True, slots=True, eq=False)
class Tensor:
    """A packed tensor. `levels[p]` are the stored fibers of dimension `format.order[p]`, and the references of the last level index
    `values`.

    Values may be tiles that all have one shape. Then `values` is [stored, rows, columns], and `shape` counts tiles. Entries that are not
    stored have the implicit value `fill`. `type` is the element type where the NumPy type of `values` does not say it, as their
    holder `int8` does not say `i4`.
    """

    shape: tuple[int, ...]
    format: Format
    levels: tuple[Fibers, ...]
    values: npt.NDArray[np.generic]
    fill: float = 0.0
    type: ElementType | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "fill", canonical(self.fill))
        if self.type is not None and self.type.bits == 8 * self.values.itemsize:
            object.__setattr__(self, "type", None)

    @property
    def dtype(self) -> np.dtype[np.generic]:
        return self.values.dtype

    @property
    def element_type(self) -> ElementType:
        """The element type. Raises `TensorError` for a tensor with elements of another type, which no program declares."""
        return DTYPES[dtype_name(self.dtype)] if self.type is None else self.type

    @property
    def element_bits(self) -> int:
        """The bits of one element in accelerator memory."""
        return 8 * self.values.itemsize if self.type is None else self.type.bits

    @property
    def tile(self) -> tuple[int, ...]:
        """The shape of every value, which is () for scalars."""
        return self.values.shape[1:]

    @property
    def stored(self) -> int:
        """The number of stored values."""
        return len(self.values)

    def words(self, kind: Kind) -> int:
        """Return the number of stored positions or coordinates of all levels, as `kind` says."""
        levels = zip(self.format.levels, self.levels, strict=True)
        return sum(len(f.arrays[a.name]) for level, f in levels for a in level.arrays(f.size) if a.kind == kind)

    def bytes(self, kind: Kind) -> int:
        """Return the bytes of the stored positions or coordinates of all levels in accelerator memory."""
        levels = zip(self.format.levels, self.levels, strict=True)
        return sum(bytes_of(len(f.arrays[a.name]), a.bits) for level, f in levels for a in level.arrays(f.size) if a.kind == kind)

    @property
    def pos_bytes(self) -> int:
        """The size of all positions in accelerator memory, in bytes."""
        return self.bytes("pos")

    @property
    def crd_bytes(self) -> int:
        """The size of all coordinates in accelerator memory, in bytes."""
        return self.bytes("crd")

    @property
    def nbytes(self) -> int:
        """The size of the positions, coordinates and values in accelerator memory, in bytes."""
        return self.pos_bytes + self.crd_bytes + bytes_of(self.values.size, self.element_bits)

    def digest(self) -> str:
        """Return the SHA-256 digest of the shape, the format and everything that is stored: it is equal only for equal tensors."""
        total = hashlib.sha256(repr((self.shape, str(self.format), self.fill, self.type and self.type.name)).encode())
        for array in (*(a for level in self.levels for a in level.arrays.values()), self.values):
            total.update(repr((array.shape, array.dtype)).encode())
            total.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
        return total.hexdigest()

    def coordinates(self) -> Ints:
        """Return the coordinates of all entries in storage order, as an array [rank, n] whose rows are the dimensions."""
        return self.places()[0]

    def entries(self) -> tuple[Ints, npt.NDArray[np.generic]]:
        """Return the coordinates of all entries in storage order, and their values. A level may store values outside the shape, which are
        no entries."""
        coordinates, refs = self.places()
        return coordinates, self.values if len(refs) == len(self.values) else self.values[refs]

    def places(self) -> tuple[Ints, Ints]:
        """Return the coordinates of all entries in storage order, as `coordinates` does, and the position of the value of each."""
        refs = np.zeros(1, dtype=np.int64)
        columns: list[Ints] = []
        for level in self.levels:
            owner, crds, refs = level.expand(refs)
            columns = [c[owner] for c in columns] + [crds]
        out = np.empty((len(self.shape), len(refs)), dtype=np.int64)
        for dimension, column in zip(self.format.order, columns, strict=True):
            out[dimension] = column
        return out, refs

    def to_dense(self) -> npt.NDArray[np.generic]:
        """Return the dense array with the implicit entries filled in. Tiles stay separate, in two more dimensions at the end."""
        if self.format.all_dense:  # its elements stand in storage order: no coordinate is listed
            stored = self.values.reshape([*(self.shape[dimension] for dimension in self.format.order), *self.tile])
            axes = (*np.argsort(self.format.order), *range(len(self.shape), len(self.shape) + len(self.tile)))
            return stored.transpose(axes).copy()
        out = np.full(self.shape + self.tile, self.fill, dtype=self.values.dtype)
        coordinates, values = self.entries()
        out[tuple(coordinates)] = values if self.shape else values[0]
        return out

    def to_scipy(self) -> sparse.coo_array:
        """Return a scipy COO array with the stored entries, explicit zeros included. scipy has no floats of 16 bits, so they get
        32. Raise `ValueError` for tiles and for an implicit value other than 0."""
        if self.tile:
            raise ValueError("scipy arrays have no tiles")
        if self.fill != 0:
            raise ValueError("scipy arrays have the implicit value 0")
        from scipy import sparse  # see `pack.is_scipy`

        coordinates, values = self.entries()
        wide = values.astype(np.float32) if values.dtype == np.float16 else values
        return sparse.coo_array((wide, tuple(coordinates)), shape=self.shape)

    def __repr__(self) -> str:
        fill = f", fill {self.fill:g}" if self.fill else ""
        tile = f", tiles {self.tile}" if self.tile else ""
        type = self.dtype if self.type is None else self.type.name
        return f"Tensor({self.shape}, {self.format.short()}, {type}, {self.stored} stored{fill}{tile})"
