"""The layout of equal rows: every row of a matrix stores as many entries as the fullest one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from fuseflow.sparsity.layouts.layout import Layout, kept_of

if TYPE_CHECKING:
    import torch


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
