"""Converts the regions of a compiled program to the regions that the estimator reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fuseflow.estimate.program import EstimatorRegion, StoredView, TileGraph
from fuseflow.lower.regions import CompiledRegion
from fuseflow.lower.reshape_views import TensorView


def estimator_regions(regions: Iterable[CompiledRegion]) -> Iterator[EstimatorRegion]:
    """Yield for each region its graph, and the tensors that it reads or leaves under another name and in other dimensions."""
    for region in regions:
        before, after = _stored_views(region.views_before), _stored_views(region.views_after)
        yield EstimatorRegion(region.name, region.einsums, region.graph, before, after, _tiled(region))


def _tiled(region: CompiledRegion) -> TileGraph | None:
    """Return a tile in the middle of a region, None if it runs as a whole."""
    if not region.tiles:
        return None
    tile = region.tiles[len(region.tiles) // 2]
    if tile.size < region.tiles[0].size:
        tile = region.tiles[0]
    parts = {name: part.source for name, part in tile.region.tensors.items()}
    parts |= {name: parts[own] for name, own in tile.ahead.items()}
    parts |= dict(tile.behind)
    runs = sum(each.size for each in region.tiles) / tile.size
    return TileGraph(tile.graph, runs, parts, region.graph.declared)


def _stored_views(steps: Iterable[TensorView]) -> tuple[StoredView, ...]:
    return tuple(
        StoredView(step.name, step.source, step.type.format, step.type.stored_shape)
        for step in steps
        if step.type.format is not None
    )
