"""Chooses the cut of a program if the user does not say what is fused: the cut with the fewest expected cycles.

Nothing is simulated. Five cuts are compared by estimate: no fusion; the regions of `layerwise`; the regions of `full`, each only
if it is expected to be faster than its operators one by one; and regions that grow as long as that saves cycles, from ranges and
from single operators on.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from fuseflow.array.settings import ArraySettings
from fuseflow.cut.costs import PartCosts, RegionEstimates, prepare_costs
from fuseflow.cut.units import ProgramUnit, with_regions
from fuseflow.errors import FusionError, ScheduleError
from fuseflow.estimate.program import Estimator
from fuseflow.frontend.imported_program import Source
from fuseflow.garbage_collection import collection_rare
from fuseflow.lower.partition import PartitionedProgram, with_later_readers
from fuseflow.lower.primitive_choice import lower_for
from fuseflow.lower.regions import CompiledRegion
from fuseflow.lower.state import LoweringMemo
from fuseflow.machine.machine import Machine
from fuseflow.schedule import Schedule, form_regions
from fuseflow.schedule.region_size import RegionDivider


@dataclass(frozen=True, slots=True)
class Cut:
    """A way to cut a program into regions, with the cycles that it is expected to take: NaN if they are not known."""

    name: str
    schedule: Schedule
    cycles: float = math.nan


@collection_rare()
def lower_best(
    source: Source, schedule: Schedule, machine: Machine, array: ArraySettings | None = None
) -> tuple[Schedule, PartitionedProgram, Iterable[CompiledRegion]]:
    """Return the cut with the fewest expected cycles among the cuts that can be lowered, in the form of `cut_cache.lower_cut`. On an
    array, these are the cycles with loading, and cuts whose regions do not all fit come last.

    The first estimate of a cut is the sum over its regions, each lowered among operators that run one by one. Lowered together, a
    region may read tensors in other formats. So the whole cut is estimated again, and then cuts whose first estimate is less than
    that.
    """
    program, tensors, memo = source.program, source.tensors, LoweringMemo()
    stored = replace(schedule, recomputed=())  # a cut decides which regions are later ones
    costs = prepare_costs(source, stored, RegionEstimates(Estimator(assume_unknown=True, array=array), machine), memo)
    best, fewest = None, math.inf
    if costs is None:  # an operator cannot be lowered alone, or its cycles are not known
        cuts = [Cut(name, replace(schedule, fuse_regions=(name,))) for name in ("none", "layerwise", "full")]
    else:
        cuts = sorted(expected_cuts(costs), key=lambda cut: cut.cycles)
    for cut in cuts:
        if best is not None and not cut.cycles < fewest:
            break
        try:
            own = with_later_readers(program, replace(cut.schedule, recomputed=schedule.recomputed))
            cut = replace(cut, schedule=own)
            partitioned, lowered = lower_for(program, cut.schedule, machine, tensors, memo)
            regions = tuple(lowered)
        except (FusionError, ScheduleError):
            continue
        cycles = math.nan if costs is None else costs.estimated_whole(partitioned, tensors, regions)
        if best is None or cycles < fewest:
            best, fewest = (cut.schedule, partitioned, regions), cycles
    alone = with_later_readers(program, replace(schedule, fuse_regions=("none",)))
    return best or (alone, *lower_for(program, alone, machine, tensors))


def expected_cuts(costs: PartCosts) -> Iterator[Cut]:
    """Yield the cuts that are compared, the simplest first. `layerwise` and `full` are left out if the schedule names regions."""
    yield Cut("none", costs.schedule, sum(costs.alone.values()))
    if costs.schedule.fuse_regions == ("none",):
        for granularity in ("layerwise", "full"):
            yield _granularity_cut(costs, granularity, replace(costs.schedule, fuse_regions=(granularity,)))
    for name, cycles, units, partition in costs.grown():
        yield Cut(name, units.scheduled(costs.schedule, partition), cycles)


def _granularity_cut(costs: PartCosts, granularity: str, schedule: Schedule) -> Cut:
    """Return the cut of a granularity (`layerwise` or `full`). A region that is expected to take longer than its operators one by
    one is cut between them, and one that cannot be lowered, or is too large to be estimated, is divided in the middle."""
    partitioned, divider, home = costs.partitioned, RegionDivider(costs.partitioned.original), costs.units.home
    waiting = [region.einsums for region in form_regions(partitioned.original, schedule, partitioned.kept)][::-1]
    regions, cycles, whole = dict[str, tuple[str, ...]](), 0.0, True
    while waiting:
        einsums = waiting.pop()
        together, apart = costs.of_region(einsums), costs.apart(einsums)
        if len({home[e].first for e in einsums}) == 1:  # they belong to one operator
            cycles += apart
        elif together <= apart:
            cycles += together
            regions[f"{home[einsums[0]].first}-{home[einsums[-1]].last}"] = einsums
        else:
            whole = False
            waiting += reversed(_halves(divider, home, einsums)) if together == math.inf else ()
            cycles += 0.0 if together == math.inf else apart
    return (
        Cut(granularity, schedule, cycles)
        if whole
        else Cut(f"{granularity}, divided", with_regions(costs.schedule, regions), cycles)
    )


def _halves(
    divider: RegionDivider, home: Mapping[str, ProgramUnit], einsums: tuple[str, ...]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the Einsums of a region of several operators in two parts, divided between operators only: a softmax stays whole.
    `home` has the operator of each Einsum."""
    first, _ = divider.halves(einsums)
    begun, border = {home[e].first for e in first}, home[first[-1]].first
    behind = [e for e in einsums if home[e].first not in begun] or [e for e in einsums if home[e].first == border]
    return tuple(e for e in einsums if e not in behind), tuple(behind)
