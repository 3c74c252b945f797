"""Algorithm 1: the Einsums of a region become one tree for each result, with the partial order of its loops."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from itertools import islice, pairwise

import networkx as nx

from fuseflow.einsum.nodes import Program, TensorType
from fuseflow.einsum.verify import extents
from fuseflow.errors import FusionError, did_you_mean
from fuseflow.fusion.inline import Inliner
from fuseflow.fusion.merge import Fused, merge_views
from fuseflow.fusion.order_graph import constraints, refuse_cycle, refuse_order
from fuseflow.fusion.orders import Order, best, candidates, enumerate_orders
from fuseflow.fusion.region import FusedRegion, Result
from fuseflow.fusion.tree import fills, views

Cost = Callable[[FusedRegion], float]
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
) -> FusedRegion:
    """Fuse the Einsums called `einsums` into one region that writes `results`.

    `program` declares every tensor (`einsum.formats.infer`). `stored` declares what is in memory: program inputs and results of
    earlier regions, with the formats they really have. The loops of a `pinned` result follow its declared mode order; the others
    are stored in loop order. `chain` is an order of some or all of the region's indices that the user asked for: names of the
    region, or of its only Einsum.
    Raises `FusionError` if no order is left, naming the edges of the cycle.
    """
    chosen = {e.name: e for e in program.einsums if e.name in einsums}
    inliner = Inliner(chosen, extents(program))
    try:
        found = inliner.results(results)
    except RecursionError:
        message = f"region `{name}` chains more Einsums than can be inlined into each other ({len(chosen)} in all)"
        raise FusionError(message, hint="fuse fewer Einsums") from None
    fused = Fused(tuple((n, i, t) for n, (i, t) in found.items()), tuple(inliner.views))
    declared = program.declared

    def constrain(candidate: Fused) -> nx.DiGraph[str]:
        chains = [
            (f"`{name}` is to be stored {format.short()}", tuple(indices[d] for d in format.order))
            for name, indices, _ in candidate.results
            if name in pinned and (format := declared[name].format) is not None
        ]
        return constraints(candidate.indices(), views(*candidate.trees), stored, candidate.merged, chains)

    if merge and nx.is_directed_acyclic_graph(constrain(fused)):
        fused = merge_views(fused, inliner.trees, inliner.sizes, constrain)
    graph = constrain(fused)
    refuse_cycle(graph, name)
    now = dict(fused.renamed)
    local = {e: {v: now.get(w, w) for v, w in table.items()} for e, table in inliner.local.items()}
    used = fused.indices()
    region = FusedRegion(
        name=name,
        einsums=tuple(chosen),
        results=tuple(Result(declared[n], i, t) for n, i, t in fused.results),
        sizes={v: inliner.sizes[v] for v in used},
        stored={v.tensor: stored[v.tensor] for v in views(*fused.trees)},
        fill=fills(fused.trees, {n: t.fill for n, t in stored.items()}, inliner.sizes),
        merged=fused.merged,
        constraints=graph,
        local=local,
    )
    return with_chain(region, chain) if chain else region


def with_chain(region: FusedRegion, chain: tuple[str, ...]) -> FusedRegion:
    """The region with the order of some of its indices (or all) fixed by the user."""
    names = region_names(region, chain)
    if set(names) == set(region.sizes):
        legal = islice(enumerate_orders(region.constraints, region.indices), SHOWN_ORDERS)
        refuse_order(region.constraints, names, region.name, legal)
    graph = region.constraints.copy()
    for above, below in pairwise(names):
        graph.add_edge(above, below, why=f"the schedule orders {','.join(chain)}")
    refuse_cycle(graph, region.name)
    return replace(region, constraints=graph)


def region_names(region: FusedRegion, chain: tuple[str, ...]) -> tuple[str, ...]:
    """The user's index names as the region's own: they may be those of its only Einsum."""
    local = region.local.get(region.einsums[0], {}) if len(region.einsums) == 1 else {}
    names = tuple(local.get(v, v) for v in chain)
    for given, v in zip(chain, names, strict=True):
        if v not in region.sizes:
            raise FusionError(
                f"order {','.join(chain)}: region `{region.name}` has no index `{given}`",
                hint=did_you_mean(given, region.sizes),
            )
    if len(set(names)) < len(names):
        raise FusionError(f"order {','.join(chain)} of region `{region.name}` names an index twice")
    return names


def choose_order(region: FusedRegion, cost: Cost) -> FusedRegion:
    """The region in its best-ranked legal order."""
    orders: tuple[Order, ...] = candidates(region.constraints, region.indices)
    return replace(region, order=best(orders, lambda o: cost(replace(region, order=o)), region.name))
