"""The cycles that each part of a program is expected to take as one region on a machine."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field

from fuseflow.autoscheduler.units import UnitRange, UnitSequence
from fuseflow.estimate.program import Estimator, TensorKnowledge
from fuseflow.fusion.refusal import Refusal, attempt
from fuseflow.lower.partition import PartitionedProgram
from fuseflow.lower.program import region_requests
from fuseflow.lower.region_fusion import fusion_key
from fuseflow.lower.regions import CompiledRegion, lower_region
from fuseflow.lower.state import LoweringState, RegionRequest, initial_state
from fuseflow.lower.views import source_of
from fuseflow.run.estimator_regions import estimator_regions
from fuseflow.schedule import Schedule
from fuseflow.sim import Machine
from fuseflow.tensors import Tensor

LARGEST_REGION = 32
"""The most Einsums of a region that is estimated to find partitions. Larger regions take seconds each."""


@dataclass(slots=True)
class PartCosts:
    """The expected cycles of ranges of units. Each range is estimated once, and so are ranges that differ in names alone.

    A region is lowered on the tensors that regions of single operators store. Which coordinates a tensor stores does not depend on the
    partition. But a dense result whose mode order nothing demands is stored in the order of the loops that compute it, so the sum over a
    partition is an approximation.
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
    """The Einsums that read each Einsum. An output of the program has the reader `""`, which is in no region."""
    position: Mapping[str, int]
    """The position of each Einsum in the program."""
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
        """Prepare the costs of a program that is partitioned into single operators. Raises `FusionError` if one cannot be lowered."""
        program = partitioned.program
        state, knowledge = initial_state(partitioned, tensors), estimator.knowledge(program, tensors)
        for request in region_requests(partitioned):
            regions, state = lower_region(state, request)
            estimate_regions(regions, estimator, machine, knowledge)
        readers: dict[str, set[str]] = {e.name: {""} if e.name in program.outputs else set() for e in program.einsums}
        for einsum in program.einsums:
            for name in einsum.operands:
                readers.get(name, set()).add(einsum.name)
        position = {e.name: n for n, e in enumerate(program.einsums)}
        readers_by_einsum = {name: frozenset(by) for name, by in readers.items()}
        return cls(partitioned, units, schedule, machine, estimator, state, knowledge, readers_by_einsum, position)

    def __call__(self, part: UnitRange) -> float:
        """Return the cycles of a range as one region. They are infinite if it cannot be a region."""
        if not self.is_estimated(part):
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
        """Return whether all regions to estimate have at most `limit` Einsums, each counted in every region that holds it."""
        sizes: dict[Hashable, int] = {}
        for end in range(1, len(self.units) + 1):
            for start in range(end):
                if self.is_estimated(part := (start, end)):
                    sizes[self.key(part)] = self._size(part)
            if sum(sizes.values()) > limit:
                return False
        return True

    def is_estimated(self, part: UnitRange) -> bool:
        """Return whether a range is estimated as one region: whether it may be one and is small enough."""
        return self.units.legal(part) and (part[1] - part[0] == 1 or self._size(part) <= LARGEST_REGION)

    def key(self, part: UnitRange) -> Hashable:
        """Return the key of the cost of a range: ranges with equal keys take the same cycles."""
        request, defined = self._request(part), self.partitioned.program.defined
        read = dict.fromkeys(n for e in request.einsums for n in defined[e].operands if n not in request.einsums)
        patterns = (self.knowledge.patterns.get(n) for n in read)
        return fusion_key(self._before(request), request), tuple(p and p.fingerprint for p in patterns)

    def _size(self, part: UnitRange) -> int:
        return len(self.partitioned.reshapes.members(self.units.einsums(part)))

    def _request(self, part: UnitRange) -> RegionRequest:
        """Return the region of a range. It writes the results that Einsums outside of it read."""
        members = self._computed_in(
            sorted(self.partitioned.reshapes.members(self.units.einsums(part)), key=self.position.__getitem__)
        )
        results = (e for e in members if not self.readers[e] <= set(members))
        return RegionRequest(self.units.name(part), members, tuple(results))

    def _computed_in(self, members: Sequence[str]) -> tuple[str, ...]:
        """Return the Einsums that a region of these computes: all but those that only name an output again whose Einsum is elsewhere, since
        every partition computes them where their operand is."""
        defined, renames = self.partitioned.program.defined, self.partitioned.reshapes.renames
        home = {e: region for region in self.partitioned.regions for e in region.einsums}
        computed: list[str] = []
        for name in members:
            along = [n for n in defined[name].operands if n in home[name].einsums] if name in renames else []
            if set(along) <= set(computed):
                computed.append(name)
        return tuple(computed)

    def _before(self, request: RegionRequest) -> LoweringState:
        """Return the state where a region begins. It has the tensors that the region reads, but not yet its views of them."""
        program, views = self.partitioned.program, self.partitioned.views
        reads = dict.fromkeys(n for e in request.einsums for n in program.defined[e].operands)
        reads |= dict.fromkeys(n for n in program.outputs if n in views)
        pending_views = [n for n in reads if n in views]
        for name in pending_views:
            source = source_of(views[name]).tensor
            reads[source] = None
            if source in views:
                pending_views.append(source)
        return self.state.restricted_to(
            n for n in reads if n in self.state.stored and n not in request.einsums and n not in views
        )

    def _expected(self, request: RegionRequest) -> float:
        """Estimate the cycles of a region. They are infinite if it cannot be lowered."""
        lowered = attempt(lower_region, self._before(request), request)
        if isinstance(lowered, Refusal):
            return math.inf
        return estimate_regions(lowered[0], self.estimator, self.machine, self.knowledge.copy())


def estimate_regions(
    regions: tuple[CompiledRegion, ...], estimator: Estimator, machine: Machine, knowledge: TensorKnowledge
) -> float:
    """Estimate the cycles of regions that run one after the other, and add what they write to `knowledge`."""
    return sum(estimator.region(region, machine, knowledge).bound.cycles for region in estimator_regions(regions))
