"""The number of orders of a region under three rules: the published one, the same with equal views merged, and this compiler's.

The published rule inlines every *use* of an intermediate on its own, and orders all levels of a stored tensor, dense ones too. Only
reductions inside one operator stay one loop: the maximum and the sum of a softmax run over the index of its result. In a program of Einsums
nothing marks a softmax; but merging (rule F4) unifies exactly its reductions with an index of their consumer. So:

    fuse the Einsums as if all levels were compressed, with views merged; then expand the DAG to a tree, where each use of a
    reduction reduces over fresh variables, except where the variable is one of a consumer around it

    T[i] = sum(k) A[i, k];  Y[i] = T[i] * T[i]                 merged: i, k        expanded: i, k, k_2
    m[i] = max(k) A[i, k];  Y[i, j] = A[i, j] - m[i]           merged: i, j        expanded: i, j       (k is j: the same loop)

The orders are the linear extensions of the mode orders of all stored tensors that the tree reads. These are the numbers of the paper's
table of orders: a two-layer GCN with softmax has {n, c} and four copies of {i, k, f, h}, and 16!/(4!)^4 = 63,063,000 orders.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import assert_never

from fuseflow.einsum.index_names import unused_name
from fuseflow.einsum.nodes import Program, TensorType
from fuseflow.errors import FusionError
from fuseflow.fusion.fuse import fuse
from fuseflow.fusion.linear_extensions import Enclosing, ExtensionCount, count_extensions
from fuseflow.fusion.order_graph import storage_reason
from fuseflow.fusion.region import FusedRegion
from fuseflow.fusion.tree import Constant, Operation, Reduction, Selection, Tree, View, rename_indices
from fuseflow.tensors import Format

MOST_VARIABLES = 1000
"""The number of variables of an expanded region, at most: uses of uses multiply."""


@dataclass(frozen=True, slots=True)
class OrderCount:
    """The number of orders of `variables` loops that satisfy the constraints. Without constraints there are `variables`!
    orders."""

    variables: int
    constrained: ExtensionCount

    @classmethod
    def of(cls, graph: Enclosing) -> OrderCount:
        return cls(len(graph), count_extensions(graph))

    @property
    def unconstrained(self) -> int:
        return math.factorial(self.variables)


def count_legal(region: FusedRegion) -> OrderCount:
    """Return the number of candidate orders of a region as it is lowered: with views merged, dense levels in any order, copies, and
    the user's orders."""
    return OrderCount.of(region.constraints)


def count_merged(program: Program, region: FusedRegion, stored: Mapping[str, TensorType]) -> OrderCount:
    """Return the number of orders with equal views merged and along all mode orders. Arguments are as for `fuse`."""
    ordered = fuse_in_mode_order(program, region, stored)
    return OrderCount(len(region.indices), ExtensionCount(0)) if ordered is None else OrderCount.of(ordered.constraints)


def count_reference(program: Program, region: FusedRegion, stored: Mapping[str, TensorType]) -> OrderCount:
    """Return the number of orders under the published rule: every use expanded. Raises `FusionError` beyond `MOST_VARIABLES`."""
    ordered = fuse_in_mode_order(program, region, stored)
    return OrderCount(len(expand_uses(region)), ExtensionCount(0)) if ordered is None else OrderCount.of(expand_uses(ordered))


def fuse_in_mode_order(program: Program, region: FusedRegion, stored: Mapping[str, TensorType]) -> FusedRegion | None:
    """Fuse the region as if all levels in memory were compressed. Return None if the mode orders then contradict each other."""
    compressed = {
        name: replace(t, format=Format.of(*["compressed"] * len(t.shape), order=t.format.order if t.format else None))
        for name, t in stored.items()
    }
    try:
        return fuse(program.unordered, region.name, region.einsums, [r.name for r in region.results], compressed)
    except FusionError:
        return None


def expand_uses(region: FusedRegion) -> Mapping[str, Mapping[str, str]]:
    """Return the partial order of the variables of the region's trees, with the reasons. Every use of a reduction has fresh variables."""
    expansion = _Expansion(region)
    for result in region.results:
        expansion.graph |= {v: {} for v in result.indices if v not in expansion.graph}
        expansion.add(result.tree, {v: v for v in result.indices})
    return expansion.graph


@dataclass(slots=True)
class _Expansion:
    """The expansion of one region: the partial order of its variables so far."""

    region: FusedRegion
    graph: dict[str, dict[str, str]] = field(default_factory=dict)
    expanded_uses: set[tuple[Tree, tuple[tuple[str, str], ...]]] = field(default_factory=set)

    def add(self, node: Tree, scope: dict[str, str]) -> None:
        """Add the variables and edges of one use of a node. `scope` maps the indices of the loops around it to their variables."""
        key = node, tuple(scope.items())
        if key in self.expanded_uses:
            return
        size = len(self.graph)
        match node:
            case View():
                self._read(View(node.tensor, rename_indices(node.indices, scope)))
            case Reduction():
                fresh = {v: self._fresh(v) for v in node.over if v not in scope or (node, v) not in self.region.merges}
                self.add(node.body, scope | fresh)
            case Constant() | Operation() | Selection():
                for operand in node.operands:
                    self.add(operand, scope)
            case unknown:
                assert_never(unknown)
        if len(self.graph) == size:
            self.expanded_uses.add(key)  # another use of it brings nothing new

    def _read(self, view: View) -> None:
        self.graph |= {v: {} for v in view.indices if v not in self.graph}
        format = self.region.stored[view.tensor].format
        levels = [view.indices[d] for d in format.order] if format is not None else []
        for above, below in pairwise(levels):
            self.graph[above][below] = storage_reason(view, self.region.stored)

    def _fresh(self, wanted: str) -> str:
        if len(self.graph) == MOST_VARIABLES:
            raise FusionError(
                f"region `{self.region.name}` has more than {MOST_VARIABLES} variables if every use of an intermediate is inlined",
                hint="count its orders with `--count merged`, or fuse fewer Einsums",
            )
        name = unused_name(wanted, self.graph)
        self.graph[name] = {}
        return name
