"""The trees of a region on their way through Algorithm 1."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from fuseflow.fusion.region import Copy
from fuseflow.fusion.tree import Reduction, Tree, View, loops, nodes

ViewKey = tuple[str, tuple[str, ...]]
"""A tensor and the indices at which it is read."""


@dataclass(frozen=True)  # with a place for what is computed once
class RegionTrees:
    """`results` are (name, indices, tree); `views` every view so far, of intermediates too; `merged` the reductions whose index was unified
    with one of a consumer; `renamed` all renamings, (old, new); `copies` what is read from permuted copies; `permuted` the results
    that are permuted as they are written."""

    results: tuple[tuple[str, tuple[str, ...], Tree], ...] = ()
    views: tuple[ViewKey, ...] = ()
    merges: tuple[tuple[Reduction, str], ...] = ()
    renamings: tuple[tuple[str, str], ...] = ()
    copies: tuple[Copy, ...] = ()
    permuted_results: tuple[str, ...] = ()

    @property
    def trees(self) -> tuple[Tree, ...]:
        return tuple(tree for _, _, tree in self.results)

    @cached_property
    def nodes(self) -> tuple[Tree, ...]:
        """All nodes, producers first."""
        return nodes(*self.trees)

    @cached_property
    def leaves(self) -> tuple[View, ...]:
        """What is read: stored tensors, and Einsums that are not expanded yet."""
        return tuple(n for n in self.nodes if isinstance(n, View))

    @cached_property
    def reductions(self) -> tuple[Reduction, ...]:
        return tuple(n for n in self.nodes if isinstance(n, Reduction))

    @cached_property
    def indices(self) -> tuple[str, ...]:
        return loops((indices for _, indices, _ in self.results), self.nodes)
