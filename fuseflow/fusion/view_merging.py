"""Merging views: a reduction index is unified with an index of its consumer where that makes two views equal (rule F4).

Softmax reads T[i, j] and, below a reduction, T[i, k]. With k unified with j it reads one view, and the producer of T runs once.

    m[i] = max(k) T[i, k];  Y[i, j] = T[i, j] - m[i]        views T[i, k], T[i, j]
    m[i] = max(j) T[i, j];  Y[i, j] = T[i, j] - m[i]        view  T[i, j], and m must be complete before loop j

Two reductions beside each other (neither inside a loop of the other) are merged only if that makes them share a producer. Sharing the scan
of a stored tensor alone is not worth it: both would have to be at one position in every order.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TypeAlias

from fuseflow.fusion.order_graph import Precedence
from fuseflow.fusion.region_trees import RegionTrees, ViewKey
from fuseflow.fusion.tree import Reduction, Tree, TreeTable, rename_indices

RefusedPairs: TypeAlias = set[tuple[str, str]]
"""Pairs of indices that cannot be unified. Merging others never changes that: it makes more indices equal and adds
constraints."""


@dataclass(frozen=True, slots=True)
class ViewMerger:
    """The rule of merging in one region. `constrain` returns the order of the loops of a candidate, None if there is none.
    `producers` are the Einsums of the region, and `refused_pairs` is added to. With `lean`, nothing is merged that makes a
    producer run again. That happens when the reduction has a free index that the producer lacks: the reduction must be complete
    before the merged loop, so that this loop, and the producer in it, are inside the loop of that index."""

    trees: TreeTable
    sizes: Mapping[str, int]
    producers: Collection[str]
    constrain: Callable[[RegionTrees], Precedence | None]
    refused_pairs: RefusedPairs
    lean: bool = False

    def pairs(self, reduction: Reduction, fused: RegionTrees) -> list[tuple[str, str]]:
        """Return pairs of an index of a reduction and one that would make two views equal, of one size and not refused."""
        partners, sizes, refused = fused.partners, self.sizes, self.refused_pairs
        return [(u, c) for u in reduction.over for c in partners.get(u, ()) if sizes[u] == sizes[c] and (u, c) not in refused]

    def shares(self, fused: RegionTrees, u: str, c: str) -> bool:
        """Return whether views of a producer would be equal if the indices `u` and `c` were."""
        return any(tensor in self.producers for tensor in fused.partners[u][c])

    def merge(self, fused: RegionTrees) -> RegionTrees:
        """Return the trees with all views merged that can be."""
        while self.lean and (better := _side_by_side(fused, self)) is not None:
            fused = better
        while (better := _merge_one(fused, self)) is not None:
            fused = better
        return fused


def _merge_one(fused: RegionTrees, merger: ViewMerger) -> RegionTrees | None:
    """Return the trees after the first merge that is allowed, consumers first, or None if none is."""
    candidates = [(reduction, pairs) for reduction in reversed(fused.reductions) if (pairs := merger.pairs(reduction, fused))]
    if not candidates:
        return None
    bits, around, neighbours, refused = fused.bits, fused.around, _beside(fused), merger.refused_pairs
    written = {v for _, indices, _ in fused.results for v in indices}
    order: Precedence | None = None
    for reduction, pairs in candidates:
        pairs = [(u, c) for u, c in pairs if not neighbours[u] & bits.get(c, 0) and (u, c) not in refused]
        pairs = [(u, c) for u, c in pairs if around[reduction] & bits.get(c, 0) or merger.shares(fused, u, c)]
        if merger.lean:  # with a loop of the reduction that it stands in rather than with one that is left at the end
            pairs.sort(key=lambda pair: pair[1] in written)
        for u, c in pairs:
            if merger.trees.mentions(reduction, c):
                continue
            order = order or merger.constrain(fused)
            assert order is not None, "what is merged has an order"
            if order.encloses(c, u) or order.encloses(u, c) or any(order.encloses(c, v) for v in reduction.free):
                refused.add((u, c))
                continue
            waits = not merger.lean or around[reduction] & bits.get(c, 0)  # it must be complete before loop c
            completed = replace(fused, merges=(*fused.merges, (reduction, c))) if waits else fused
            trial = _renamed(completed, merger.trees, settled(fused.reductions, {u: c}))
            recomputed = merger.lean and _runs_again(fused, trial, merger.producers, {u, c})
            if recomputed or _captures(trial) or merger.constrain(trial) is None:
                refused.add((u, c))
            else:
                return trial
    return None


def _side_by_side(fused: RegionTrees, merger: ViewMerger) -> RegionTrees | None:
    """Unify loops of two results that read a producer at one position, so that both may read one view; None if there are none."""
    places = _indices_by_place(fused.views, merger.producers)
    loops = list(dict.fromkeys(frozenset(indices) for _, indices, _ in fused.results)) if places else []
    for first, second in combinations(loops, 2):
        for u, c in _alike(places, second - first, first - second):
            if merger.sizes[u] == merger.sizes[c] and (u, c) not in merger.refused_pairs:
                trial = _renamed(fused, merger.trees, settled(fused.reductions, {u: c}))
                if not _captures(trial) and merger.constrain(trial) is not None:
                    return trial
                merger.refused_pairs.add((u, c))
    return None


def _indices_by_place(views: tuple[ViewKey, ...], tensors: Collection[str]) -> list[dict[str, None]]:
    """Return the indices that views of one of the `tensors` have at one position, for each position that has several."""
    by_place: dict[tuple[str, int], dict[str, None]] = {}
    for tensor, indices in views:
        for position, v in enumerate(indices if tensor in tensors else ()):
            by_place.setdefault((tensor, position), {})[v] = None
    return [indices for indices in by_place.values() if len(indices) > 1]


def _alike(places: Sequence[Collection[str]], some: Set[str], others: Set[str]) -> Iterator[tuple[str, str]]:
    """Yield pairs of indices of one of the `places`, one of `some` and one of `others`."""
    return ((u, c) for indices in places for c in indices if c in others for u in indices if u in some)


def _runs_again(fused: RegionTrees, trial: RegionTrees, producers: Collection[str], unified: set[str]) -> bool:
    """Return whether the view of a producer that the indices `unified` made lacks a free index of a reduction which must be
    complete before a loop of the view. `trial` are the trees after the merge."""
    index = next((w for v, w in trial.renamings if v in unified), "")
    shared = [set(indices) for name, indices in trial.views if name in producers and index in indices]
    waiting = (r for r in trial.reductions if index in r.over and trial.around[r] & trial.bits[index])
    return any(not set(r.free) <= indices for r in waiting for indices in shared)


def _tuples(fused: RegionTrees) -> list[tuple[str, ...]]:
    """Return the indices of every result, stored view, reduction and selection: those in one tuple must stay distinct."""
    tuples = [indices for _, indices, _ in fused.results]
    return (
        tuples
        + [v.indices for v in fused.leaves]
        + [(*r.free, *r.over) for r in fused.reductions]
        + [s.free for s in fused.selections]
    )


def _beside(fused: RegionTrees) -> dict[str, int]:
    """Return, for every index, the bits of the indices in one tuple with it: none of these can be unified with it."""
    bits, neighbours = fused.bits, dict.fromkeys(fused.indices, 0)
    for indices in set(_tuples(fused)):
        beside = sum([bits[v] for v in indices])
        for v in indices:
            neighbours[v] |= beside
    return neighbours


def settled(reductions: Sequence[Reduction], table: dict[str, str]) -> dict[str, str]:
    """Return a renaming with all that follow: reduction indices of producers are unified, too, below views that become equal."""
    while (clash := _clash(reductions, table)) is not None:
        kept, other = clash
        follows = {v: w for v, w in zip(other, kept, strict=True) if v != w}
        names = tuple(dict.fromkeys((*table, *follows)))
        table = dict(zip(names, rename_indices(rename_indices(names, table), follows), strict=True))
    return table


def _clash(reductions: Sequence[Reduction], table: Mapping[str, str]) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Return the indices of two reductions that a renaming makes the same view but that reduce over different indices, None if
    there are none. (In one iteration space a reduction absorbs others: views of one producer may then reduce over more or
    fewer.)"""
    first_by_view: dict[tuple[str, str, tuple[str, ...], int], tuple[str, ...]] = {}
    for node in reductions:
        over = rename_indices(node.over, table)
        first = first_by_view.setdefault((node.label, node.op, rename_indices(node.free, table), len(over)), over)
        if first != over:
            return first, over
    return None


def _renamed(fused: RegionTrees, trees: TreeTable, table: dict[str, str]) -> RegionTrees:
    memo: dict[Tree, Tree] = {}
    trees.rename_all(fused.nodes, table, memo)
    renewed = fused.renewed(memo)
    return replace(
        renewed,
        results=tuple([(name, rename_indices(indices, table), tree) for name, indices, tree in renewed.results]),
        views=tuple(dict.fromkeys((name, rename_indices(indices, table)) for name, indices in fused.views)),
        merges=tuple(dict.fromkeys((node, table.get(v, v)) for node, v in renewed.merges)),
        renamings=(*((a, table.get(b, b)) for a, b in fused.renamings), *table.items()),
        copies=tuple(replace(copy, indices=rename_indices(copy.indices, table)) for copy in fused.copies),
    ).visiting([memo[node] for node in fused.nodes])


def _captures(fused: RegionTrees) -> bool:
    """Return whether a renaming made two indices of one view, reduction or result the same."""
    return any(len(set(t)) < len(t) for t in _tuples(fused))
