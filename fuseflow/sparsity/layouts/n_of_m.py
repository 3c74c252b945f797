"""The layout of n entries in every m coordinates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from fuseflow import selection
from fuseflow.errors import SparsityError
from fuseflow.sparsity.layouts.layout import CompilerFormat, Layout, kept_of

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
        reason, hint = selection.group_refusal(self.n, self.m)
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
