"""Algorithm 1: the Einsums of a region become one tree for each result, with the partial order of its loops."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice, product
from typing import Literal, Protocol, TypeAlias

from fuseflow.einsum.nodes import Einsum, Program, TensorType
from fuseflow.einsum.verify import Extents, extents
from fuseflow.errors import FusionError, did_you_mean
from fuseflow.float32.operator_precision import COMPARISONS
from fuseflow.fusion.copies import CopyCost, break_cycles, copy_all
from fuseflow.fusion.inline import MOST_PLACES, Inliner
from fuseflow.fusion.linear_extensions import LoopOrder
from fuseflow.fusion.order_candidates import MAX_CANDIDATES, OrderCandidate, OrderCost, enumerate_orders, first_order
from fuseflow.fusion.order_graph import (
    AskedOrder,
    Constraint,
    OrderGraph,
    Precedence,
    build_order_graph,
    refuse_cycle,
    refuse_order,
    with_storage_order,
)
from fuseflow.fusion.order_search import ComparedOrders, CostBound, OrderRules, compare_orders
from fuseflow.fusion.refusal import attempt
from fuseflow.fusion.region import FusedRegion, RegionOutput, only_names, to_region_names, with_structures
from fuseflow.fusion.region_trees import RegionTrees, hoist_sums, order_constraints
from fuseflow.fusion.tree import Constant, Operation, Reduction, Selection, Tree, View, implicit_values, nodes
from fuseflow.fusion.view_merging import RefusedPairs, ViewMerger
from fuseflow.tensors import DTYPES

MergePolicy: TypeAlias = Literal["early", "late", "lean", "never"]
"""When the views of one tensor are merged: `early`, before their producers are expanded; `late`, when all constraints are known;
`lean`, early, but not where a producer would run again for it; or `never`."""


class RegionCost(Protocol):
    """A function that returns the cost of a region in its order, or a bound of it, if its rank is above `limit`. It may refuse
    the order with a `FusionError`."""

    def __call__(self, region: FusedRegion, limit: float = math.inf, /) -> OrderCost | CostBound: ...


SHOWN_ORDERS = 6
"""The number of legal orders that a message lists, at most."""
MIN_CANDIDATES = 4
"""The number of orders that are compared even if lowering one takes long."""
LOWERED_NODES = 1_000
"""The number of tree nodes that are lowered, in all, to choose an order. That takes some hundredths of a second."""
MAX_REFUSED_ORDERS = 200
"""The number of orders that are tried for the policy `first`, at most, before its search ends without a legal order."""


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
    extents_by_einsum: Extents | None = None,
    dropped: Collection[str] = (),
    most_places: int = MOST_PLACES,
    shared: Mapping[str, TensorType] | None = None,
) -> FusedRegion:
    """Fuse the Einsums called `einsums` into one region that writes `results`.

    `program` declares every tensor (`einsum.format_inference.infer`). `stored` declares the tensors in memory: program inputs and
    results of earlier regions, with the formats they really have. The loops of a `pinned` result follow its declared mode order;
    the others are stored in loop order. `chain` is an order of some or all of the region's indices that the user asked for, in
    the names of the region or of its only Einsum. Without one, the loops of each Einsum run in the order that its user wrote.
    `merge` says when views are merged. `iteration` is `factored`, or `global` for one iteration space (`hoist_sums`).
    `price` returns the expected number of stored values of a tensor; with it, permuted copies break a cycle of the constraints.
    With `free`, every tensor whose storage constrains the loops is read from a copy, so that all orders are possible
    (`copies.remove_copy` removes copies that were not needed). `extents_by_einsum` is `einsum.verify.extents` of the program, if
    it is known already. Consumers of an Einsum in `dropped` that is no result get only its entries that are not 0.
    `shared` has the types in memory of tensors that `program` and `stored` declare as vectors.

    Raises `FusionError` if no order is left, naming the edges of the cycle, and for a comparison of a sum with itself.
    Raises `PlacesError` for an Einsum that would be computed in more places than `most_places`.
    """
    positions = sorted({program.positions[e] for e in einsums if e in program.positions})
    members = {e.name: e for e in map(program.einsums.__getitem__, positions)}
    _refuse_materialized(name, members.values())
    sizes = extents(program) if extents_by_einsum is None else extents_by_einsum
    uncopied = {**{e: replace(program.declared[e], format=None) for e in members}, **stored}
    likes = {e: t.like for e in members if (t := program.declared[e]).like and t.format and not t.format.all_dense}
    inliner = Inliner(name, members, sizes, frozenset(dropped).difference(results), likes, most_places)
    fuser = _Fuser(name, program.declared, stored, uncopied, frozenset(pinned), price, inliner, merge == "lean", not chain)
    fused = fuser.inlined(results, merging=merge in ("early", "lean") and iteration == "factored")
    if iteration == "global":
        fused = hoist_sums(fused, inliner.trees)
    if merge != "never":
        fused = fuser.merge_views(fused)
    if free:
        fused = copy_all(fused, inliner.trees, fuser.readable(fused), fuser.taken)
    refuse_compared_sums(name, fused.trees, program.declared)
    graph = fuser.graph(fused)
    refuse_cycle(graph, name)
    user_order = check_region_names(chain, name, only_names(tuple(members), inliner.local_names), fused.indices)
    if price is None and set(user_order) == set(fused.indices):
        refuse_order(graph, user_order, name, islice(enumerate_orders(graph, fused.indices), SHOWN_ORDERS))
    ordered = fuser.acyclic(fused, user_order)
    if user_order or ordered is not fused:
        fused, graph = ordered, fuser.graph(ordered, user_order)
        refuse_cycle(graph, name)
    return fuser.fused_region(fused, graph, shared or {})


def _refuse_materialized(region: str, einsums: Collection[Einsum]) -> None:
    """Raise `FusionError` for an Einsum that keeps entries of a whole result and is not alone."""
    for einsum in einsums if len(einsums) > 1 else ():
        if einsum.materializes:
            raise FusionError(
                f"region `{region}` holds `{einsum.name}`, which keeps entries of a whole result: its operand and its result are stored",
                hint=f"leave `{einsum.name}` out of the region",
                span=einsum.location.span,
            )


@dataclass(frozen=True, slots=True)
class _Fuser:
    """The steps of Algorithm 1 on one region, with the values that all of them need. `uncopied` declares the tensors that trees
    may read except copies: stored tensors, and Einsums that are not expanded yet. `orders` says whether Einsums keep the loop
    orders that the user wrote with them: not if the user ordered the region."""

    region: str
    declared: Mapping[str, TensorType]
    stored: Mapping[str, TensorType]
    uncopied: Mapping[str, TensorType]
    pinned: frozenset[str]
    price: CopyCost | None
    inliner: Inliner
    lean: bool
    orders: bool
    refused: RefusedPairs = field(default_factory=set)

    def inlined(self, results: Sequence[str], merging: bool) -> RegionTrees:
        """Return the trees of these results with every Einsum expanded, consumers first. If `merging`, an Einsum with several views has
        these merged before it is expanded."""
        fused = RegionTrees()
        for einsum in reversed(tuple(self.inliner.einsums.values())):
            if einsum.name in results:
                fused = self.inliner.write(fused, einsum)
            if merging and sum(tensor == einsum.name for tensor, _ in fused.views) > 1:
                fused = self.merge_views(fused)
            fused = self.acyclic(self.inliner.expand(fused, einsum))
        return fused

    def merge_views(self, fused: RegionTrees) -> RegionTrees:
        """Return the trees with views merged where that makes them equal; as they are if the constraints have a cycle."""
        inliner = self.inliner
        merger = ViewMerger(inliner.trees, inliner.sizes, inliner.einsums, self.precedence, self.refused, self.lean)
        may_merge = self.lean or any(merger.pairs(reduction, fused) for reduction in fused.reductions)
        if not may_merge or self.precedence(fused) is None:
            return fused
        merged = merger.merge(fused)
        present = {*merged.indices, *(v for _, indices in merged.views for v in indices)}
        freed = inliner.rename(dict(merged.renamings), present)
        self.refused.difference_update([pair for pair in self.refused if not freed.isdisjoint(pair)])
        return replace(merged, renamings=())

    def acyclic(self, fused: RegionTrees, user_order: tuple[str, ...] = ()) -> RegionTrees:
        """Return the trees with copies wherever the constraints contradict each other or the order that the user asked for."""
        if self.price is None or (not user_order and self.precedence(fused) is not None):
            return fused
        graph = partial(self.graph, user_order=user_order)
        acyclic = break_cycles(fused, self.inliner.trees, graph, self.copy_cost, self.taken, self.region)
        if acyclic is not fused:
            self.refused.clear()  # there are fewer constraints now
        return acyclic

    def copy_cost(self, name: str) -> float:
        """Return the cost of a copy of a stored tensor, or of a result that is permuted as it is written. A result at the places of
        another tensor is never permuted."""
        assert self.price is not None
        return math.inf if name in self.inliner.likes else self.price(name)

    @property
    def taken(self) -> set[str]:
        """The names that no copy may have."""
        return {*self.declared, *self.stored}

    def asked(self, fused: RegionTrees) -> tuple[AskedOrder, ...]:
        """Return the orders that the user wrote with the Einsums, as far as they count."""
        return self.inliner.asked(fused) if self.orders else ()

    def constraints(self, fused: RegionTrees, user_order: tuple[str, ...] = ()) -> Iterator[Constraint]:
        """Yield the constraints of the trees, with those of an order that the user asked for."""
        return order_constraints(fused, self.declared, self.readable(fused), self.pinned, user_order, self.asked(fused))

    def graph(self, fused: RegionTrees, user_order: tuple[str, ...] = ()) -> OrderGraph:
        """Return the order graph of the trees."""
        return build_order_graph(fused.indices, self.constraints(fused, user_order))

    def precedence(self, fused: RegionTrees) -> Precedence | None:
        """Return the order graph of the trees without the reasons of its edges, or None if it has a cycle."""
        return Precedence.of((edge.above, edge.below) for edge in self.constraints(fused))

    def readable(self, fused: RegionTrees) -> Mapping[str, TensorType]:
        """Return the declarations of all tensors that the trees may read: the `uncopied` ones, and copies whose order is not chosen yet."""
        copies = {c.name: replace(self.stored[c.source], name=c.name, format=None, like="") for c in fused.copies}
        return {**self.uncopied, **copies} if copies else self.uncopied

    def results(self, fused: RegionTrees) -> tuple[RegionOutput, ...]:
        """Return the outputs of the region in program order."""
        trees = {name: (indices, tree) for name, indices, tree in fused.results}
        outputs = []
        for name in (e for e in self.inliner.einsums if e in trees):
            (indices, tree), tensor = trees[name], self.declared[name]
            order = tensor.format.order if tensor.format is not None and name in fused.permuted_results else ()
            outputs.append(RegionOutput(tensor, indices, tree, levels=tuple(indices[d] for d in order)))
        return tuple(outputs)

    def fused_region(self, fused: RegionTrees, graph: OrderGraph, shared: Mapping[str, TensorType]) -> FusedRegion:
        """Return the region that has these trees and this order graph."""
        inliner, readable, results = self.inliner, self.readable(fused), self.results(fused)
        likes = (like for result in results if (like := result.tensor.like))
        read = [*(view.tensor for view in fused.leaves), *(copy.source for copy in fused.copies), *likes]
        return FusedRegion(
            name=self.region,
            einsums=tuple(inliner.einsums),
            results=results,
            sizes={v: inliner.sizes[v] for v in fused.indices},
            stored=with_structures(read, readable),
            fill=implicit_values(fused.trees, readable, inliner.sizes),
            merges=fused.merges,
            constraints=graph,
            local_names=inliner.local_names,
            repeated=frozenset(e for e, tables in inliner.tables.items() if len(tables) > 1),
            copies=fused.copies,
            asked=self.asked(fused),
            shared=shared,
        )


def check_region_names(
    chain: tuple[str, ...], region: str, local: Mapping[str, str], indices: tuple[str, ...]
) -> tuple[str, ...]:
    """Return the result of `to_region_names`. Raises `FusionError` for an index that does not exist, or is named twice."""
    names = to_region_names(chain, local, indices)
    for name, v in zip(chain, names, strict=True):
        if v not in indices:
            raise FusionError(
                f"order {','.join(chain)}: region `{region}` has no index `{name}`", hint=did_you_mean(name, indices)
            )
    if len(set(names)) < len(names):
        raise FusionError(f"order {','.join(chain)} of region `{region}` names an index twice")
    return names


def candidate_limit(region: FusedRegion) -> int:
    """Return how many orders of a region are compared: fewer where lowering one takes long."""
    return max(MIN_CANDIDATES, min(MAX_CANDIDATES, LOWERED_NODES // len(nodes(*region.trees))))


def pipeline_order(region: FusedRegion) -> tuple[str, ...]:
    """Return the loops in the order that suits a pipeline: first the loops that all reductions share, then the loops of each
    reduction, producers first, and then the other loops of the results. Each producer then passes a fiber to its consumer, and
    none runs again."""
    reductions = [node for node in nodes(*region.trees) if isinstance(node, Reduction)]
    shared = (v for v in region.indices if all(v in r.free for r in reductions))
    return tuple(dict.fromkeys((*shared, *(v for r in reductions for v in r.over), *region.indices)))


def choose_order(
    region: FusedRegion,
    cost: RegionCost,
    policy: str = "best",
    refused: int = MAX_REFUSED_ORDERS,
    work: Callable[[LoopOrder], float] = lambda order: 0.0,
) -> FusedRegion:
    """Return the region in its best-ranked legal order, with the orders that it was compared with. Under the policy `first`, the
    order reads every tensor in the order in which it is stored, dense ones too, as far as these agree; of such orders it is the
    nearest to the program. Its search ends with an error when the cost has refused `refused` orders. `work` is the expected work
    of an order; only orders with little expected work are priced."""
    if policy == "first":
        graph = with_storage_order(region.constraints, region.views, region.declared)
        trials = first_order(graph, region.indices, lambda order: cost(replace(region, order=order)), region.name, refused)
        return replace(region, order=trials[-1].order, compared=ComparedOrders.of(trials, "first"))
    price = lambda order, limit: cost(replace(region, order=order), limit)  # noqa: E731
    rules = OrderRules(region.dependence.trace, work, pipeline_order(region))
    choice = compare_orders(region.constraints, region.indices, price, region.name, candidate_limit(region), rules)
    later = partial(priced_order, region, cost)
    compared = ComparedOrders(tuple(choice.outcomes), later, choice.priced, "all" if choice.complete else "sample")
    return replace(region, order=choice.order, compared=compared)


def priced_order(region: FusedRegion, cost: RegionCost, order: tuple[str, ...]) -> OrderCandidate:
    """Return an order of a region with its cost."""
    return OrderCandidate.of(order, attempt(cost, replace(region, order=order)))


EXACT = frozenset(("max", "min"))
"""The reductions and operators whose result is one of their operands."""


def refuse_compared_sums(region: str, trees: Collection[Tree], declared: Mapping[str, TensorType]) -> None:
    """Raise `FusionError` if a comparison in the trees of a region compares what it makes of a sum of floats with what it makes in the same
    way of that sum at other indices.

        r[i] = sum(j) where(s[j] == s[i], 1, 0)        s[i] = sum(k, l) T[k, l, i]

    A region that holds s has two loops of it here, and each may add its terms in another order. Then s[i] differs from itself by
    rounding, and the count is wrong by one, not by a rounding error. A stored s is equal to itself.
    """
    for node in nodes(*trees):
        if not isinstance(node, Operation) or node.name not in COMPARISONS:
            continue
        left, right = node.args
        if isinstance(left, Operation) and left.name == "sub" and isinstance(right, Constant):
            left, right = left.args
        for one, other in product(_selected(left), _selected(right)):
            label = _rounded_sum(one, declared) if one is not other and _alike(one, other) else ""
            if label:
                error = FusionError(
                    f"region `{region}` compares `{label}` with itself and would compute it twice: two sums of the same numbers may "
                    "differ in rounding",
                    hint=f"end a region at `{label}`, which then is stored",
                )
                error.producer = label
                raise error


def _selected(tree: Tree) -> Iterator[Tree]:
    """Yield a node and the nodes below it that its value may be an element of."""
    yield tree
    if isinstance(tree, Selection) or (isinstance(tree, Reduction) and tree.op in EXACT):
        yield from _selected(tree.body)
    if isinstance(tree, Operation) and (tree.name == "where" or tree.name in EXACT):
        for arg in tree.args[tree.name == "where" :]:
            yield from _selected(arg)


def _alike(one: Tree, other: Tree) -> bool:
    """Return whether two nodes are the same expression at some indices."""
    if one is other:
        return True
    match one, other:
        case View(), View():
            return one.tensor == other.tensor
        case Operation(), Operation():
            return one.name == other.name and all(map(_alike, one.args, other.args))
        case Reduction(), Reduction():
            return one.label == other.label
        case Selection(), Selection():
            return one.label == other.label
        case _:
            return False


def _rounded_sum(tree: Tree, declared: Mapping[str, TensorType]) -> str:
    """Return the label of the last reduction in a tree whose result may depend on the order of its terms, empty if there is none."""
    exact = {name for name, tensor in declared.items() if DTYPES[tensor.dtype].is_integer}
    rounded = (n.label for n in reversed(nodes(tree)) if isinstance(n, Reduction) and n.op not in EXACT and n.label not in exact)
    return next(rounded, "")
