"""The layout of coordinates: every kept entry with its coordinates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from fuseflow.sparsity.layouts.layout import CompilerFormat, Layout

if TYPE_CHECKING:
    import torch


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
