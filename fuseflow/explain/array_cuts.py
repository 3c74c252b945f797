"""The cuts of a program on an array: what the region before each cut would take with the operator behind it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from fuseflow.array.capacity import TileUse, tile_use
from fuseflow.array.settings import ArraySettings
from fuseflow.cut.costs import PartCosts, RegionEstimates, prepare_costs
from fuseflow.errors import FusionError, ScheduleError
from fuseflow.estimate.program import Estimator
from fuseflow.lower.regions import dealt_region, lower_region
from fuseflow.run.compiled import Compiled
from fuseflow.schedule import Schedule


@dataclass(frozen=True, slots=True)
class ArrayCut:
    """A cut between a region and the next one, which begins with an `operator`. `use` has the tiles of the region and that operator as one
    region, in the lanes of the region; None if they cannot be one, and `refusal` says why."""

    region: str
    operator: str
    use: TileUse | None
    refusal: str = ""


def explain_cuts(compiled: Compiled, array: ArraySettings) -> tuple[ArrayCut, ...]:
    """Return the cuts of a program, in order. A program with an operator that cannot be lowered alone has none that are known."""
    lanes = replace(Schedule(), parallel=compiled.schedule.parallel, writers=compiled.schedule.writers)
    alone = replace(
        compiled.schedule, fuse_regions=("none",), regions=(), orders=(), parallel=(), splits=(), depths=(), recomputed=()
    )
    estimates = RegionEstimates(Estimator(assume_unknown=True), compiled.machine)
    costs = prepare_costs(compiled.source, alone, estimates)
    return () if costs is None else tuple(_cuts(compiled, array, costs, lanes))


def _cuts(compiled: Compiled, array: ArraySettings, costs: PartCosts, lanes: Schedule) -> Iterator[ArrayCut]:
    home = costs.units.home  # without Einsums that a region computes again
    regions = [(region.name, own) for region in compiled.regions if (own := tuple(e for e in region.einsums if e in home))]
    for (name, einsums), (_, behind) in pairwise(regions):
        operator = home[behind[0]]
        if lone := next((unit.first for unit in (home[einsums[0]], operator) if unit.alone), ""):
            yield ArrayCut(name, operator.first, None, f"`{lone}` is a region by itself")
            continue
        request = costs.ranges.region(name, (*einsums, *operator.einsums))
        before = costs.before(request)
        try:
            *_, region = lower_region(before, request)[0]
            use = tile_use(dealt_region(before, region, lanes).graph, array, compiled.machine)
        except (FusionError, ScheduleError) as error:
            yield ArrayCut(name, operator.first, None, error.message)
        else:
            yield ArrayCut(name, operator.first, use)
