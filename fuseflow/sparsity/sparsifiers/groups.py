"""Sparsifiers that keep a number of entries of every fiber or group of coordinates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from fuseflow import keep_rules
from fuseflow.errors import SparsityError
from fuseflow.keep_rules import Kind
from fuseflow.sparsity.grouped.grouping import grouped_mask, require_sizes
from fuseflow.sparsity.layouts.layout import Layout
from fuseflow.sparsity.layouts.n_of_m import NMGLayout, NMLayout
from fuseflow.sparsity.numpy_arrays import mask_of, values_of
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
        return mask_of(keep_rules.kept(rule.rule, values_of(tensor), rule.dimensions), tensor)

    def keep_rule(self, shape: tuple[int, ...]) -> KeepRule:
        dim = require_dimension(self, self.dim, shape)
        rule = keep_rules.Largest(self.k)
        reason, hint = keep_rules.refusal(rule, shape[dim])
        if reason:
            raise SparsityError(f"`{self}`, dimension {dim} of a tensor of shape {list(shape)}: {reason}", hint=hint)
        return KeepRule(rule, (dim,))


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
        reason, hint = keep_rules.group_refusal(self.n, self.m)
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
        return mask_of(keep_rules.kept(rule.rule, values_of(tensor), rule.dimensions), tensor)

    def keep_rule(self, shape: tuple[int, ...]) -> KeepRule:
        return KeepRule(keep_rules.Largest(self.n, every=self.m), (require_dimension(self, self.dim, shape),))


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
