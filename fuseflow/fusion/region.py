"""The fused region: what Algorithm 1 makes of a set of Einsums."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import networkx as nx

from fuseflow.einsum.nodes import TensorType
from fuseflow.fusion.tree import Reduction, Tree, View, loops, views


@dataclass(frozen=True, slots=True)
class Result:
    """A tensor that the region writes: its tree and the index of each of its dimensions."""

    tensor: TensorType
    indices: tuple[str, ...]
    tree: Tree

    @property
    def name(self) -> str:
        return self.tensor.name


@dataclass(frozen=True, slots=True)
class FusedRegion:
    """A region in which every producer is inlined into its consumers.

    `sizes` gives the extent of every index; `stored` the tensors it reads from memory; `fill` the implicit value of every node;
    `merged` the reductions whose index was unified with an index of a consumer, which must be complete before that loop;
    `constraints` the partial-order graph: an edge u -> v means that loop u encloses loop v.
    `order` is the chosen loop order, outermost first (empty until one is chosen).
    """

    name: str
    einsums: tuple[str, ...]
    results: tuple[Result, ...]
    sizes: Mapping[str, int]
    stored: Mapping[str, TensorType]
    fill: Mapping[Tree, float]
    merged: tuple[tuple[Reduction, str], ...]
    constraints: nx.DiGraph[str]
    local: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    order: tuple[str, ...] = ()

    @property
    def trees(self) -> tuple[Tree, ...]:
        return tuple(r.tree for r in self.results)

    @property
    def indices(self) -> tuple[str, ...]:
        """Every loop of the region: result indices first, then reductions, consumers first."""
        return loops((r.indices for r in self.results), self.trees)

    @property
    def views(self) -> tuple[View, ...]:
        return views(*self.trees)
