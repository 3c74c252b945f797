"""The layout of a bit for each entry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from fuseflow.sparsity.layouts.layout import Layout

if TYPE_CHECKING:
    import torch


@dataclass(slots=True)
class BitmapTensor:
    """A matrix of which `bits` says what is kept, and `values` are the kept entries, row by row."""

    bits: torch.Tensor
    values: torch.Tensor

    def to_dense(self) -> torch.Tensor:
        return self.values.new_zeros(self.bits.shape).masked_scatter(self.bits, self.values)


@dataclass(frozen=True, slots=True)
class Bitmap(Layout):
    """The kept entries of a matrix are stored, with a bit for each entry. In the compiler, each row is a bitmap."""

    name = "bitmap"
    storage: ClassVar[type] = BitmapTensor
    for_matrices: ClassVar[bool] = True
    compiled_as: ClassVar[str] = "(dense, bitmap)"
    fits_by_shape: ClassVar[bool] = True

    def pack(self, tensor: torch.Tensor, mask: torch.Tensor) -> BitmapTensor:
        return BitmapTensor(mask, tensor.detach()[mask])
