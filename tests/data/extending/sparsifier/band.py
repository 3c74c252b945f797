"""The sparsifier that keeps a band around the diagonal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from fuseflow.errors import SparsityError
from fuseflow.keep_rules import Kind
from fuseflow.sparsity.sparsifiers.sparsifier import Sparsifier

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True)
class Band(Sparsifier):
    """Keeps the entries of a matrix that are at most `width` columns away from the diagonal."""

    name = "band"
    kind: ClassVar[Kind] = "streaming"

    width: int

    def __post_init__(self) -> None:
        if self.width < 0:
            raise SparsityError(f"`{self}`: a band has no negative width", hint="give 0 for the diagonal alone")

    def select(self, tensor: torch.Tensor, scores: torch.Tensor | None = None) -> torch.Tensor:
        if tensor.dim() != 2:
            raise SparsityError(f"`{self}`: a tensor of {tensor.dim()} dimensions has no diagonal", hint="choose matrices")
        return tensor.new_ones(tensor.shape).bool().triu(-self.width).tril(self.width)
