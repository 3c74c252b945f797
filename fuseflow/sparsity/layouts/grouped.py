"""The layout of n entries in every m coordinates whose patterns come in groups, as STen stores it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from fuseflow.errors import SparsityError
from fuseflow.sparsity.arrays import mask_of, values_of
from fuseflow.sparsity.grouped.chunks import ChunkGrid
from fuseflow.sparsity.grouped.grouping import Grouping, chunk_grid, grouping_of_mask, require_sizes
from fuseflow.sparsity.grouped.layout import pack
from fuseflow.sparsity.grouped.masks import grouped_mask
from fuseflow.sparsity.layouts.layout import CompilerFormat, Layout, kept_of
from fuseflow.sparsity.layouts.n_of_m import NMLayout

if TYPE_CHECKING:
    import torch


@dataclass(slots=True)
class GroupedNMTensor:
    """A tensor that stores n of every m coordinates, with the columns of each chunk sorted by pattern.

    `values` is [chunks, patterns, g, n], and `columns` [chunks, patterns, g] says which column of its chunk each is (16 bits). `places` is
    [patterns, n]: the n of m places of each pattern (16 bits), which all chunks share. `grid` says how the tensor is cut into chunks.
    """

    values: torch.Tensor
    columns: torch.Tensor
    places: torch.Tensor
    grid: ChunkGrid

    @property
    def shape(self) -> tuple[int, ...]:
        return self.grid.shape

    @classmethod
    def from_dense(
        cls, tensor: torch.Tensor, n: int, m: int, sparse_dim: int, group_size: int, group_dim: int
    ) -> GroupedNMTensor:
        """Return the entries of a tensor that the greedy method of the paper keeps, with groups of `group_size` columns."""
        mask = grouped_mask(values_of(tensor), n, m, group_size, sparse_dim, group_dim, "greedy")
        return NMGLayout(n, m, group_size, sparse_dim, group_dim).pack(tensor, mask_of(mask, tensor))

    def coordinates(self) -> tuple[torch.Tensor, ...]:
        """Return the coordinates of the values in each dimension, which broadcast to the shape of `values`. Coordinates of the
        padding of a chunk are beyond the tensor."""
        import torch

        device = self.values.device
        number = torch.arange(self.grid.count, device=device).view(-1, 1, 1, 1)
        *rest, across, along = self.grid.chunk_coordinates(number)
        coordinates = dict(zip((d for d in range(len(self.shape)) if d not in self.grid.dims), rest, strict=True))
        coordinates[self.grid.group_dim] = across * self.grid.columns + self.columns.unsqueeze(-1)
        coordinates[self.grid.sparse_dim] = along * self.grid.m + self.places.unsqueeze(1)
        return tuple(coordinates[d] for d in range(len(self.shape)))

    def to_dense(self) -> torch.Tensor:
        index = tuple(c.clamp(max=size - 1) for c, size in zip(self.coordinates(), self.shape, strict=True))
        dense = self.values.new_zeros(self.shape)
        return dense.index_put(index, self.values, accumulate=True) if dense.numel() else dense


@dataclass(frozen=True, slots=True)
class NMGLayout(Layout):
    """Of every `m` coordinates of `sparse_dim`, `n` entries are stored; of every C(m, n) * g coordinates of `group_dim`, `g` have each
    pattern. The compiler stores what is kept in the format `nm(n:m)`, in order."""

    name = "nmg"
    storage: ClassVar[type] = GroupedNMTensor
    least_rank: ClassVar[int] = 2

    n: int
    m: int
    g: int
    sparse_dim: int = -2
    group_dim: int = -1

    def __post_init__(self) -> None:
        require_sizes(self.n, self.m, self.g)

    def refusal(self, mask: torch.Tensor) -> str:
        try:
            array = values_of(mask)
            if not self._has_all_patterns(array):
                self._grouping(array)
        except SparsityError as error:
            return error.message
        return ""

    def pack(self, tensor: torch.Tensor, mask: torch.Tensor) -> GroupedNMTensor:
        import torch

        grouping = self._grouping(values_of(mask))
        values, columns = map(torch.from_numpy, pack(values_of(kept_of(tensor, mask)), grouping))
        places = torch.from_numpy(grouping.patterns.astype(np.int16)).to(tensor.device)
        return GroupedNMTensor(values.to(tensor), columns.to(tensor.device), places, grouping.grid)

    def compiler_format(self, shape: tuple[int, ...]) -> CompilerFormat:
        return NMLayout(self.n, self.m, self.sparse_dim).compiler_format(shape)

    def _grouping(self, mask: npt.NDArray[Any]) -> Grouping:
        return grouping_of_mask(mask, self.n, self.m, self.g, self.sparse_dim, self.group_dim)

    def _has_all_patterns(self, mask: npt.NDArray[Any]) -> bool:
        """Return whether every chunk has `g` columns of each pattern. Other masks may fit, too: where a column keeps fewer entries."""
        chunks = chunk_grid(mask.shape, self.n, self.m, self.g, self.sparse_dim, self.group_dim).split(mask)
        if not chunks.size or not (chunks.sum(axis=-1) == self.n).all():
            return False
        ordered = np.sort(np.packbits(chunks, axis=-1, bitorder="little").view(f"V{-(-self.m // 8)}")[..., 0], axis=1)
        runs = ordered.reshape(len(chunks), -1, self.g)
        distinct = (runs[:, 1:, 0] != runs[:, :-1, 0]).all()
        return bool((runs == runs[..., :1]).all() and distinct)
