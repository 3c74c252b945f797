"""Permuted copies, each made by a region that does only that; and their costs."""

from __future__ import annotations

import math
from dataclasses import replace

from fuseflow.costs import Estimate
from fuseflow.einsum.index_names import underscored_name
from fuseflow.einsum.nodes import Access, Einsum, Program, TensorType
from fuseflow.errors import FusionError
from fuseflow.fusion import Copy, FusedRegion, choose_order, fuse
from fuseflow.fusion.copies import requires_copy, stored_copy_name
from fuseflow.fusion.order_search import CostBound
from fuseflow.lower.graphs import region_graph
from fuseflow.lower.order_costs import OrderCosts
from fuseflow.lower.state import LoweringState
from fuseflow.tensors import Format


def copy_region(state: LoweringState, copy: Copy, fused: FusedRegion) -> FusedRegion:
    """Return the region that makes a copy for a fused region."""
    return permuting_region(state, state.stored[copy.source], replace(fused.declared[copy.name], name=copy.name))


def permuting_region(state: LoweringState, source: TensorType, target: TensorType) -> FusedRegion:
    """Return the region that stores `source` again in the format of `target`: it reads in stored order, and permutes what it writes."""
    indices = tuple(f"i{d}" for d in range(len(source.shape)))
    program = Program((source, target), (Einsum(target.name, indices, Access(source.name, indices)),), (target.name,))
    only_result = lambda name: 0.0 if name == target.name else math.inf  # noqa: E731
    names = (target.name,)
    region = fuse(program, target.name, names, names, state.stored, pinned=names, price=only_result)
    return choose_order(region, OrderCosts(state).cost)


def dense_copy(state: LoweringState, source: TensorType, order: tuple[int, ...]) -> TensorType:
    """Return the declaration of a dense copy of `source` with its dimensions stored in this order."""
    name = underscored_name("_".join([f"{source.name}.dense", *map(str, order)]), state.declared)
    return replace(source, name=name, format=Format.of(*["dense"] * len(order), order=order))


def cost_with_copies(costs: OrderCosts, fused: FusedRegion, limit: float = math.inf) -> Estimate | CostBound:
    """Return the cost of a region in its order with the copies that it needs, or a bound or an error, as a `RegionCost` does."""
    cost = costs.cost(fused, limit)
    if isinstance(cost, CostBound):
        return cost  # copies cost something, too
    for copy in fused.copies:
        cost += _copy_cost(costs.state, copy, fused)
    return cost


def public_cost(costs: OrderCosts, fused: FusedRegion, limit: float = math.inf) -> Estimate | CostBound:
    """Return the cost of the public form of a region. Raises `FusionError` if it has none, or needs copies, which have none."""
    state = costs.state
    private = region_graph(state, fused).form.private
    if private:
        raise FusionError(f"order {','.join(fused.order)} of region `{fused.name}` has no public form: {private[0]}")
    for copy in fused.copies:
        if requires_copy(copy, state.stored[copy.source], fused.order):
            raise FusionError(f"order {','.join(fused.order)} of region `{fused.name}` needs a copy of `{copy.source}`")
    return cost_with_copies(costs, fused, limit)


def _copy_cost(state: LoweringState, copy: Copy, fused: FusedRegion) -> Estimate:
    """Return the cost of a copy, which is 0 if the copy is not needed, or is made by an earlier region."""
    order, costs = copy.order(fused.order), state.memo.copies
    is_stored = stored_copy_name(copy, fused.order, state.declared) in state.stored
    if is_stored or not requires_copy(copy, state.stored[copy.source], fused.order):
        return Estimate(0, 0, 0, 0)
    if (copy.source, order) not in costs:
        costs[copy.source, order] = region_graph(state, copy_region(state, copy, fused)).cost
    return costs[copy.source, order]
