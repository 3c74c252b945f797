"""The layout of n entries in every m coordinates whose patterns come in groups, as STen stores it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from fuseflow.errors import SparsityError
from fuseflow.sparsity.arrays import values_of
from fuseflow.sparsity.grouped.chunks import ChunkGrid
from fuseflow.sparsity.grouped.grouping import Grouping, chunk_grid, grouping_of_mask, require_sizes
from fuseflow.sparsity.grouped.layout import pack
from fuseflow.sparsity.grouped.patterns import patterns
from fuseflow.sparsity.layouts.layout import CompilerFormat, Layout, kept_of
from fuseflow.sparsity.layouts.n_of_m import NMLayout

if TYPE_CHECKING:
    import torch


@dataclass(slots=True)
class GroupedNMTensor:
    """A tensor that stores n of every m coordinates, with the columns of each chunk sorted by pattern.

    `values` is [chunks, patterns, g, n], and `columns` [chunks, patterns, g] says which column of its chunk each is (16 bits). `grid` says
    how the tensor is cut into chunks.
    """

    values: torch.Tensor
    columns: torch.Tensor
    grid: ChunkGrid

    @property
    def shape(self) -> tuple[int, ...]:
        return self.grid.shape

    def places(self) -> torch.Tensor:
        """Return for each value where it stands in the tensor, counted row by row from 1, or 0 for what a chunk is filled up with."""
        import torch

        size = int(np.prod(self.shape, dtype=np.int64))
        chunks = self.grid.split(np.arange(1, size + 1).reshape(self.shape))
        chunk = np.arange(len(chunks))[:, None, None, None]
        table = patterns(self.values.shape[-1], self.grid.m)
        return torch.from_numpy(chunks[chunk, self.columns.cpu().numpy()[..., None], table[:, None, :]]).to(self.values.device)

    def to_dense(self) -> torch.Tensor:
        size = int(np.prod(self.shape, dtype=np.int64))
        filled = self.values.new_zeros(size + 1).index_put((self.places(),), self.values)
        return filled[1:].reshape(self.shape)


@dataclass(frozen=True, slots=True)
class NMGLayout(Layout):
    """Of every `m` coordinates of `sparse_dim`, `n` entries are stored; of every C(m, n) * g coordinates of `group_dim`, `g` have each
    pattern. The compiler stores what is kept in the format `nm(n:m)`, in order."""

    name = "nmg"
    storage: ClassVar[type] = GroupedNMTensor

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
        values = pack(values_of(kept_of(tensor, mask)), grouping)
        columns = torch.from_numpy(values.idx).to(tensor.device)
        return GroupedNMTensor(torch.from_numpy(values.val).to(tensor), columns, grouping.grid)

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
