"""The compressed layouts of matrices: by row and by column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from fuseflow.sparsity.layouts.layout import Layout

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
