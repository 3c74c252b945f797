"""The sparsifier that keeps n of every m coordinates, with the same number of columns for each pattern."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from fuseflow.selection import Kind
from fuseflow.sparsity.arrays import mask_of, values_of
from fuseflow.sparsity.grouped.grouping import require_sizes
from fuseflow.sparsity.grouped.masks import grouped_mask
from fuseflow.sparsity.layouts.grouped import NMGLayout
from fuseflow.sparsity.layouts.layout import Layout
from fuseflow.sparsity.sparsifiers.sparsifier import Sparsifier

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True)
class NMG(Sparsifier):
    """Keeps `n` of every `m` coordinates of the dimension `sparse_dim`, in groups of patterns (STen, arXiv 2304.07613, section 5).

    There are C(m, n) patterns of n of m. Of every C(m, n) * g consecutive coordinates of `group_dim`, exactly `g` have each pattern. The
    method `exact` keeps the most magnitude that is possible, `greedy` is the published one.
    """

    name = "nmg"
    kind: ClassVar[Kind] = "materializing"
    least_rank: ClassVar[int] = 2

    n: int
    m: int
    g: int
    sparse_dim: int = -2
    group_dim: int = -1
    method: Literal["exact", "greedy"] = "exact"

    def __post_init__(self) -> None:
        require_sizes(self.n, self.m, self.g)

    @property
    def layout(self) -> Layout:
        return NMGLayout(self.n, self.m, self.g, self.sparse_dim, self.group_dim)

    @property
    def share(self) -> float:
        return 1 - self.n / self.m

    def select(self, tensor: torch.Tensor, scores: torch.Tensor | None = None) -> torch.Tensor:
        mask = grouped_mask(values_of(tensor), self.n, self.m, self.g, self.sparse_dim, self.group_dim, self.method)
        return mask_of(mask, tensor)
