"""Chooses the cut of a program if the user does not say what is fused: the cut with the fewest expected cycles.

Nothing is simulated. Four cuts are compared by estimate: no fusion; the regions of `layerwise`; the regions of `full`, each only
if it is expected to be faster than its operators one by one; and regions that grow as long as that saves cycles.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from fuseflow.cut.costs import PartCosts, is_part, names_in_sections, prepare_costs, section_regions
from fuseflow.cut.greedy import greedy_partition
from fuseflow.cut.kept_cut import cut_digest, cut_store, keep_cut, recall_cut
from fuseflow.cut.units import ProgramUnit, with_regions
from fuseflow.einsum.nodes import Program
from fuseflow.errors import FusionError, ScheduleError
from fuseflow.estimate.program import Estimator
from fuseflow.lower.partition import PartitionedProgram, with_associations
from fuseflow.lower.public import lower_for
from fuseflow.lower.regions import CompiledRegion
from fuseflow.lower.state import LoweringMemo
from fuseflow.machine.machine import Machine
from fuseflow.schedule import Schedule, form_regions
from fuseflow.schedule.region_size import RegionDivider
from fuseflow.schedule.regions import grown_regions, has_regions
from fuseflow.tensors import Tensor


@dataclass(frozen=True, slots=True)
class Cut:
    """A way to cut a program into regions, with the cycles that it is expected to take: NaN if they are not known."""

    name: str
    schedule: Schedule
    cycles: float = math.nan


def lower_cut(
    program: Program, schedule: Schedule, machine: Machine, tensors: Mapping[str, Tensor]
) -> tuple[Schedule, PartitionedProgram, Iterable[CompiledRegion]]:
    """Return the schedule, the program in its regions, and these regions, lowered one by one as `lower_for` does. If the schedule
    leaves the regions to the compiler (`fuse: best`), the cut with the fewest expected cycles is taken, and the returned schedule
    names its regions. The regions of `layerwise` are taken instead if the program states its regions itself, or if the schedule
    has splits, stand-ins for intermediates, or names of regions of `layerwise`.

    A cut that cannot be lowered is skipped. If none can be lowered, the error of lowering the operators one by one is raised.
    """
    if schedule.leaves_cut and _has_regions_of_layers(program, schedule):
        schedule = replace(schedule, fuse_regions=("layerwise",))
    if not schedule.leaves_cut:
        return schedule, *lower_for(program, schedule, machine, tensors)
    whole = with_associations(program, schedule)
    if len(whole.einsums) == 1:  # there is nothing to cut
        alone = replace(schedule, fuse_regions=section_regions(whole, schedule) or ("none",))
        return alone, *lower_for(program, alone, machine, tensors)
    store = cut_store()
    digest = "" if store is None else cut_digest(program, schedule, machine, tensors)
    known = None if store is None else recall_cut(store, digest, schedule)
    if known is not None:
        return known, *lower_for(program, known, machine, tensors)
    lowered = _lower_best(program, schedule, machine, tensors)
    if store is not None:
        keep_cut(store, digest, lowered[0])
    return lowered


def _lower_best(
    program: Program, schedule: Schedule, machine: Machine, tensors: Mapping[str, Tensor]
) -> tuple[Schedule, PartitionedProgram, Iterable[CompiledRegion]]:
    """Return the cut with the fewest expected cycles among the cuts that can be lowered, in the form of `lower_cut`.

    The first estimate of a cut is the sum over its regions, each lowered among operators that run one by one. Lowered together, a
    region may read tensors in other formats. So the whole cut is estimated again, and then cuts whose first estimate is less than
    that.
    """
    memo = LoweringMemo()
    costs = prepare_costs(program, schedule, machine, tensors, Estimator(assume_unknown=True), memo)
    best, fewest = None, math.inf
    for cut in simple_cuts(schedule) if costs is None else sorted(expected_cuts(costs), key=lambda cut: cut.cycles):
        if best is not None and not cut.cycles < fewest:
            break
        try:
            partitioned, lowered = lower_for(program, cut.schedule, machine, tensors, memo)
            regions = tuple(lowered)
        except (FusionError, ScheduleError):
            continue
        cycles = math.nan if costs is None else costs.estimated_whole(partitioned, tensors, regions)
        if best is None or cycles < fewest:
            best, fewest = (cut.schedule, partitioned, regions), cycles
    alone = replace(schedule, fuse_regions=("none",))
    return best or (alone, *lower_for(program, alone, machine, tensors))


def _has_regions_of_layers(program: Program, schedule: Schedule) -> bool:
    """Return whether a program states its regions, or its schedule is written for the regions of `layerwise`."""
    if has_regions(program) or schedule.splits or schedule.intermediates == "dense":
        return True
    program = with_associations(program, schedule)
    unknown = [name for name in names_in_sections(schedule) if not is_part(program, schedule, name)]
    return bool(unknown) and {region.name for region in grown_regions(program, (), layerwise=True)}.issuperset(unknown)


def simple_cuts(schedule: Schedule) -> Iterator[Cut]:
    """Yield the cuts to try, in order, if no cycles can be expected: an operator cannot be lowered alone, or its cycles are not
    known."""
    for name in ("none", "layerwise", "full"):
        yield Cut(name, replace(schedule, fuse_regions=(name,)))


def expected_cuts(costs: PartCosts) -> Iterator[Cut]:
    """Yield the cuts that are compared, the simplest first. `layerwise` and `full` are left out if the schedule names regions."""
    yield Cut("none", costs.schedule, sum(costs.alone.values()))
    if costs.schedule.fuse_regions == ("none",):
        for granularity in ("layerwise", "full"):
            yield _granularity_cut(costs, granularity, replace(costs.schedule, fuse_regions=(granularity,)))
    cycles, partition = greedy_partition(len(costs.units), costs)
    yield Cut("greedy", costs.scheduled(partition), cycles)


def _granularity_cut(costs: PartCosts, granularity: str, schedule: Schedule) -> Cut:
    """Return the cut of a granularity (`layerwise` or `full`). A region that is expected to take longer than its operators one by
    one is cut between them, and one that cannot be lowered, or is too large to be estimated, is divided in the middle."""
    partitioned, divider = costs.partitioned, _OperatorDivider(RegionDivider(costs.partitioned.original), costs.units.home)
    waiting = [region.einsums for region in form_regions(partitioned.original, schedule, partitioned.kept)][::-1]
    regions, cycles, whole = dict[str, tuple[str, ...]](), 0.0, True
    while waiting:
        einsums = waiting.pop()
        together, apart = costs.of_region(einsums), costs.apart(einsums)
        if not divider.is_divisible(einsums):
            cycles += apart
        elif together <= apart:
            cycles += together
            regions[divider.name(einsums)] = einsums
        else:
            whole = False
            waiting += reversed(divider.halves(einsums)) if together == math.inf else ()
            cycles += 0.0 if together == math.inf else apart
    return (
        Cut(granularity, schedule, cycles)
        if whole
        else Cut(f"{granularity}, divided", with_regions(costs.schedule, regions), cycles)
    )


@dataclass(frozen=True, slots=True)
class _OperatorDivider:
    """Divides regions between operators only: a softmax stays whole. `home` has the operator of each Einsum."""

    divider: RegionDivider
    home: Mapping[str, ProgramUnit]

    def name(self, einsums: tuple[str, ...]) -> str:
        """Return the name of a region, which is made of its first and its last operator."""
        return f"{self.home[einsums[0]].first}-{self.home[einsums[-1]].last}"

    def is_divisible(self, einsums: tuple[str, ...]) -> bool:
        """Return whether these Einsums belong to more than one operator."""
        return len({self.home[e].first for e in einsums}) > 1

    def halves(self, einsums: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the Einsums of a region of several operators in two parts."""
        first, _ = self.divider.halves(einsums)
        begun, border = {self.home[e].first for e in first}, self.home[first[-1]].first
        behind = [e for e in einsums if self.home[e].first not in begun]
        behind = behind or [e for e in einsums if self.home[e].first == border]
        return tuple(e for e in einsums if e not in behind), tuple(behind)
