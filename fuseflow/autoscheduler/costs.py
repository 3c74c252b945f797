"""What each part of a program is expected to cost as one region of a machine."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field

from fuseflow.autoscheduler.units import UnitRange, UnitSequence
from fuseflow.estimate.program import Estimator, TensorKnowledge
from fuseflow.fusion.refusal import Refusal, attempt
from fuseflow.lower.partition import PartitionedProgram
from fuseflow.lower.regions import CompiledRegion, lower_region
from fuseflow.lower.search import fusion_key
from fuseflow.lower.state import LoweringState, RegionRequest, initial_state
from fuseflow.lower.views import source_of
from fuseflow.run.estimator_regions import estimator_regions
from fuseflow.schedule import Schedule
from fuseflow.sim import Machine
from fuseflow.tensors import Tensor

LARGEST_REGION = 32
"""Einsums of a region that is estimated to find partitions: larger ones take seconds each."""


@dataclass(slots=True)
class PartCosts:
    """Cycles of ranges of units, each estimated once; so are ranges that differ in names alone, as a model repeats its layers.

    A region is lowered on what regions of single operators store. Which tensors are stored, and where they store something, is the same
    however the program is cut; but a dense result whose order no one asked for is stored in the order of the loops that compute it, so
    that the sum over a partition is an approximation.
    """

    partitioned: PartitionedProgram
    units: UnitSequence
    schedule: Schedule
    machine: Machine
    estimator: Estimator
    state: LoweringState
    """The state after every operator ran by itself."""
    knowledge: TensorKnowledge
    readers: Mapping[str, frozenset[str]]
    """Of each Einsum, those that read it; an output has one that is nowhere."""
    place: Mapping[str, int]
    estimated: int = 0
    _cycles: dict[Hashable, float] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        partitioned: PartitionedProgram,
        units: UnitSequence,
        schedule: Schedule,
        tensors: Mapping[str, Tensor],
        machine: Machine,
        estimator: Estimator,
    ) -> PartCosts:
        """`partitioned` is the program in regions of single operators. Raises `FusionError` if one of them cannot be lowered."""
        program, results = partitioned.program, partitioned.results
        state, knowledge = initial_state(partitioned, tensors), estimator.knowledge(program, tensors)
        for region in partitioned.regions:
            if results[region.name]:
                regions, state = lower_region(state, RegionRequest(region.name, region.einsums, results[region.name]))
                estimate_regions(regions, estimator, machine, knowledge)
        readers: dict[str, set[str]] = {e.name: {""} if e.name in program.outputs else set() for e in program.einsums}
        for einsum in program.einsums:
            for name in einsum.operands:
                readers.get(name, set()).add(einsum.name)
        place = {e.name: n for n, e in enumerate(program.einsums)}
        read = {name: frozenset(by) for name, by in readers.items()}
        return cls(partitioned, units, schedule, machine, estimator, state, knowledge, read, place)

    def __call__(self, part: UnitRange) -> float:
        """Cycles of a region, infinite if it cannot be one."""
        if not self.may(part):
            return math.inf
        request = self._request(part)
        if not request.results:
            return 0.0
        key = self.key(part)
        if key not in self._cycles:
            self.estimated += 1
            self._cycles[key] = self._expected(request)
        return self._cycles[key]

    def fits(self, limit: int) -> bool:
        """Whether the Einsums of all regions to estimate, each as often as it is in one, are no more than `limit`."""
        found: dict[Hashable, int] = {}
        for end in range(1, len(self.units) + 1):
            for start in range(end):
                if self.may(part := (start, end)):
                    found[self.key(part)] = self._size(part)
            if sum(found.values()) > limit:
                return False
        return True

    def may(self, part: UnitRange) -> bool:
        """Whether a range is estimated."""
        return self.units.legal(part) and (part[1] - part[0] == 1 or self._size(part) <= LARGEST_REGION)

    def key(self, part: UnitRange) -> Hashable:
        """What the cost of a range follows from."""
        request, defined = self._request(part), self.partitioned.program.defined
        read = dict.fromkeys(n for e in request.einsums for n in defined[e].operands if n not in request.einsums)
        patterns = (self.knowledge.patterns.get(n) for n in read)
        return fusion_key(self._before(request), request), tuple(p and p.fingerprint for p in patterns)

    def _size(self, part: UnitRange) -> int:
        return len(self.partitioned.reshapes.members(self.units.einsums(part)))

    def _request(self, part: UnitRange) -> RegionRequest:
        """The region of a range; the results that it writes are what others read."""
        members = sorted(self.partitioned.reshapes.members(self.units.einsums(part)), key=self.place.__getitem__)
        results = (e for e in members if not self.readers[e] <= set(members))
        return RegionRequest(self.units.name(part), tuple(members), tuple(results))

    def _before(self, request: RegionRequest) -> LoweringState:
        """What is known where the region begins: what it reads, but not yet in other dimensions."""
        program, views = self.partitioned.program, self.partitioned.views
        there = dict.fromkeys(n for e in request.einsums for n in program.defined[e].operands)
        there |= dict.fromkeys(n for n in program.outputs if n in views)
        waiting = [n for n in there if n in views]
        for name in waiting:
            source = source_of(views[name]).tensor
            there[source] = None
            if source in views:
                waiting.append(source)
        return self.state.restricted_to(
            n for n in there if n in self.state.stored and n not in request.einsums and n not in views
        )

    def _expected(self, request: RegionRequest) -> float:
        """Cycles of a region that may be estimated, infinite if it cannot be lowered."""
        if any(name in request.einsums and name not in request.results for name in self.schedule.drop_zeros):
            return math.inf  # its zeros are dropped where it is written
        lowered = attempt(lower_region, self._before(request), request)
        if isinstance(lowered, Refusal):
            return math.inf
        return estimate_regions(lowered[0], self.estimator, self.machine, self.knowledge.copy())


def estimate_regions(
    made: tuple[CompiledRegion, ...], estimator: Estimator, machine: Machine, knowledge: TensorKnowledge
) -> float:
    """Cycles of regions, one after the other; `knowledge` then knows what they write."""
    return sum(estimator.region(region, machine, knowledge).bound.cycles for region in estimator_regions(made))
