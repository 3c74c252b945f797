"""What is told of the steps of a program, and not of their first one alone, as plain values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from fuseflow.costs.live_bytes import lifetimes, live_bytes_by_region, written_bytes
from fuseflow.einsum.nodes import Program
from fuseflow.run.training.phase_costs import phase_costs, region_phases, stored_for_later

if TYPE_CHECKING:
    from fuseflow.lower.regions import CompiledRegion
    from fuseflow.run.training.training_run import TrainingRun

SCHEMA = 1
"""The schema of the values of `training_values`."""


def training_values(program: Program, regions: Sequence[CompiledRegion], run: TrainingRun) -> dict[str, Any]:
    """Return what is told of the steps of a program, and not of their first one alone, as plain values: losses, costs by phase, the bytes
    of intermediates that are alive in each region, and what is stored for the backward."""
    written = written_bytes(run.first.stats)
    steps = [(region.graph, region.views) for region in regions]
    alive = live_bytes_by_region(lifetimes(steps, program.outputs), written, len(steps))
    return {
        "schema": SCHEMA,
        **run.to_json()["training"],
        "phases": [asdict(cost) for cost in phase_costs(run.regions)],
        "live": [
            {"region": region.name, "phases": list(region_phases(region)), "bytes": int(number)}
            for region, number in zip(regions, alive, strict=True)
        ],
        "stored": [asdict(row) for row in stored_for_later(program, regions, written)],
    }
