"""Algorithm 1: the Einsums of a region become one tree for each result, with the partial order of its loops."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Literal, TypeAlias

import networkx as nx

from fuseflow.einsum.nodes import Program, TensorType
from fuseflow.einsum.verify import extents
from fuseflow.errors import FusionError, did_you_mean
from fuseflow.fusion.copies import CopyCost, break_cycles, copy_all
from fuseflow.fusion.inline import Inliner
from fuseflow.fusion.iteration import hoist_sums
from fuseflow.fusion.order_graph import build_order_graph, refuse_cycle, refuse_order, with_storage_order
from fuseflow.fusion.orders import MAX_CANDIDATES, OrderCost, best_order, compare_orders, enumerate_orders, first_order
from fuseflow.fusion.region import FusedRegion, RegionOutput
from fuseflow.fusion.region_trees import RegionTrees
from fuseflow.fusion.tree import Reduction, Tree, implicit_values, nodes
from fuseflow.fusion.view_merging import RefusedPairs, ViewMerger

MergePolicy: TypeAlias = Literal["early", "late", "lean", "never"]
RegionCost = Callable[[FusedRegion], OrderCost]
"""What an ordered region costs. May refuse the order with a `FusionError`."""

SHOWN_ORDERS = 6
MIN_CANDIDATES = 4
LOWERED_NODES = 2_000
"""Nodes of trees that are lowered, in all, to choose an order: some tenths of a second."""
MAX_REFUSED_ORDERS = 200
"""Orders that may be refused before the `first` legal one."""


def fuse(
    program: Program,
    name: str,
    einsums: Sequence[str],
    results: Sequence[str],
    stored: Mapping[str, TensorType],
    *,
    chain: tuple[str, ...] = (),
    pinned: Collection[str] = (),
    merge: MergePolicy = "early",
    iteration: str = "factored",
    price: CopyCost | None = None,
    free: bool = False,
) -> FusedRegion:
    """Fuse the Einsums called `einsums` into one region that writes `results`.

    `program` declares every tensor (`einsum.formats.infer`). `stored` declares what is in memory: program inputs and results of
    earlier regions, with the formats they really have. The loops of a `pinned` result follow its declared mode order; the others
    are stored in loop order. `chain` is an order of some or all of the region's indices that the user asked for: names of the
    region, or of its only Einsum. `iteration`: `factored`, or `global` for one iteration space (`fusion.iteration`).
    `price` gives the expected stored values of a tensor; with it, permuted copies break a cycle of the constraints. `free`: every tensor
    whose storage constrains the loops is read from a copy, so that all orders are possible (`copies.restored` undoes what was not needed).
    Views are merged `early`, before their producers are expanded; `late`, when all constraints are known; `lean`, early, but not where
    a producer would run again for it; or `never`.
    Raises `FusionError` if no order is left, naming the edges of the cycle.
    """
    chosen = {e.name: e for e in program.einsums if e.name in einsums}
    fuser = _Fuser(
        name, program.declared, stored, frozenset(pinned), price, Inliner(name, chosen, extents(program)), merge == "lean"
    )
    fused = fuser.inlined(results, merging=merge in ("early", "lean") and iteration == "factored")
    if iteration == "global":
        fused = fuser.hoist_sums(fused)
    if merge != "never":
        fused = fuser.merge_views(fused)
    if free:
        fused = copy_all(fused, fuser.inliner.trees, fuser.known(fused), fuser.taken)
    unasked = fuser.constraints(fused)
    refuse_cycle(unasked, name)
    asked = check_region_names(chain, name, fuser.alone, fused.indices)
    if price is None and set(asked) == set(fused.indices):
        refuse_order(unasked, asked, name, islice(enumerate_orders(unasked, fused.indices), SHOWN_ORDERS))
    fused = fuser.acyclic(fused, asked)
    graph = fuser.constraints(fused, asked)
    refuse_cycle(graph, name)
    known = fuser.known(fused)
    return FusedRegion(
        name=name,
        einsums=tuple(chosen),
        results=fuser.results(fused),
        sizes={v: fuser.inliner.sizes[v] for v in fused.indices},
        stored={name: known[name] for name in (*(v.tensor for v in fused.leaves), *(c.source for c in fused.copies))},
        fill=implicit_values(fused.trees, {n: t.fill for n, t in known.items()}, fuser.inliner.sizes),
        merges=fused.merges,
        constraints=graph,
        local_names=fuser.inliner.local_names,
        copies=fused.copies,
    )


@dataclass(frozen=True, slots=True)
class _Fuser:
    """The steps of Algorithm 1 on one region, and what they all need."""

    region: str
    declared: Mapping[str, TensorType]
    stored: Mapping[str, TensorType]
    pinned: frozenset[str]
    price: CopyCost | None
    inliner: Inliner
    lean: bool
    refused: RefusedPairs = field(default_factory=set)

    def inlined(self, results: Sequence[str], merging: bool) -> RegionTrees:
        """Every Einsum expanded, consumers first; if it has several views, they are merged before that."""
        fused = RegionTrees()
        for einsum in reversed(tuple(self.inliner.einsums.values())):
            if einsum.name in results:
                fused = self.inliner.write(fused, einsum)
            if merging and sum(tensor == einsum.name for tensor, _ in fused.views) > 1:
                fused = self.merge_views(fused)
            fused = self.acyclic(self.inliner.expand(fused, einsum))
        return fused

    def hoist_sums(self, fused: RegionTrees) -> RegionTrees:
        memo: dict[Tree, Tree] = {}
        results = tuple((name, indices, hoist_sums(tree, self.inliner.trees, memo)) for name, indices, tree in fused.results)
        merged = tuple((now, v) for r, v in fused.merges if isinstance(now := memo[r], Reduction))
        return replace(fused, results=results, merges=merged)

    def merge_views(self, fused: RegionTrees) -> RegionTrees:
        if not nx.is_directed_acyclic_graph(self.constraints(fused)):
            return fused
        inliner = self.inliner
        merged = ViewMerger(inliner.trees, inliner.sizes, inliner.einsums, self.constraints, self.refused, self.lean).merge(fused)
        there = {*merged.indices, *(v for _, indices in merged.views for v in indices)}
        gone = self.inliner.rename(dict(merged.renamings), there)
        self.refused.difference_update([pair for pair in self.refused if not gone.isdisjoint(pair)])
        return replace(merged, renamings=())

    def acyclic(self, fused: RegionTrees, asked: tuple[str, ...] = ()) -> RegionTrees:
        """With copies where the constraints, and the order that the user asked for, contradict each other."""
        if self.price is None:
            return fused
        constrain = lambda trial: self.constraints(trial, asked)  # noqa: E731
        broken = break_cycles(fused, self.inliner.trees, constrain, self.price, self.taken, self.region)
        if broken is not fused:
            self.refused.clear()  # there are fewer constraints now
        return broken

    @property
    def taken(self) -> set[str]:
        """Names that no copy may have."""
        return {*self.declared, *self.stored}

    @property
    def alone(self) -> Mapping[str, str]:
        """What the indices of the only Einsum are called in the region: the user may use its own names."""
        return next(iter(self.inliner.local_names.values()), {}) if len(self.inliner.einsums) == 1 else {}

    def constraints(self, fused: RegionTrees, asked: tuple[str, ...] = ()) -> nx.DiGraph[str]:
        kept = [
            (name, tuple(indices[d] for d in format.order), format.short())
            for name, indices, _ in fused.results
            if name in self.pinned and name not in fused.permuted_results and (format := self.declared[name].format) is not None
        ]
        orders = [(f"the schedule orders {','.join(asked)}", asked)]
        return build_order_graph(fused.indices, fused.leaves, self.known(fused), fused.merges, kept, orders)

    def known(self, fused: RegionTrees) -> dict[str, TensorType]:
        """What the trees may read: stored tensors, copies whose order is not known yet, and Einsums that are not expanded yet."""
        copies = {c.name: replace(self.stored[c.source], name=c.name, format=None) for c in fused.copies}
        return {**{n: replace(self.declared[n], format=None) for n in self.inliner.einsums}, **self.stored, **copies}

    def results(self, fused: RegionTrees) -> tuple[RegionOutput, ...]:
        """In program order."""
        found = {name: (indices, tree) for name, indices, tree in fused.results}
        made = []
        for name in (e for e in self.inliner.einsums if e in found):
            (indices, tree), tensor = found[name], self.declared[name]
            order = tensor.format.order if tensor.format is not None and name in fused.permuted_results else ()
            made.append(RegionOutput(tensor, indices, tree, levels=tuple(indices[d] for d in order)))
        return tuple(made)


def to_region_names(chain: tuple[str, ...], local: Mapping[str, str], indices: tuple[str, ...]) -> tuple[str, ...]:
    """The user's index names as the region's own: they may be the `local` ones of its only Einsum, unless it reduces a name twice."""
    names = tuple(local.get(v, v) for v in chain)
    return chain if len(set(names)) < len(names) and set(chain) <= set(indices) else names


def check_region_names(
    chain: tuple[str, ...], region: str, local: Mapping[str, str], indices: tuple[str, ...]
) -> tuple[str, ...]:
    """The same; raises `FusionError` for one that is not there, and for one that is named twice."""
    names = to_region_names(chain, local, indices)
    for given, v in zip(chain, names, strict=True):
        if v not in indices:
            raise FusionError(
                f"order {','.join(chain)}: region `{region}` has no index `{given}`", hint=did_you_mean(given, indices)
            )
    if len(set(names)) < len(names):
        raise FusionError(f"order {','.join(chain)} of region `{region}` names an index twice")
    return names


def candidate_limit(region: FusedRegion) -> int:
    """How many orders of a region are compared: fewer where lowering one takes long."""
    return max(MIN_CANDIDATES, min(MAX_CANDIDATES, LOWERED_NODES // len(nodes(*region.trees))))


def pipeline_order(region: FusedRegion) -> tuple[str, ...]:
    """The loops in the order in which a pipeline needs them: those of all reductions, then each reduction's own, producers first, then what
    is left of the results. Each producer then hands a fiber to its consumer, and none runs again."""
    reductions = [node for node in nodes(*region.trees) if isinstance(node, Reduction)]
    shared = (v for v in region.indices if all(v in r.free for r in reductions))
    return tuple(dict.fromkeys((*shared, *(v for r in reductions for v in r.over), *region.indices)))


def choose_order(region: FusedRegion, cost: RegionCost, policy: str = "best") -> FusedRegion:
    """The region in its best-ranked legal order, with the orders that it was compared with; or in the `first`: that nearest
    to the program in which every tensor is read as it is stored, dense ones too, as far as they agree."""
    price = lambda order: cost(replace(region, order=order))  # noqa: E731
    if policy == "first":
        tried = first_order(
            with_storage_order(region.constraints, region.views, region.declared),
            region.indices,
            price,
            region.name,
            MAX_REFUSED_ORDERS,
        )
        return replace(region, order=tried[-1].order, compared=tried)
    compared = compare_orders(
        region.constraints, region.indices, price, region.name, candidate_limit(region), pipeline_order(region)
    )
    return replace(region, order=best_order(compared), compared=compared)
