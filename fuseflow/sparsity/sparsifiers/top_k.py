"""The sparsifier that keeps the largest entries of every fiber."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from fuseflow import selection
from fuseflow.errors import SparsityError
from fuseflow.selection import Kind
from fuseflow.sparsity.arrays import mask_of, values_of
from fuseflow.sparsity.sparsifiers.sparsifier import KeepRule, Sparsifier, require_dimension

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True)
class TopK(Sparsifier):
    """Keeps the `k` entries of largest magnitude of every fiber along a dimension."""

    name = "topk"
    kind: ClassVar[Kind] = "blocking"
    least_rank: ClassVar[int] = 1

    k: int
    dim: int = -1

    def __post_init__(self) -> None:
        if self.k < 1:
            raise SparsityError(f"`{self}` keeps nothing", hint="keep at least 1 entry of a fiber")

    def select(self, tensor: torch.Tensor, scores: torch.Tensor | None = None) -> torch.Tensor:
        rule = self.keep_rule(tuple(tensor.shape))
        return mask_of(selection.kept(rule.rule, values_of(tensor), rule.dimensions), tensor)

    def keep_rule(self, shape: tuple[int, ...]) -> KeepRule:
        dim = require_dimension(self, self.dim, shape)
        rule = selection.Largest(self.k)
        reason, hint = selection.refusal(rule, shape[dim])
        if reason:
            raise SparsityError(f"`{self}`, dimension {dim} of a tensor of shape {list(shape)}: {reason}", hint=hint)
        return KeepRule(rule, (dim,))
