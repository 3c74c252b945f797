"""The cycles that each part of a program is expected to take as one region on a machine."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace

from fuseflow.autoscheduler.ranges import ProgramRanges
from fuseflow.autoscheduler.units import UnitRange, UnitSequence, layer_units, operator_units, product_units
from fuseflow.errors import FusionError, ScheduleError
from fuseflow.estimate.program import Estimator, TensorKnowledge
from fuseflow.frontend.source import Source
from fuseflow.fusion.refusal import Refusal, attempt
from fuseflow.lower.partition import PartitionedProgram
from fuseflow.lower.program import region_requests
from fuseflow.lower.public import lower_for
from fuseflow.lower.region_fusion import fusion_key
from fuseflow.lower.regions import CompiledRegion, lower_region
from fuseflow.lower.state import LoweringState, RegionRequest, initial_state
from fuseflow.lower.views import source_of
from fuseflow.run.estimator_regions import estimator_regions
from fuseflow.schedule import Schedule
from fuseflow.sim import Machine
from fuseflow.tensors import Tensor


@dataclass(slots=True)
class PartCosts:
    """The expected cycles of ranges of units. Each range is estimated once, and so are ranges that differ in names alone.

    A region is lowered on the tensors that regions of single operators store. Which coordinates a tensor stores does not depend on the
    partition. But a dense result whose mode order nothing demands is stored in the order of the loops that compute it, so the sum over a
    partition is an approximation.
    """

    ranges: ProgramRanges
    schedule: Schedule
    machine: Machine
    estimator: Estimator
    state: LoweringState
    """The state after every operator ran by itself."""
    knowledge: TensorKnowledge
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
        return cls(ProgramRanges(partitioned, units), schedule, machine, estimator, state, knowledge)

    @property
    def partitioned(self) -> PartitionedProgram:
        """The program in single operators."""
        return self.ranges.partitioned

    @property
    def units(self) -> UnitSequence:
        """The units between which the program may be cut."""
        return self.ranges.units

    def __call__(self, part: UnitRange) -> float:
        """Return the cycles of a range as one region. They are infinite if it cannot be a region."""
        if not self.is_estimated(part):
            return math.inf
        request = self.ranges.request(part)
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

    def refine(self, limit: int) -> bool:
        """Cut between the finest units of which all regions are few enough to estimate: operators, products or layers. Return whether there
        are any."""
        finest = self.units
        levels: tuple[Callable[[], UnitSequence], ...] = (
            lambda: finest,
            lambda: product_units(self.partitioned, finest),
            lambda: layer_units(self.partitioned, finest),
        )
        for level in levels:
            self.ranges.units = level()
            if self.fits(limit):
                return True
        return False

    def is_estimated(self, part: UnitRange) -> bool:
        """Return whether a range is estimated as one region: whether it may be one and is small enough."""
        return self.ranges.is_region(part)

    def key(self, part: UnitRange) -> Hashable:
        """Return the key of the cost of a range: ranges with equal keys take the same cycles."""
        request, defined = self.ranges.request(part), self.partitioned.program.defined
        read = dict.fromkeys(n for e in request.einsums for n in defined[e].operands if n not in request.einsums)
        patterns = (self.knowledge.patterns.get(n) for n in read)
        return fusion_key(self._before(request), request), tuple(p and p.fingerprint for p in patterns)

    def _size(self, part: UnitRange) -> int:
        return len(self.ranges.members(part))

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


def prepare_costs(source: Source, schedule: Schedule, machine: Machine, estimator: Estimator) -> PartCosts | None:
    """Return the costs of the ranges of a program that is cut between all operators. None if one of them cannot run alone."""
    alone = replace(schedule, fuse_regions=("none",), regions=())
    try:
        partitioned, _ = lower_for(source.program, alone, machine, source.tensors)
        return PartCosts.of(partitioned, operator_units(partitioned, alone), alone, source.tensors, machine, estimator)
    except (FusionError, ScheduleError):
        return None


def estimate_regions(
    regions: tuple[CompiledRegion, ...], estimator: Estimator, machine: Machine, knowledge: TensorKnowledge
) -> float:
    """Estimate the cycles of regions that run one after the other, and add what they write to `knowledge`."""
    return sum(estimator.region(region, machine, knowledge).bound.cycles for region in estimator_regions(regions))
