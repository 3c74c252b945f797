"""The cycles that each range of operators of a program is expected to take as one region on a machine."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from fuseflow.cut.merges import merged_units, unit_links, unit_readers
from fuseflow.cut.units import (
    UnitGroup,
    UnitPartition,
    UnitRange,
    UnitSequence,
    greedy_partition,
    operator_units,
    partition_at,
    product_units,
)
from fuseflow.errors import FusionError, MachineError, ScheduleError
from fuseflow.estimate.program import Estimator, SharedEstimates, TensorKnowledge
from fuseflow.estimate.region_conversion import estimator_regions
from fuseflow.frontend.imported_program import Source
from fuseflow.fusion.refusal import Refusal, attempt
from fuseflow.lower.partition import PartitionedProgram, with_associations
from fuseflow.lower.primitive_choice import lower_for
from fuseflow.lower.program import region_requests
from fuseflow.lower.region_fusion import fusion_key
from fuseflow.lower.regions import CompiledRegion, lower_region
from fuseflow.lower.state import LoweringMemo, LoweringState, RegionRequest, initial_state
from fuseflow.machine.machine import Machine
from fuseflow.schedule import Region, Schedule
from fuseflow.schedule.section_names import section_regions
from fuseflow.tensors import Tensor

LARGEST_REGION = 32
"""The most Einsums of a region that is estimated to find partitions. A larger one takes seconds."""


@dataclass  # without slots: cached properties are stored in the instance
class ProgramRanges:
    """The ranges of `units` of a program that is partitioned into single operators.

    With `borders`, which are cuts between units, a range of several units is what lies between two of them, or a part of what lies between
    two neighbours that begins or ends at one.
    """

    partitioned: PartitionedProgram
    units: UnitSequence
    borders: frozenset[int] = frozenset()

    @cached_property
    def readers(self) -> Mapping[str, frozenset[str]]:
        """The Einsums that read each Einsum. An output of the program has the reader `""`, which is in no region."""
        program = self.partitioned.program
        readers: dict[str, set[str]] = {e.name: {""} if e.name in program.outputs else set() for e in program.einsums}
        for einsum in program.einsums:
            for name in einsum.operands:
                readers.get(name, set()).add(einsum.name)
        return {name: frozenset(by) for name, by in readers.items()}

    @cached_property
    def _home(self) -> Mapping[str, Region]:
        """The region of each Einsum of the program in single operators."""
        return {e: region for region in self.partitioned.regions for e in region.einsums}

    def request(self, part: UnitRange) -> RegionRequest:
        """Return the request to lower a range as one region."""
        return self.region(self.units.name(part), self.units.einsums(part))

    def region(self, name: str, einsums: Iterable[str]) -> RegionRequest:
        """Return the request to lower these Einsums as one region. It writes the results that Einsums outside of it read."""
        members = self._computed_in(self._members(einsums))
        results = (e for e in members if not self.readers[e] <= set(members))
        return RegionRequest(name, members, tuple(results))

    def members(self, part: UnitRange) -> list[str]:
        """Return the Einsums of a range as they are lowered, in program order."""
        return self._members(self.units.einsums(part))

    def _members(self, einsums: Iterable[str]) -> list[str]:
        position = self.partitioned.program.positions
        return sorted(self.partitioned.reshapes.members(tuple(einsums)), key=position.__getitem__)

    def is_region(self, part: UnitRange) -> bool:
        """Return whether a range may be one region and is small enough to be estimated."""
        if part[1] - part[0] == 1:
            return True
        return self._is_at_borders(part) and self.units.legal(part) and len(self.members(part)) <= LARGEST_REGION

    def _is_at_borders(self, part: UnitRange) -> bool:
        at = [end in self.borders for end in part]
        return not self.borders or all(at) or (any(at) and self.borders.isdisjoint(range(part[0] + 1, part[1])))

    def apart(self) -> ProgramRanges:
        """Return the ranges of the operators that the units are made of, with the borders of these units."""
        operators = self.units.apart(operator_units(self.partitioned))
        return ProgramRanges(self.partitioned, operators, frozenset(self.units.borders()))

    def _computed_in(self, members: Sequence[str]) -> tuple[str, ...]:
        """Return the Einsums that a region of the Einsums `members` computes. An Einsum that only renames an output is left out
        if the operand is computed elsewhere: every partition computes it in the region of its operand."""
        defined, renames = self.partitioned.program.defined, self.partitioned.reshapes.renames
        computed: list[str] = []
        for name in members:
            along = [n for n in defined[name].operands if n in self._home[name].einsums] if name in renames else []
            if set(along) <= set(computed):
                computed.append(name)
        return tuple(computed)


class RegionEstimates(SharedEstimates[float]):
    """The cycles that regions are expected to take on a machine. On the array of the estimator these are with loading, and infinite for a
    region that does not fit."""

    def __init__(self, estimator: Estimator, machine: Machine) -> None:
        super().__init__(estimator, machine, lambda own: math.inf if own.shortage else own.bound.cycles + own.loading)

    def cycles(self, regions: tuple[CompiledRegion, ...], knowledge: TensorKnowledge) -> float:
        """Return the cycles of regions that run one after the other, and add what they write to `knowledge`."""
        return sum(self.add(region, knowledge)[2] for region in estimator_regions(regions))


@dataclass(slots=True)
class PartCosts:
    """The expected cycles of ranges of units. Each range is estimated once, and so are ranges that differ in names alone.

    A region is lowered with its operands in the formats in which regions of single operators store them. Which coordinates a
    tensor stores does not depend on the partition. But a dense result whose mode order nothing demands is stored in the order of
    the loops that compute it, so the sum over a partition is an approximation.
    """

    ranges: ProgramRanges
    schedule: Schedule
    """The schedule that runs every operator alone, except for the regions that the user's schedule names."""
    estimates: RegionEstimates
    state: LoweringState
    """The state after every region ran."""
    knowledge: TensorKnowledge
    alone: dict[tuple[str, ...], float]
    """The cycles of each region of single operators, by its Einsums."""
    estimated: int = 0
    _cycles: dict[Hashable, float] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        partitioned: PartitionedProgram,
        schedule: Schedule,
        tensors: Mapping[str, Tensor],
        estimates: RegionEstimates,
        memo: LoweringMemo | None = None,
    ) -> PartCosts:
        """Prepare the costs of a program that is partitioned into single operators. Raises `FusionError` if one cannot be lowered."""
        program = partitioned.program
        state, knowledge = initial_state(partitioned, tensors, memo), estimates.estimator.knowledge(program, tensors)
        alone: dict[tuple[str, ...], float] = {}
        for request in region_requests(partitioned):
            regions, state = lower_region(state, request)
            alone[request.einsums] = estimates.cycles(regions, knowledge)
        return cls(ProgramRanges(partitioned, operator_units(partitioned)), schedule, estimates, state, knowledge, alone)

    @property
    def partitioned(self) -> PartitionedProgram:
        """The program in single operators."""
        return self.ranges.partitioned

    @property
    def units(self) -> UnitSequence:
        """The units between which the program may be cut."""
        return self.ranges.units

    def __call__(self, part: UnitRange) -> float:
        """Return the cycles of a range as one region, infinite if it cannot be a region."""
        return self.cycles(self.ranges.request(part)) if self.ranges.is_region(part) else math.inf

    def grown(self) -> Iterator[tuple[str, float, UnitSequence, UnitPartition]]:
        """Yield two cuts whose regions grow by merges: from ranges that grew before (`greedy`), and from single units (`merges`).
        With its name come its cycles, the units in an order in which its regions are ranges, and these ranges."""
        program, count = self.partitioned.original, len(self.units)
        readers, links = unit_readers(program, self.units), unit_links(program, self.units)
        _, ranges = greedy_partition(count, self)
        for name, start in (("greedy", ranges), ("merges", partition_at(range(1, count), count))):
            cycles, groups = merged_units([tuple(range(*part)) for part in start], readers, links, self._of_group)
            yield name, cycles, *self.units.in_order_of(groups)

    def _of_group(self, group: UnitGroup) -> float:
        """Return the cycles of units as one region, infinite if they cannot be one."""
        if len(group) == 1:
            return self((group[0], group[0] + 1))
        units = [self.units.units[number] for number in group]
        return math.inf if any(unit.alone for unit in units) else self.of_region(tuple(e for unit in units for e in unit.einsums))

    def of_region(self, einsums: tuple[str, ...]) -> float:
        """Return the cycles of these Einsums as one region, infinite if they cannot be one, or cannot be estimated: they are too
        many, or read what only the inside of an operator has (a layer may end inside a softmax)."""
        request = self.ranges.region("region", einsums)
        defined = self.partitioned.program.defined
        operands = {name for e in request.einsums for name in defined[e].operands if name in defined}
        stored = self.state.stored.keys() | self.partitioned.sources.keys()
        known = operands <= stored.union(request.einsums)
        return self.cycles(request) if known and len(request.einsums) <= LARGEST_REGION else math.inf

    def cycles(self, request: RegionRequest) -> float:
        """Return the cycles of a region, infinite if it cannot be lowered. A region of which nothing is read takes 0."""
        if not request.results:
            return 0.0
        if request.einsums in self.alone:
            return self.alone[request.einsums]
        key = self.key(request)
        if key not in self._cycles:
            self.estimated += 1
            lowered = attempt(lower_region, self.before(request), request)
            cost = self.estimates.cycles
            self._cycles[key] = math.inf if isinstance(lowered, Refusal) else cost(lowered[0], self.knowledge.copy())
        return self._cycles[key]

    def fits(self, limit: int) -> bool:
        """Return whether the regions to estimate have at most `limit` Einsums in all, each counted once for each region."""
        sizes: dict[Hashable, int] = {}
        for end in range(1, len(self.units) + 1):
            for start in range(end):
                if self.ranges.is_region(part := (start, end)):
                    sizes[self.key(self.ranges.request(part))] = len(self.ranges.members(part))
            if sum(sizes.values()) > limit:
                return False
        return True

    def refine(self, limit: int) -> bool:
        """Choose the finest units whose regions fit the `limit`: operators, products, or the regions of the best cut that grows.
        Return whether there are any."""
        if self.fits(limit):
            return True
        finest, self.ranges.units = self.units, product_units(self.partitioned, self.units)
        if self.fits(limit):
            return True
        self.ranges.units = finest
        _, _, units, partition = min(self.grown(), key=lambda cut: cut[1])
        self.ranges.units = units.joined(partition)
        return self.fits(limit)

    def key(self, request: RegionRequest) -> Hashable:
        """Return a key that is equal for regions that take the same cycles."""
        defined = self.partitioned.program.defined
        read = dict.fromkeys(n for e in request.einsums for n in defined[e].operands if n not in request.einsums)
        patterns = (self.knowledge.patterns.get(n) for n in read)
        return fusion_key(self.before(request), request), tuple(p and p.fingerprint for p in patterns)

    def before(self, request: RegionRequest) -> LoweringState:
        """Return the state before a region. It has the tensors that the region reads, but not yet its views of them."""
        program, sources = self.partitioned.program, self.partitioned.sources
        reads = dict.fromkeys(n for e in request.einsums for n in program.defined[e].operands)
        reads |= dict.fromkeys(n for n in program.outputs if n in sources)
        pending = list(reads)
        for name in pending:
            if name in sources:
                reads[sources[name]] = None
                pending.append(sources[name])
        kept = [n for n in reads if n in self.state.stored and n not in request.einsums and n not in sources]
        return self.state.restricted_to(kept)

    def apart(self, einsums: Iterable[str]) -> float:
        """Return the cycles of the operators of these Einsums, each as a region; it counts if its last Einsum is among them."""
        computed = self.ranges.region("operators", einsums).einsums
        ends = {own[-1]: cycles for own, cycles in self.alone.items()}
        return sum(ends.get(e, 0.0) for e in computed)

    def estimated_whole(
        self, partitioned: PartitionedProgram, tensors: Mapping[str, Tensor], regions: tuple[CompiledRegion, ...]
    ) -> float:
        """Return the cycles of the whole program as it was lowered into these regions."""
        return self.estimates.cycles(regions, self.estimates.estimator.knowledge(partitioned.program, tensors))

    def scheduled(self, partition: UnitPartition) -> Schedule:
        """Return the schedule that names the regions of a partition, except those of one operator."""
        return self.units.scheduled(self.schedule, partition)


def prepare_costs(
    source: Source, schedule: Schedule, estimates: RegionEstimates, memo: LoweringMemo | None = None
) -> PartCosts | None:
    """Return the costs of the ranges of a program that is cut between all operators, except in the regions that the schedule
    names, on the machine of the estimates. None if an operator cannot be lowered, or if its cycles are not known. If the schedule
    names regions, `FusionError`, `MachineError` or `ScheduleError` is raised instead."""
    named = section_regions(with_associations(source.program, schedule), schedule)
    alone = replace(schedule, fuse_regions=named or ("none",))
    try:
        partitioned, _ = lower_for(source.program, alone, estimates.machine, source.tensors, memo)
        return PartCosts.of(partitioned, alone, source.tensors, estimates, memo)
    except (FusionError, MachineError, ScheduleError):
        if named:
            raise
        return None
