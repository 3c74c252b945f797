"""The sparsifier that keeps n of every m coordinates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from fuseflow import selection
from fuseflow.errors import SparsityError
from fuseflow.selection import Kind
from fuseflow.sparsity.arrays import mask_of, values_of
from fuseflow.sparsity.layouts.layout import Layout
from fuseflow.sparsity.layouts.n_of_m import NMLayout
from fuseflow.sparsity.sparsifiers.sparsifier import KeepRule, Sparsifier, require_dimension

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True)
class NM(Sparsifier):
    """Keeps the `n` entries of largest magnitude of every `m` coordinates of a dimension, counted from 0. The last group may be short."""

    name = "nm"
    kind: ClassVar[Kind] = "blocking"
    least_rank: ClassVar[int] = 1

    n: int
    m: int
    dim: int = -1

    def __post_init__(self) -> None:
        reason, hint = selection.group_refusal(self.n, self.m)
        if reason:
            raise SparsityError(f"`{self}`: {reason}", hint=hint)

    @property
    def layout(self) -> Layout:
        return NMLayout(self.n, self.m, self.dim)

    @property
    def share(self) -> float:
        return 1 - self.n / self.m

    def select(self, tensor: torch.Tensor, scores: torch.Tensor | None = None) -> torch.Tensor:
        rule = self.keep_rule(tuple(tensor.shape))
        return mask_of(selection.kept(rule.rule, values_of(tensor), rule.dimensions), tensor)

    def keep_rule(self, shape: tuple[int, ...]) -> KeepRule:
        return KeepRule(selection.Largest(self.n, every=self.m), (require_dimension(self, self.dim, shape),))
