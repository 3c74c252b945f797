"""Layouts that store kept entries with their coordinates: by row, by column, in blocks, in equal rows, or each with all of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from fuseflow.errors import SparsityError
from fuseflow.sparsity.layouts.layout import CompilerFormat, Layout, kept_of, require_matrix

if TYPE_CHECKING:
    import torch


@dataclass(slots=True)
class CsrTensor:
    """A matrix stored by row: `positions` [rows + 1] says where each row begins, `columns` and `values` are [stored]."""

    positions: torch.Tensor
    columns: torch.Tensor
    values: torch.Tensor
    shape: tuple[int, ...]

    def to_dense(self) -> torch.Tensor:
        return self.values.new_zeros(self.shape).index_put((majors(self.positions, len(self.values)), self.columns), self.values)


@dataclass(slots=True)
class CscTensor:
    """A matrix stored by column: `positions` [columns + 1] says where each column begins, `rows` and `values` are [stored]."""

    positions: torch.Tensor
    rows: torch.Tensor
    values: torch.Tensor
    shape: tuple[int, ...]

    def to_dense(self) -> torch.Tensor:
        return self.values.new_zeros(self.shape).index_put((self.rows, majors(self.positions, len(self.values))), self.values)


@dataclass(frozen=True, slots=True)
class CSR(Layout):
    """The kept entries of each row of a matrix are stored with their columns."""

    name = "csr"
    storage: ClassVar[type] = CsrTensor
    least_rank: ClassVar[int] = 2
    for_matrices: ClassVar[bool] = True
    compiled_as: ClassVar[str] = "csr"
    fits_by_shape: ClassVar[bool] = True

    def pack(self, tensor: torch.Tensor, mask: torch.Tensor) -> CsrTensor:
        return CsrTensor(positions_of(mask.sum(1)), mask.nonzero()[:, 1], tensor.detach()[mask], tuple(tensor.shape))


@dataclass(frozen=True, slots=True)
class CSC(Layout):
    """The kept entries of each column of a matrix are stored with their rows."""

    name = "csc"
    storage: ClassVar[type] = CscTensor
    least_rank: ClassVar[int] = 2
    for_matrices: ClassVar[bool] = True
    compiled_as: ClassVar[str] = "csc"
    fits_by_shape: ClassVar[bool] = True

    def pack(self, tensor: torch.Tensor, mask: torch.Tensor) -> CscTensor:
        values = tensor.detach().T[mask.T]
        return CscTensor(positions_of(mask.sum(0)), mask.T.nonzero()[:, 1], values, tuple(tensor.shape))


def positions_of(counts: torch.Tensor) -> torch.Tensor:
    """Return where each row or column begins, and where the last one ends, from the number of entries of each."""
    import torch

    return torch.cat((counts.new_zeros(1), counts.cumsum(0)))


def majors(positions: torch.Tensor, stored: int) -> torch.Tensor:
    """Return the row (or column) of each of the `stored` entries, from the positions where rows begin."""
    import torch

    counts = positions.diff()
    return torch.repeat_interleave(torch.arange(len(counts), device=positions.device), counts, output_size=stored)


@dataclass(slots=True)
class BcsrTensor:
    """A matrix stored by row of blocks: `positions` [rows of blocks + 1], `columns` [stored] in blocks, and `values` [stored, rows,
    columns], a block each."""

    positions: torch.Tensor
    columns: torch.Tensor
    values: torch.Tensor
    shape: tuple[int, ...]

    def to_dense(self) -> torch.Tensor:
        rows, columns = self.values.shape[1:]
        blocks = self.values.new_zeros((self.shape[0] // rows, self.shape[1] // columns, rows, columns))
        index = (majors(self.positions, len(self.values)), self.columns)
        return blocks.index_put(index, self.values).transpose(1, 2).reshape(self.shape)


@dataclass(frozen=True, slots=True)
class BCSR(Layout):
    """The blocks of a matrix in which something is kept are stored, with all their elements. The block size divides the matrix."""

    name = "bcsr"
    storage: ClassVar[type] = BcsrTensor
    least_rank: ClassVar[int] = 2
    fits_by_shape: ClassVar[bool] = True

    block: tuple[int, int]

    def __post_init__(self) -> None:
        if min(self.block) < 1:
            raise SparsityError(f"`{self}`: a block has at least one row and one column", hint="as in `bcsr:4x4`")

    def refusal(self, mask: torch.Tensor) -> str:
        if mask.dim() != 2 or mask.shape[0] % self.block[0] or mask.shape[1] % self.block[1]:
            size = f"{self.block[0]} x {self.block[1]}"
            return require_matrix(mask) or f"{mask.shape[0]} x {mask.shape[1]} does not divide into blocks of {size}"
        return ""

    def pack(self, tensor: torch.Tensor, mask: torch.Tensor) -> BcsrTensor:
        rows, columns = self.block
        inner = (mask.shape[0] // rows, rows, mask.shape[1] // columns, columns)
        kept = mask.reshape(inner).any(dim=3).any(dim=1)
        blocks = kept_of(tensor, mask).reshape(inner).permute(0, 2, 1, 3)
        return BcsrTensor(positions_of(kept.sum(1)), kept.nonzero()[:, 1], blocks[kept], tuple(tensor.shape))

    def compiler_format(self, shape: tuple[int, ...]) -> CompilerFormat:
        return CompilerFormat("csr", self.block)


@dataclass(slots=True)
class EllTensor:
    """A matrix stored in rows of equal length: `columns` and `values` are [rows, most entries of a row]. A row with fewer entries is filled
    up with zeros of column 0."""

    columns: torch.Tensor
    values: torch.Tensor
    shape: tuple[int, ...]

    def to_dense(self) -> torch.Tensor:
        return self.values.new_zeros(self.shape).scatter_add(1, self.columns.long(), self.values)


@dataclass(frozen=True, slots=True)
class ELL(Layout):
    """Every row of a matrix stores as many entries as the fullest row, with their columns. The compiler stores what is kept, by row."""

    name = "ell"
    storage: ClassVar[type] = EllTensor
    least_rank: ClassVar[int] = 2
    for_matrices: ClassVar[bool] = True
    compiled_as: ClassVar[str] = "csr"
    fits_by_shape: ClassVar[bool] = True

    def pack(self, tensor: torch.Tensor, mask: torch.Tensor) -> EllTensor:
        width = int(mask.sum(1).max()) if mask.numel() else 0
        order = mask.long().argsort(dim=1, descending=True, stable=True)[:, :width]
        kept = mask.gather(1, order)
        return EllTensor(order * kept, kept_of(tensor.gather(1, order), kept), tuple(tensor.shape))


@dataclass(slots=True)
class CooTensor:
    """A tensor whose entries have their coordinates beside them: `indices` [rank, stored] in ascending order, and `values` [stored]."""

    indices: torch.Tensor
    values: torch.Tensor
    shape: tuple[int, ...]

    def to_dense(self) -> torch.Tensor:
        return self.values.new_zeros(self.shape).index_put(tuple(self.indices), self.values)


@dataclass(frozen=True, slots=True)
class COO(Layout):
    """Every kept entry is stored with its coordinates, for a tensor of any rank."""

    name = "coo"
    storage: ClassVar[type] = CooTensor
    fits_by_shape: ClassVar[bool] = True

    def pack(self, tensor: torch.Tensor, mask: torch.Tensor) -> CooTensor:
        return CooTensor(mask.nonzero().T.contiguous(), tensor.detach()[mask], tuple(tensor.shape))

    def compiler_format(self, shape: tuple[int, ...]) -> CompilerFormat:
        return CompilerFormat("coo" if len(shape) > 1 else "(compressed)")
