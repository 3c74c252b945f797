"""The chunks of n:m:g, into which a tensor is cut: matrices of columns of m entries."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

Scalar = TypeVar("Scalar", bound=np.generic)


@dataclass(frozen=True, slots=True)
class ChunkGrid:
    """How a tensor is cut into chunks, each [columns, m]. A column has m entries that follow each other in `sparse_dim`; the columns of a
    chunk follow each other in `group_dim`. Both dimensions are counted from 0. The last chunks are filled up with zeros.

    Chunks are numbered by the other dimensions, then by their place in `group_dim`, then by their place in `sparse_dim`.
    """

    shape: tuple[int, ...]
    m: int
    columns: int
    sparse_dim: int
    group_dim: int

    @property
    def count(self) -> int:
        """The number of chunks."""
        return math.prod(self.extents)

    def split(self, array: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
        """Return the chunks of a tensor, [chunks, columns, m]."""
        moved = np.moveaxis(array, (self.group_dim, self.sparse_dim), (-2, -1))
        *rest, across, along = self.extents
        filling = [(0, 0)] * len(rest)
        filling += [(0, across * self.columns - moved.shape[-2]), (0, along * self.m - moved.shape[-1])]
        cut = np.pad(moved, filling).reshape(*rest, across, self.columns, along, self.m)
        return cut.swapaxes(-3, -2).reshape(self.count, self.columns, self.m)

    def join(self, chunks: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
        """Return the tensor that has these chunks, without their padding."""
        *rest, across, along = self.extents
        cut = chunks.reshape(*self.extents, self.columns, self.m).swapaxes(-3, -2)
        moved = cut.reshape(*rest, across * self.columns, along * self.m)
        inside = moved[..., : self.shape[self.group_dim], : self.shape[self.sparse_dim]]
        joined: npt.NDArray[Any] = np.moveaxis(inside, (-2, -1), (self.group_dim, self.sparse_dim))
        return np.ascontiguousarray(joined)

    @property
    def dims(self) -> tuple[int, int]:
        """The two dimensions that are cut."""
        return self.sparse_dim, self.group_dim

    @property
    def extents(self) -> tuple[int, ...]:
        """The extents of the dimensions by which chunks are numbered."""
        rest = (extent for dim, extent in enumerate(self.shape) if dim not in self.dims)
        across, along = self.shape[self.group_dim], self.shape[self.sparse_dim]
        return (*rest, -(-across // self.columns), -(-along // self.m))

    def chunk_coordinates(self, number: Any) -> list[Any]:
        """Return the coordinates of chunks, given by number, in the grid of all chunks. They are in the order of `extents`.
        `number` is an array or a tensor."""
        coordinates = []
        for extent in reversed(self.extents):
            coordinates.append(number % max(1, extent))
            number = number // max(1, extent)
        return coordinates[::-1]
