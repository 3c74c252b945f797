"""Permuted copies, which break a cycle of the order constraints (rule F3).

    Y[i, j] = A[i, j] + A[j, i]            A stored by rows: i before j, and j before i
    ->  Y[i, j] = A[i, j] + A.copy[j, i]   A.copy stored by columns: i before j, twice

A result that is to be stored in an order which the loops cannot take is permuted as it is written.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from fuseflow.einsum.index_names import underscored_name, unused_name
from fuseflow.einsum.nodes import TensorType
from fuseflow.fusion.order_graph import AskedOrder, ConstraintSource, OrderGraph, refuse_cycle, shortest_cycle, storage_edges
from fuseflow.fusion.region import Copy, FusedRegion, with_structures
from fuseflow.fusion.region_trees import RegionTrees
from fuseflow.fusion.tree import Tree, TreeTable, View

CopyCost = Callable[[str], float]
"""Returns the cost of a copy of a tensor: its expected number of stored values, infinite if it cannot be copied."""


def break_cycles(
    fused: RegionTrees,
    trees: TreeTable,
    constrain: Callable[[RegionTrees], OrderGraph],
    price: CopyCost,
    taken: Collection[str],
    region: str,
) -> RegionTrees:
    """Read or write permuted copies, the cheapest edge of a shortest cycle first, until the loops have an order.

    `constrain` returns the order graph of trees, and `price` the cost of a copy. `taken` are names that no copy may have. Raises
    `FusionError` for a cycle in which nothing can be copied.
    """
    while cycle := shortest_cycle(graph := constrain(fused)):
        position = {v: p for p, v in enumerate(fused.indices)}

        sources = {(u, v): dict.fromkeys(graph[u][v].by) for u, v in cycle}
        costs = {edge: sum(_price(source, price) for source in by) for edge, by in sources.items()}
        # of equally expensive edges, the first that stands against the program
        edge = min(cycle, key=lambda edge: (costs[edge], position[edge[0]] <= position[edge[1]]))
        if math.isinf(costs[edge]):
            refuse_cycle(graph, region)
        for source in sources[edge]:
            fused = _copied(fused, trees, source, taken)
    return fused


def _price(source: ConstraintSource, price: CopyCost) -> float:
    if source is None or isinstance(source, AskedOrder) or (isinstance(source, View) and source.places):
        return math.inf
    return price(source.tensor if isinstance(source, View) else source)


def _copied(fused: RegionTrees, trees: TreeTable, source: ConstraintSource, taken: Collection[str]) -> RegionTrees:
    """Return the trees with a view (`source`) read from a copy, or with a result of this name permuted as it is written."""
    if not isinstance(source, View):
        return replace(fused, permuted_results=(*fused.permuted_results, str(source)))
    name = unused_name(f"{source.tensor}.copy", {*taken, *(copy.name for copy in fused.copies)}, "")
    memo: dict[Tree, Tree] = {}
    for tree in fused.trees:
        trees.rename(tree, {}, memo, {source: name})
    key = source.tensor, source.indices
    views = tuple((name, source.indices) if view == key else view for view in fused.views)
    return replace(fused.renewed(memo), views=views, copies=(*fused.copies, Copy(name, *key)))


def copy_all(fused: RegionTrees, trees: TreeTable, stored: Mapping[str, TensorType], taken: Collection[str]) -> RegionTrees:
    """Return the trees with every view whose storage constrains the loops read from a copy, so that any order is possible."""
    for view in fused.leaves:
        if not view.places and storage_edges(view.indices, stored[view.tensor]):
            fused = _copied(fused, trees, view, taken)
    return fused


def requires_copy(copy: Copy, source: TensorType, loops: Sequence[str]) -> bool:
    """Return whether a copy is needed: the `source` itself cannot be read in the order of these loops."""
    position = {v: p for p, v in enumerate(loops)}
    return any(position[above] > position[below] for above, below in storage_edges(copy.indices, source))


def remove_copy(region: FusedRegion, copy: Copy, source: TensorType) -> FusedRegion:
    """Return the region with `source` read in place of a copy that is not needed."""
    others = tuple(c for c in region.copies if c is not copy)
    return _reread(region, {copy.name: source.name}, others, {**region.stored, source.name: source})


def stored_copy_name(copy: Copy, loops: tuple[str, ...], taken: Collection[str]) -> str:
    """Return the name of a copy in memory when the loops run in this order."""
    return underscored_name("_".join([f"{copy.source}.copy", *map(str, copy.order(loops))]), taken)


def name_copies(region: FusedRegion, taken: Collection[str]) -> FusedRegion:
    """Return the region with each copy named for the order in which it is stored (`A.copy_1_0`), so that equal copies are one tensor.
    No copy may have a name in `taken`."""
    names = {copy.name: stored_copy_name(copy, region.order, taken) for copy in region.copies}
    if not names:
        return region
    copies = {names[c.name]: replace(c, name=names[c.name]) for c in region.copies}
    stored = {names.get(n, n): replace(t, name=names.get(n, n)) for n, t in region.stored.items()}
    return _reread(region, names, tuple(copies.values()), stored)


def _reread(
    region: FusedRegion, names: Mapping[str, str], copies: tuple[Copy, ...], stored: Mapping[str, TensorType]
) -> FusedRegion:
    """Return the region with other `names` of some of the tensors that it reads."""
    region = region.reading({view: names[view.tensor] for view in region.views if view.tensor in names})
    read_names = (*(view.tensor for view in region.views), *(copy.source for copy in copies))
    return replace(region, copies=copies, stored=with_structures(read_names, stored))
