"""The base class of layouts, and dense ones. A layout is a way to store the kept entries of a tensor, for PyTorch and for the compiler."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from fuseflow.errors import SparsityError
from fuseflow.sparsity.text_form import text_of

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True)
class CompilerFormat:
    """The form of a layout in the compiler: the text of a format, such as `csr`, and the size of a block, or () for single elements."""

    text: str
    block: tuple[int, ...] = ()


class Layout(ABC):
    """A way to store the kept entries of a tensor. A subclass is a frozen dataclass whose fields are its parameters."""

    __slots__ = ()

    name: ClassVar[str]
    """Its name in texts, such as `csr`."""

    storage: ClassVar[type]
    """The class of tensors that are stored so. It has a method `to_dense`."""

    least_rank: ClassVar[int] = 0
    """How many dimensions a tensor has at least that is stored so."""

    for_matrices: ClassVar[bool] = False
    """Whether tensors that are stored so have two dimensions."""

    compiled_as: ClassVar[str] = ""
    """The text of the format in which the compiler stores tensors of every shape, or "" if it has none."""

    fits_by_shape: ClassVar[bool] = False
    """Whether the shape alone decides if a mask fits, so that one that fits still does when other entries are kept."""

    def refusal(self, mask: torch.Tensor) -> str:
        """Return why a mask does not fit the layout, with the first coordinates that do not, or "" if it fits."""
        return require_matrix(mask) if self.for_matrices else ""

    @abstractmethod
    def pack(self, tensor: torch.Tensor, mask: torch.Tensor) -> Any:
        """Return the entries of a dense tensor that a mask keeps, stored in this layout. The mask fits."""

    def compiler_format(self, shape: tuple[int, ...]) -> CompilerFormat | None:
        """Return the format in which the compiler stores a tensor of this shape, or None if it has none."""
        return CompilerFormat(self.compiled_as) if self.compiled_as else None

    def __str__(self) -> str:
        return text_of(self.name, self)


def has_compiler_format(cls: type[Layout]) -> bool:
    """Return whether the compiler has a format for a layout of tensors of some shape."""
    return bool(cls.compiled_as) or cls.compiler_format is not Layout.compiler_format


def require_fit(layout: Layout, mask: torch.Tensor, tensor: str) -> None:
    """Raise `SparsityError` with the first coordinates of a mask that do not fit a layout. `tensor` is its name."""
    reason = layout.refusal(mask)
    if reason:
        hint = "choose another layout, or a pattern that names other tensors; `coo` and `masked` hold any mask of any tensor"
        raise SparsityError(f"`{tensor}` cannot be stored as `{layout}`: {reason}", hint=hint)


def kept_of(tensor: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Return a dense tensor with 0 for entries that a mask does not keep. A product with the mask would give NaN for infinities,
    and -0.0 for negative entries."""
    return tensor.detach().masked_fill(~mask, 0)


def require_matrix(mask: torch.Tensor) -> str:
    """Return why a layout for matrices does not fit, or "" for a matrix."""
    return "" if mask.dim() == 2 else f"it has {mask.dim()} dimensions, and the layout is for matrices"


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
