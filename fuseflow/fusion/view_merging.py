"""Merging views: a reduction index is unified with an index of its consumer where that makes two views equal (rule F4).

Softmax reads T[i, j] and, below a reduction, T[i, k]. With k unified with j it reads one view, and the producer of T runs once.

    m[i] = max(k) T[i, k];  Y[i, j] = T[i, j] - m[i]        views T[i, k], T[i, j]
    m[i] = max(j) T[i, j];  Y[i, j] = T[i, j] - m[i]        view  T[i, j], and m must be complete before loop j

Two reductions beside each other (neither inside a loop of the other) are merged only if that makes them share a producer. Sharing the scan
of a stored tensor alone is not worth it: both would have to stand at the same place of every order.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

import networkx as nx

from fuseflow.fusion.region_trees import RegionTrees, ViewKey
from fuseflow.fusion.tree import Producer, Reduction, Tree, TreeTable, all_indices, rename_indices

RefusedPairs: TypeAlias = set[tuple[str, str]]
"""Pairs of indices that cannot be unified. Merging others never changes that: it makes more indices equal and adds constraints."""


@dataclass(frozen=True, slots=True)
class ViewMerger:
    """The rule of merging in one region. `constrain` gives the order graph of a candidate, which must stay acyclic. `producers` are the
    Einsums of the region, and `refused_pairs` is added to. With `lean`, nothing is merged that makes a producer run again. That happens
    when the reduction has a free index that the producer lacks: the reduction must be complete before the merged loop, so that this
    loop, and the producer in it, stand inside the loop of that index.
    """

    trees: TreeTable
    sizes: Mapping[str, int]
    producers: Collection[str]
    constrain: Callable[[RegionTrees], nx.DiGraph[str]]
    refused_pairs: RefusedPairs
    lean: bool = False

    def applies_to(self, fused: RegionTrees) -> bool:
        """Return whether the views of some trees may be merged, as far as is seen without the constraints."""
        partners = _partners(fused.views) if not self.lean else {}
        return self.lean or any(self.pairs(reduction, partners) for reduction in fused.reductions)

    def pairs(self, reduction: Reduction, partners: Mapping[str, Collection[str]]) -> list[tuple[str, str]]:
        """Return the pairs of an index of a reduction and a partner of it that are of one size and were not refused."""
        pairs = [(u, c) for u in reduction.over for c in partners.get(u, ()) if self.sizes[u] == self.sizes[c]]
        return [pair for pair in pairs if pair not in self.refused_pairs]

    def merge(self, fused: RegionTrees) -> RegionTrees:
        """Merge until nothing more can be merged."""
        while self.lean and (better := _side_by_side(fused, self)) is not None:
            fused = better
        while (better := _merge_one(fused, self)) is not None:
            fused = better
        return fused


def _merge_one(fused: RegionTrees, merger: ViewMerger) -> RegionTrees | None:
    """Return the trees after the first merge that is allowed, consumers first, or None if none is."""
    partners = _partners(fused.views)
    candidates = [(r, pairs) for r in reversed(fused.reductions) if (pairs := merger.pairs(r, partners))]
    if not candidates:
        return None
    sharing = _partners(tuple(key for key in fused.views if key[0] in merger.producers))
    neighbours, around, refused = _beside(fused), _around(fused), merger.refused_pairs
    written = {v for _, indices, _ in fused.results for v in indices}
    inner_loops: dict[str, set[str]] = {}  # index -> the loops that must be inside its own
    for reduction, pairs in candidates:
        pairs = [(u, c) for u, c in pairs if c not in neighbours[u] and (u, c) not in refused]
        pairs = [(u, c) for u, c in pairs if c in around[reduction] or c in sharing.get(u, ())]
        if merger.lean:  # with a loop of the reduction that it stands in rather than with one that is left at the end
            pairs.sort(key=lambda pair: pair[1] in written)
        indices_inside = all_indices(reduction) if pairs else set()
        for u, c in pairs:
            if c in indices_inside:
                continue
            inner_loops = inner_loops or _after(merger.constrain(fused))
            if u in inner_loops[c] or c in inner_loops[u] or not inner_loops[c].isdisjoint(reduction.free):
                refused.add((u, c))
                continue
            waits = not merger.lean or c in around[reduction]
            trial = _unify(fused, merger.trees, reduction if waits else None, u, c)
            recomputed = merger.lean and _runs_again(fused, trial, merger.producers, {u, c})
            if recomputed or _captures(trial) or not nx.is_directed_acyclic_graph(merger.constrain(trial)):
                refused.add((u, c))
            else:
                return trial
    return None


def _side_by_side(fused: RegionTrees, merger: ViewMerger) -> RegionTrees | None:
    """Unify the loops of two results that read one producer at the same place, so that both may read the same view. Return None if no such
    pair is left.
    """
    for n, (_, first_indices, _) in enumerate(fused.results):
        for _, second_indices, _ in fused.results[n + 1 :]:
            for u, c in _alike(
                fused.views, merger.producers, set(second_indices) - set(first_indices), set(first_indices) - set(second_indices)
            ):
                if merger.sizes[u] == merger.sizes[c] and (u, c) not in merger.refused_pairs:
                    trial = _settled(_renamed(fused, merger.trees, {u: c}), merger.trees)
                    if not _captures(trial) and nx.is_directed_acyclic_graph(merger.constrain(trial)):
                        return trial
                    merger.refused_pairs.add((u, c))
    return None


def _alike(views: tuple[ViewKey, ...], tensors: Collection[str], some: set[str], others: set[str]) -> Iterator[tuple[str, str]]:
    """Yield pairs of indices, one of `some` and one of `others`, that stand at one place of a tensor."""
    indices_by_place: dict[tuple[str, int], dict[str, None]] = {}
    for tensor, indices in views:
        for position, v in enumerate(indices if tensor in tensors else ()):
            indices_by_place.setdefault((tensor, position), {})[v] = None
    yield from (
        (u, c) for candidates in indices_by_place.values() for c in candidates if c in others for u in candidates if u in some
    )


def _runs_again(fused: RegionTrees, trial: RegionTrees, producers: Collection[str], unified: set[str]) -> bool:
    """Return whether a view that two became lacks a free index of a reduction which must be complete before a loop of the view."""
    index = next((w for v, w in trial.renamings if v in unified), "")
    shared = [set(indices) for name, indices in trial.views if name in producers and index in indices]
    around = _around(trial)
    waiting = (r for r in trial.reductions if index in r.over and index in around[r])
    return any(not set(r.free) <= indices for r in waiting for indices in shared)


def _around(fused: RegionTrees) -> dict[Tree, set[str]]:
    """Return, for every node, the indices of everything that it stands inside of."""
    surroundings: dict[Tree, set[str]] = {}
    for _, indices, tree in fused.results:
        surroundings.setdefault(tree, set()).update(indices)
    for node in reversed(fused.nodes):
        inner = surroundings[node].union((*node.free, *node.over) if isinstance(node, Producer) else ())
        for child in node.operands:
            surroundings.setdefault(child, set()).update(inner)
    return surroundings


def _after(graph: nx.DiGraph[str]) -> dict[str, set[str]]:
    """Return, for every loop, the loops that must be inside of it."""
    inner_loops: dict[str, set[str]] = {}
    for v in reversed(list(nx.topological_sort(graph))):
        inner_loops[v] = {w for below in graph.successors(v) for w in (below, *inner_loops[below])}
    return inner_loops


def _tuples(fused: RegionTrees) -> list[tuple[str, ...]]:
    """Return the indices of every result, stored view and reduction: they must stay distinct."""
    tuples = [indices for _, indices, _ in fused.results]
    return (
        tuples
        + [v.indices for v in fused.leaves]
        + [(*r.free, *r.over) for r in fused.reductions]
        + [s.free for s in fused.selections]
    )


def _beside(fused: RegionTrees) -> dict[str, set[str]]:
    """Return, for every index, those that stand beside it somewhere: unified with one of them, it would be captured."""
    neighbours: dict[str, set[str]] = {v: set() for v in fused.indices}
    for indices in _tuples(fused):
        for v in indices:
            neighbours[v].update(indices)
    return neighbours


def _partners(keys: tuple[ViewKey, ...]) -> dict[str, dict[str, None]]:
    """Return, for every index, the others that would make two views of one tensor equal: the views differ in this place alone."""
    groups: dict[tuple[str, int, tuple[str, ...]], list[str]] = {}
    for tensor, indices in keys:
        for position, v in enumerate(indices):
            groups.setdefault((tensor, position, indices[:position] + indices[position + 1 :]), []).append(v)
    partners: dict[str, dict[str, None]] = {}
    for group in groups.values():
        for v in group if len(group) > 1 else ():
            partners.setdefault(v, {}).update((w, None) for w in group if w != v)
    return partners


def _unify(fused: RegionTrees, trees: TreeTable, waits: Reduction | None, u: str, c: str) -> RegionTrees:
    """Rename u to c, and what follows from it; a reduction that `waits` must be complete before loop c."""
    merged = (*fused.merges, *([(waits, c)] if waits is not None else []))
    return _settled(_renamed(replace(fused, merges=merged), trees, {u: c}), trees)


def _settled(trial: RegionTrees, trees: TreeTable) -> RegionTrees:
    """Unify the reduction indices of producers, too, below views that became equal."""
    while (clash := _clash(trial)) is not None:
        kept, other = clash
        trial = _renamed(trial, trees, {v: w for v, w in zip(other.over, kept.over, strict=True) if v != w})
    return trial


def _clash(fused: RegionTrees) -> tuple[Reduction, Reduction] | None:
    """Return two reductions that are the same view but reduce over different indices. (In one iteration space a reduction absorbs others:
    views of one producer may then reduce over more or fewer.)
    """
    first_by_view: dict[tuple[str, str, tuple[str, ...], int], Reduction] = {}
    for node in fused.reductions:
        first = first_by_view.setdefault((node.label, node.op, node.free, len(node.over)), node)
        if first is not node and first.over != node.over:
            return first, node
    return None


def _renamed(fused: RegionTrees, trees: TreeTable, table: dict[str, str]) -> RegionTrees:
    memo: dict[Tree, Tree] = {}
    results = tuple(
        (name, rename_indices(indices, table), trees.rename(tree, table, memo)) for name, indices, tree in fused.results
    )
    keys = dict.fromkeys((name, rename_indices(indices, table)) for name, indices in fused.views)
    merged: dict[tuple[Reduction, str], None] = {}
    for reduction, index in fused.merges:
        node = memo.get(reduction, reduction)
        assert isinstance(node, Reduction)
        merged[node, table.get(index, index)] = None
    names = (*((a, table.get(b, b)) for a, b in fused.renamings), *table.items())
    copies = tuple(replace(copy, indices=rename_indices(copy.indices, table)) for copy in fused.copies)
    return replace(fused, results=results, views=tuple(keys), merges=tuple(merged), renamings=names, copies=copies)


def _captures(fused: RegionTrees) -> bool:
    """Return whether a renaming made two indices of one view, reduction or result the same."""
    return any(len(set(t)) < len(t) for t in _tuples(fused))
