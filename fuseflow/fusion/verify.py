"""Checks that a fused region obeys its rules."""

from __future__ import annotations

from fuseflow.errors import FusionError
from fuseflow.fusion.region import FusedRegion
from fuseflow.fusion.tree import Reduction, Selection, View, free_indices, nodes


def verify(region: FusedRegion) -> None:
    """Raise `FusionError` unless the region is consistent: views match their tensors, reductions and results match their indices, the
    constraints are over the loops of the region, and the order (if one is chosen) is a linear extension of them.
    """
    free = free_indices(*region.trees)
    for node in nodes(*region.trees):
        if isinstance(node, View):
            _check_view(region, node)
        elif isinstance(node, Reduction):
            _require(region, not set(node.over) & set(node.free), f"{node} reduces an index that it keeps")
            _require(region, set(free[node.body]) <= {*node.over, *node.free}, f"{node} has an index from nowhere")
        elif isinstance(node, Selection):
            _require(region, set(node.over) <= set(node.free), f"{node} compares along an index that it lacks")
            _require(region, set(free[node.body]) <= set(node.free), f"{node} has an index from nowhere")
        _require(region, node in region.fill, f"a node of {[r.name for r in region.results]} has no implicit value")
    for result in region.results:
        _require(region, set(free[result.tree]) <= set(result.indices), f"result {result.name} has an index from nowhere")
        shape = tuple(region.sizes[v] for v in result.indices)
        _require(region, shape == result.tensor.shape, f"result {result.name} is {result.tensor.shape}, its indices give {shape}")
    mismatched = sorted(set(region.constraints) ^ set(region.sizes))
    _require(region, not mismatched, f"the constraints and the loops differ in {', '.join(mismatched)}")
    if region.order:
        _require(
            region, sorted(region.order) == sorted(region.sizes), f"order {region.order} is not one of {tuple(region.sizes)}"
        )
        position = {v: p for p, v in enumerate(region.order)}
        edges: list[tuple[str, str, str]] = list(region.constraints.edges(data="why"))
        for u, v, why in edges:
            _require(region, position[u] < position[v], f"order {','.join(region.order)} puts {v} before {u}, but {why}")


def _check_view(region: FusedRegion, view: View) -> None:
    tensor = region.declared.get(view.tensor)
    if tensor is None:
        raise FusionError(f"region `{region.name}`: {view} reads a tensor that is not stored")
    shape = tuple(region.sizes[v] for v in view.indices)
    _require(region, shape == tensor.shape, f"{view} reads {tensor.shape} with indices of sizes {shape}")
    _require(region, tensor.format is not None or not region.order, f"{view} has no format")


def _require(region: FusedRegion, holds: bool, message: str) -> None:
    if not holds:
        raise FusionError(f"region `{region.name}`: {message}")
