"""What each part of a program is expected to cost as one region of a machine."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace

from fuseflow.compiler.lower import Formed, begin
from fuseflow.compiler.regions import CompiledRegion, Lowering
from fuseflow.compiler.seen import source_of
from fuseflow.errors import FusionError
from fuseflow.estimate.program import Estimator, TensorKnowledge
from fuseflow.explore.units import Range, Units
from fuseflow.run.region_graphs import region_graphs
from fuseflow.schedule import Region, Schedule, region_results
from fuseflow.sim import Machine
from fuseflow.tensors import Tensor

LARGEST = 32
"""Einsums of a region that is estimated to find partitions: larger ones take seconds each."""


@dataclass(slots=True)
class Costs:
    """Cycles of ranges of units, each estimated once; so are ranges that differ in names alone, as a model repeats its layers.

    A region is lowered on what regions of single operators store. Which tensors are stored, and where they store something, is the same
    however the program is cut; but a dense result whose order no one asked for is stored in the order of the loops that compute it, so
    that the sum over a partition is an approximation.
    """

    formed: Formed
    units: Units
    schedule: Schedule
    machine: Machine
    estimator: Estimator
    lowering: Lowering
    knowledge: TensorKnowledge
    readers: Mapping[str, frozenset[str]]
    """Of each Einsum, those that read it; an output has one that is nowhere."""
    place: Mapping[str, int]
    estimated: int = 0
    _found: dict[Hashable, float] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        formed: Formed,
        units: Units,
        schedule: Schedule,
        tensors: Mapping[str, Tensor],
        machine: Machine,
        estimator: Estimator,
    ) -> Costs:
        """`formed` is the program in regions of single operators. Raises `FusionError` if one of them cannot be lowered."""
        lowering = begin(formed, schedule, tensors)
        knowledge = estimator.knowledge(formed.program, tensors)
        results = region_results(formed.program, formed.regions)
        for region in formed.regions:
            if results[region.name]:
                for made in lowering.region(region, results[region.name], ()):
                    expected((made,), estimator, machine, knowledge)
        readers: dict[str, set[str]] = {
            e.name: {""} if e.name in formed.program.outputs else set() for e in formed.program.einsums
        }
        for einsum in formed.program.einsums:
            for name in einsum.operands:
                readers.get(name, set()).add(einsum.name)
        place = {e.name: n for n, e in enumerate(formed.program.einsums)}
        read = {name: frozenset(by) for name, by in readers.items()}
        return cls(formed, units, schedule, machine, estimator, lowering, knowledge, read, place)

    def __call__(self, part: Range) -> float:
        """Cycles of a region, infinite if it cannot be one."""
        if not self.may(part):
            return math.inf
        region, results = self._region(part)
        if not results:
            return 0.0
        lowering, key = self._before(region), self.key(part)
        if key not in self._found:
            self.estimated += 1
            self._found[key] = self._cycles(lowering, region, results)
        return self._found[key]

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

    def may(self, part: Range) -> bool:
        """Whether a range is estimated."""
        return self.units.legal(part) and (part[1] - part[0] == 1 or self._size(part) <= LARGEST)

    def key(self, part: Range) -> Hashable:
        """What the cost of a range follows from."""
        region, results = self._region(part)
        read = dict.fromkeys(
            n for e in region.einsums for n in self.formed.program.defined[e].operands if n not in region.einsums
        )
        patterns = (self.knowledge.patterns.get(n) for n in read)
        return self._before(region).key(region, results), tuple(p and p.fingerprint for p in patterns)

    def _size(self, part: Range) -> int:
        return len(self.formed.refined.members(self.units.einsums(part)))

    def _region(self, part: Range) -> tuple[Region, tuple[str, ...]]:
        """The region, and the results that it writes: what others read."""
        members = sorted(self.formed.refined.members(self.units.einsums(part)), key=self.place.__getitem__)
        results = (e for e in members if not self.readers[e] <= set(members))
        return Region(self.units.name(part), tuple(members)), tuple(results)

    def _before(self, region: Region) -> Lowering:
        """What is known where the region begins: what it reads, but not yet in other dimensions."""
        there = dict.fromkeys(n for e in region.einsums for n in self.formed.program.defined[e].operands)
        there |= dict.fromkeys(n for n in self.formed.program.outputs if n in self.lowering.views)
        waiting = [n for n in there if n in self.lowering.views]
        for name in waiting:
            source = source_of(self.lowering.views[name]).tensor
            there[source] = None
            if source in self.lowering.views:
                waiting.append(source)
        names = [n for n in there if n in self.lowering.stored and n not in region.einsums and n not in self.lowering.views]
        stored = {n: self.lowering.stored[n] for n in names}
        return replace(self.lowering, stored=stored, known={n: self.lowering.known[n] for n in names})

    def _cycles(self, lowering: Lowering, region: Region, results: tuple[str, ...]) -> float:
        if any(name in region.einsums and name not in results for name in self.schedule.drop_zeros):
            return math.inf  # its zeros are dropped where it is written
        try:
            made = tuple(lowering.region(region, results, ()))
        except FusionError:
            return math.inf
        return expected(made, self.estimator, self.machine, self.knowledge.copy())


def expected(made: tuple[CompiledRegion, ...], estimator: Estimator, machine: Machine, knowledge: TensorKnowledge) -> float:
    """Cycles of regions, one after the other; `knowledge` then knows what they write."""
    return sum(estimator.region(region, machine, knowledge).bound.cycles for region in region_graphs(made))
