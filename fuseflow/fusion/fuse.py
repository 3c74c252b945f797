"""Algorithm 1: the Einsums of a region become one tree for each result, with the partial order of its loops."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from itertools import islice

import networkx as nx

from fuseflow.einsum.nodes import Program, TensorType
from fuseflow.einsum.verify import extents
from fuseflow.errors import FusionError, did_you_mean
from fuseflow.fusion.copies import Price, break_cycles
from fuseflow.fusion.inline import Inliner
from fuseflow.fusion.iteration import one_space
from fuseflow.fusion.merge import Fused, merge_views
from fuseflow.fusion.order_graph import constraints, refuse_cycle, refuse_order
from fuseflow.fusion.orders import Ranked, best, compare, enumerate_orders
from fuseflow.fusion.region import FusedRegion, Result
from fuseflow.fusion.tree import Tree, fills, views

Cost = Callable[[FusedRegion], Ranked]
"""What an ordered region costs. May refuse the order with a `FusionError`."""

SHOWN_ORDERS = 6


def fuse(
    program: Program,
    name: str,
    einsums: Sequence[str],
    results: Sequence[str],
    stored: Mapping[str, TensorType],
    *,
    chain: tuple[str, ...] = (),
    pinned: Collection[str] = (),
    merge: bool = True,
    iteration: str = "factored",
    price: Price | None = None,
) -> FusedRegion:
    """Fuse the Einsums called `einsums` into one region that writes `results`.

    `program` declares every tensor (`einsum.formats.infer`). `stored` declares what is in memory: program inputs and results of
    earlier regions, with the formats they really have. The loops of a `pinned` result follow its declared mode order; the others
    are stored in loop order. `chain` is an order of some or all of the region's indices that the user asked for: names of the
    region, or of its only Einsum. `iteration`: `factored`, or `global` for one iteration space (`fusion.iteration`).
    `price` gives the expected stored values of a tensor; with it, permuted copies break a cycle of the constraints.
    Raises `FusionError` if no order is left, naming the edges of the cycle.
    """
    chosen = {e.name: e for e in program.einsums if e.name in einsums}
    inliner = Inliner(chosen, extents(program))
    try:
        found = inliner.results(results)
    except RecursionError:
        message = f"region `{name}` chains more Einsums than can be inlined into each other ({len(chosen)} in all)"
        raise FusionError(message, hint="fuse fewer Einsums") from None
    trees, declared = inliner.trees, program.declared
    if iteration == "global":
        memo: dict[Tree, Tree] = {}
        found = {n: (i, one_space(t, trees, memo)) for n, (i, t) in found.items()}
    fused = Fused(tuple((n, i, t) for n, (i, t) in found.items()), tuple(inliner.views))

    taken = {*declared, *stored}

    def constrain(candidate: Fused, order: tuple[str, ...] = ()) -> nx.DiGraph[str]:
        kept = [
            (result, tuple(indices[d] for d in format.order), format.short())
            for result, indices, _ in candidate.results
            if result in pinned and result not in candidate.permuted and (format := declared[result].format) is not None
        ]
        known = {**stored, **{c.name: copied(stored[c.source], c.name) for c in candidate.copies}}
        asked = [(f"the schedule orders {','.join(chain)}", order)]
        return constraints(candidate.indices(), views(*candidate.trees), known, candidate.merged, kept, asked)

    def broken(candidate: Fused, order: tuple[str, ...] = ()) -> Fused:
        ask = lambda trial: constrain(trial, order)  # noqa: E731
        return candidate if price is None else break_cycles(candidate, trees, ask, price, taken, name)

    fused = broken(fused)
    if merge and nx.is_directed_acyclic_graph(constrain(fused)):
        fused = merge_views(fused, trees, inliner.sizes, constrain)
    graph = constrain(fused)
    refuse_cycle(graph, name)
    local = local_names(fused, inliner)
    if chain:
        order = region_names(chain, name, tuple(chosen), local, fused.indices())
        if price is None and set(order) == set(fused.indices()):
            legal = islice(enumerate_orders(graph, fused.indices()), SHOWN_ORDERS)
            refuse_order(graph, order, name, legal)
        fused = broken(fused, order)
        graph = constrain(fused, order)
        refuse_cycle(graph, name)
    return FusedRegion(
        name=name,
        einsums=tuple(chosen),
        results=tuple(
            Result(declared[n], i, t, _levels(declared[n], i) if n in fused.permuted else ()) for n, i, t in fused.results
        ),
        sizes={v: inliner.sizes[v] for v in fused.indices()},
        stored=(known := _stored(fused, stored)),
        fill=fills(fused.trees, {n: t.fill for n, t in known.items()}, inliner.sizes),
        merged=fused.merged,
        constraints=graph,
        local=local,
        copies=fused.copies,
    )


def copied(source: TensorType, name: str) -> TensorType:
    """The declaration of a copy whose order is not known yet."""
    return replace(source, name=name, format=None)


def _stored(fused: Fused, stored: Mapping[str, TensorType]) -> dict[str, TensorType]:
    """What the trees read."""
    known = {**stored, **{c.name: copied(stored[c.source], c.name) for c in fused.copies}}
    return {view.tensor: known[view.tensor] for view in views(*fused.trees)}


def _levels(tensor: TensorType, indices: tuple[str, ...]) -> tuple[str, ...]:
    """The indices of a result in the order of its declared levels."""
    return () if tensor.format is None else tuple(indices[d] for d in tensor.format.order)


def local_names(fused: Fused, inliner: Inliner) -> dict[str, dict[str, str]]:
    """For every Einsum, what its indices are called in the region."""
    now = dict(fused.renamed)
    return {e: {v: now.get(w, w) for v, w in table.items()} for e, table in inliner.local.items()}


def region_names(
    chain: tuple[str, ...],
    region: str,
    einsums: tuple[str, ...],
    local: Mapping[str, Mapping[str, str]],
    indices: tuple[str, ...],
) -> tuple[str, ...]:
    """The user's index names as the region's own: they may be those of its only Einsum, unless it reduces a name twice."""
    table = local.get(einsums[0], {}) if len(einsums) == 1 else {}
    names = tuple(table.get(v, v) for v in chain)
    if len(set(names)) < len(names) and set(chain) <= set(indices):
        names = chain
    for given, v in zip(chain, names, strict=True):
        if v not in indices:
            raise FusionError(
                f"order {','.join(chain)}: region `{region}` has no index `{given}`", hint=did_you_mean(given, indices)
            )
    if len(set(names)) < len(names):
        raise FusionError(f"order {','.join(chain)} of region `{region}` names an index twice")
    return names


def choose_order(region: FusedRegion, cost: Cost) -> FusedRegion:
    """The region in its best-ranked legal order, with the orders that it was compared with."""
    compared = compare(region.constraints, region.indices, lambda order: cost(replace(region, order=order)), region.name)
    return replace(region, order=best(compared), compared=compared)
