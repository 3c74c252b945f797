"""The layouts of n entries in every m coordinates: alone, or with patterns in groups, as STen stores them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from fuseflow import keep_rules
from fuseflow.errors import SparsityError
from fuseflow.sparsity.grouped.grouping import ChunkGrid, Grouping, chunk_grid, grouped_mask, grouping_of_mask, require_sizes
from fuseflow.sparsity.layouts.layout import CompilerFormat, Layout, kept_of
from fuseflow.sparsity.numpy_arrays import mask_of, values_of

if TYPE_CHECKING:
    import torch


@dataclass(slots=True)
class NMTensor:
    """A tensor that stores `n` entries of every `m` coordinates of its dimension `dim`, which is the last one in the storage:
    `offsets` of a byte and `values`, both [..., groups, n]. A group with fewer entries is filled up with zeros."""

    offsets: torch.Tensor
    values: torch.Tensor
    shape: tuple[int, ...]
    m: int
    dim: int

    def to_dense(self) -> torch.Tensor:
        groups = self.values.new_zeros((*self.values.shape[:-1], self.m)).scatter(-1, self.offsets.long(), self.values)
        return groups.flatten(-2)[..., : self.shape[self.dim]].movedim(-1, self.dim)


@dataclass(frozen=True, slots=True)
class NMLayout(Layout):
    """Of every `m` coordinates of a dimension, `n` entries are stored with their offsets. The compiler has the format `nm(n:m)` for it."""

    name = "nm"
    storage: ClassVar[type] = NMTensor
    least_rank: ClassVar[int] = 1

    n: int
    m: int
    dim: int = -1

    def __post_init__(self) -> None:
        reason, hint = keep_rules.group_refusal(self.n, self.m)
        if reason:
            raise SparsityError(f"`{self}`: {reason}", hint=hint)

    def refusal(self, mask: torch.Tensor) -> str:
        if not -mask.dim() <= self.dim < mask.dim():
            return f"it has {mask.dim()} dimensions, and none is {self.dim}"
        full = (self._groups(mask).sum(-1) > self.n).nonzero()
        if not len(full):
            return ""
        *rest, group = full[0].tolist()
        rest.insert(self.dim % mask.dim(), f"{group * self.m}..{min((group + 1) * self.m, mask.shape[self.dim]) - 1}")
        return f"more than {self.n} entries are kept at coordinates ({', '.join(map(str, rest))})"

    def pack(self, tensor: torch.Tensor, mask: torch.Tensor) -> NMTensor:
        import torch

        groups = self._groups(mask)
        order = groups.to(torch.int8).argsort(dim=-1, descending=True, stable=True)[..., : self.n].sort(dim=-1).values
        values = self._groups(kept_of(tensor, mask)).gather(-1, order)
        return NMTensor(order.to(torch.uint8), values, tuple(tensor.shape), self.m, self.dim % tensor.dim())

    def compiler_format(self, shape: tuple[int, ...]) -> CompilerFormat:
        dim, rank = self.dim % len(shape), len(shape)
        order = (*(d for d in range(rank) if d != dim), dim)
        levels = ", ".join(["dense"] * (rank - 1) + [f"nm({self.n}:{self.m})"])
        return CompilerFormat(f"({levels})" + ("" if order == tuple(range(rank)) else f" order {order}"))

    def _groups(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return a tensor with the dimension cut into groups, [..., groups, m], filled up with zeros."""
        import torch

        last = tensor.movedim(self.dim, -1)
        padded = torch.nn.functional.pad(last, (0, -last.shape[-1] % self.m))
        return padded.reshape(*padded.shape[:-1], -(-last.shape[-1] // self.m), self.m)


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

    def index(self) -> tuple[torch.Tensor, ...]:
        """Return the coordinates of the values. Padding, which is 0, has the last coordinates of the tensor instead of later ones."""
        return tuple(c.clamp(max=size - 1) for c, size in zip(self.coordinates(), self.shape, strict=True))

    def to_dense(self) -> torch.Tensor:
        dense = self.values.new_zeros(self.shape)
        return dense.index_put(self.index(), self.values, accumulate=True) if dense.numel() else dense


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
        values, columns = map(torch.from_numpy, grouping.pack(values_of(kept_of(tensor, mask))))
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
