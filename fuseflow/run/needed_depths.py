"""Chooses the depths of FIFOs for `depth: auto`, from the estimate of every region."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from fuseflow.einsum.nodes import Program
from fuseflow.estimate.program import Estimator
from fuseflow.estimate.region_conversion import estimator_regions
from fuseflow.lower.regions import CompiledRegion
from fuseflow.machine.machine import Machine
from fuseflow.tensors import Tensor


def with_needed_depths(
    regions: Iterable[CompiledRegion], program: Program, tensors: Mapping[str, Tensor], machine: Machine
) -> list[CompiledRegion]:
    """Return the regions with FIFOs as deep as they need to be on a machine. A depth that the schedule states stays as it is."""
    regions = list(regions)
    estimator = Estimator(assume_unknown=True)
    knowledge = estimator.knowledge(program, tensors)
    deepened = []
    for region, known in zip(regions, estimator_regions(regions), strict=True):
        needed = estimator.depths(known, machine, knowledge)
        stated = dict(region.graph.depths)
        missing = {edge: depth for edge, depth in needed.items() if edge not in stated}
        deepened.append(replace(region, graph=region.graph.with_depths(missing)) if missing else region)
    return deepened
