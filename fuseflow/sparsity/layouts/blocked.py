"""The layout of blocks: the kept blocks of each row of blocks of a matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from fuseflow.errors import SparsityError
from fuseflow.sparsity.layouts.compressed import majors, positions_of
from fuseflow.sparsity.layouts.layout import CompilerFormat, Layout, kept_of, require_matrix

if TYPE_CHECKING:
    import torch


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
