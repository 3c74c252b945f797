"""The regions of a compiled program as the estimate reads them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fuseflow.estimate.program import EstimatorRegion, StoredView
from fuseflow.lower.regions import CompiledRegion


def estimator_regions(regions: Iterable[CompiledRegion]) -> Iterator[EstimatorRegion]:
    """Yield the graph of every region with the views that it reads, which are tensors that the memory holds in other dimensions."""
    for region in regions:
        views = tuple(
            StoredView(step.name, step.source, step.type.format, step.type.stored_shape)
            for step in region.views_before
            if step.type.format is not None
        )
        yield EstimatorRegion(region.name, region.einsums, region.graph, views)
