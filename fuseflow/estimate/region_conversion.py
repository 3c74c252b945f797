"""Converts the regions of a compiled program to the regions that the estimator reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fuseflow.estimate.program import EstimatorRegion, StoredView
from fuseflow.lower.regions import CompiledRegion
from fuseflow.lower.reshape_views import TensorView


def estimator_regions(regions: Iterable[CompiledRegion]) -> Iterator[EstimatorRegion]:
    """Yield for each region its graph, and the tensors that it reads or leaves under another name and in other dimensions."""
    for region in regions:
        before, after = _stored_views(region.views_before), _stored_views(region.views_after)
        yield EstimatorRegion(region.name, region.einsums, region.graph, before, after)


def _stored_views(steps: Iterable[TensorView]) -> tuple[StoredView, ...]:
    return tuple(
        StoredView(step.name, step.source, step.type.format, step.type.stored_shape)
        for step in steps
        if step.type.format is not None
    )
