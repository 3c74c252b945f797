"""The dense layouts: of all entries, and of all entries with a mask beside them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from fuseflow.sparsity.layouts.layout import Layout, kept_of

if TYPE_CHECKING:
    import torch


@dataclass(slots=True)
class DenseTensor:
    """A tensor whose entries are all stored. Those that are not kept are 0."""

    data: torch.Tensor

    def to_dense(self) -> torch.Tensor:
        return self.data


@dataclass(slots=True)
class MaskedSparseTensor:
    """A dense tensor with a mask. What the mask does not keep is 0."""

    data: torch.Tensor
    mask: torch.Tensor

    @property
    def val(self) -> torch.Tensor:
        """The entries, as the paper on STen calls them."""
        return self.data

    def to_dense(self) -> torch.Tensor:
        return self.data


@dataclass(frozen=True, slots=True)
class Dense(Layout):
    """Every entry is stored, those that are not kept as 0. In the compiler, the tensor is dense."""

    name = "dense"
    storage: ClassVar[type] = DenseTensor
    compiled_as: ClassVar[str] = "dense"
    fits_by_shape: ClassVar[bool] = True

    def pack(self, tensor: torch.Tensor, mask: torch.Tensor) -> DenseTensor:
        return DenseTensor(kept_of(tensor, mask))


@dataclass(frozen=True, slots=True)
class Masked(Layout):
    """Every entry is stored, with a mask that says which are kept. In the compiler, the tensor is dense."""

    name = "masked"
    storage: ClassVar[type] = MaskedSparseTensor
    compiled_as: ClassVar[str] = "dense"
    fits_by_shape: ClassVar[bool] = True

    def pack(self, tensor: torch.Tensor, mask: torch.Tensor) -> MaskedSparseTensor:
        return MaskedSparseTensor(kept_of(tensor, mask), mask.clone())
