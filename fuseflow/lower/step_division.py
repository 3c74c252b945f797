"""The regions of a training step, divided where one would take longer than its Einsums one by one.

A backward pass reads most of what the forward pass computed several times. So a region that holds a product and its readers may
compute it again for each of them:

    m[i] = max(j) Z[i, j];  P[i, j] = exp(Z[i, j] - m[i]);  s[i] = sum(j) P[i, j];  G[i, j] = P[i, j] / s[i] - T[i, j]

If the region computes Z = A H too, it does so for the maximum, for the sum and for G. In a forward pass a region is as large as the
user asks for. In a training step, `layerwise` and `full` end it at Z.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from fuseflow.costs.statistics import assume_statistics
from fuseflow.einsum.nodes import Program, Reduce, walk
from fuseflow.einsum.phases import UPDATE, phase_of
from fuseflow.lower.partition import PartitionedProgram, partition_program
from fuseflow.lower.program import lower_regions
from fuseflow.lower.region_fusion import region_work
from fuseflow.lower.regions import CompiledRegion
from fuseflow.lower.state import LoweringMemo, LoweringState, initial_state
from fuseflow.schedule import Region, Schedule, form_regions
from fuseflow.schedule.partition import unique_names
from fuseflow.schedule.region_size import RegionDivider
from fuseflow.schedule.section_names import names_in_sections
from fuseflow.tensors import Tensor

MOST_TIMES = 1.5
"""A region is divided if it is expected to take more than this many times the cycles of its Einsums one by one. (With 1, 1.25, 1.5 and 2,
a GCN on karate and eleven other small steps take 0.61, 0.60, 0.60 and 0.65 times the cycles of no fusion with `layerwise`, and 0.50,
0.50, 0.51 and 0.64 times with `full`, as geometric means. It was not tuned on a GCN on Cora and an MLP with two pruned weights, which take
0.73 and 0.87 times with `layerwise`, and 0.61 and 0.68 times with `full`.)"""
NOTED_TIMES = 4
"""A region that stays whole is noted if it is expected to take more than this many times the cycles of its Einsums one by one."""


@dataclass(frozen=True, slots=True)
class StepDivision:
    """The division of the regions of a training step. `unfused` has the expected cycles of each region of `none`: an Einsum, or a softmax
    or a norm. `state` has the statistics of the inputs, and `stated` the names of regions in the user's schedule, which stay whole."""

    unfused: Mapping[tuple[str, ...], float]
    state: LoweringState
    stated: frozenset[str]

    @classmethod
    def of(
        cls,
        program: Program,
        partitioned: PartitionedProgram,
        schedule: Schedule,
        tensors: Mapping[str, Tensor],
        memo: LoweringMemo,
    ) -> StepDivision:
        """Prepare the division of the regions of a program, which has this schedule."""
        plain = replace(schedule, fuse_regions=("none",), orders=(), parallel=(), depths=(), splits=(), buffers=(), preloads=())
        unfused = dict(_expected_cycles(lower_regions(partition_program(program, plain), tensors, memo)))
        return cls(unfused, initial_state(partitioned, tensors, memo), frozenset(names_in_sections(schedule)))

    def divided(self, partitioned: PartitionedProgram, lowered: Sequence[CompiledRegion]) -> tuple[Region, ...]:
        """Return the regions, each that takes too long in two pieces. `lowered` are these regions as they were lowered. It is the
        same tuple if none does. A region that the user's schedule names stays whole."""
        times, compiled = self._times(lowered), {region.name: region for region in lowered}
        slow = [r for r in partitioned.formed if times.get(r.name, 0.0) > MOST_TIMES and r.name not in self.stated]
        return _divided_at(partitioned, {r.name: self._end(partitioned, r, compiled[r.name]) for r in slow})

    def notices(self, lowered: Sequence[CompiledRegion]) -> tuple[str, ...]:
        """Return notices about regions that stay whole although they take much longer than their Einsums one by one."""
        return tuple(
            f"region `{name}` is expected to take {times:.1f} times the cycles of its Einsums one by one: it computes some of them again"
            for name, times in self._times(lowered).items()
            if times > NOTED_TIMES
        )

    def _times(self, lowered: Sequence[CompiledRegion]) -> Mapping[str, float]:
        """Return, by name, the expected cycles of each region over those of its Einsums one by one."""
        names = (region.name for region in lowered if region.einsums)
        return {n: cycles / self._apart(einsums) for n, (einsums, cycles) in zip(names, _expected_cycles(lowered), strict=True)}

    def _apart(self, einsums: Sequence[str]) -> float:
        """Return the expected cycles of Einsums one by one. They are infinite if `none` has all of them in one region."""
        members, cycles = frozenset(einsums), 0.0
        for unit, alone in self.unfused.items():
            own = members.intersection(unit)
            if own == members:
                return math.inf
            cycles += alone * len(own) / len(unit)
        return cycles or math.inf

    def _end(self, partitioned: PartitionedProgram, region: Region, compiled: CompiledRegion) -> int:
        """Return how many Einsums the first piece of a region has. It ends at a producer whose values are computed again often, where few
        tensors go on, or else where the updates of parameters begin; 0 if there is neither."""
        savings = self._savings(compiled)
        enough = max(savings.values(), default=0.0) / 2
        ends = {
            end: saving
            for producer, saving in savings.items()
            if saving > 0.0 and saving >= enough and (end := _end_behind(partitioned, region.einsums, producer))
        }
        if ends:
            crossing = RegionDivider(partitioned.original).crossing(region.einsums)
            return min(ends, key=lambda end: (crossing[end], -ends[end]))
        paths = [partitioned.original.defined[e].location.path for e in region.einsums]
        return next((n for n, path in enumerate(paths) if phase_of(path) == UPDATE), 0)

    def _savings(self, region: CompiledRegion) -> Mapping[str, float]:
        """Return how much work of a region would be saved if each of its producers ran once. Statistics of tensors of earlier
        regions are assumed from their formats."""
        types = region.fused.stored
        statistics = {name: self.state.statistics.get(name) or assume_statistics(type) for name, type in types.items()}
        state = replace(self.state, stored=types, statistics=statistics)
        return region_work(state, region.fused).savings(region.fused.order)


def divided_at_producers(partitioned: PartitionedProgram, producers: Mapping[str, str]) -> tuple[Region, ...]:
    """Return the regions, with each region of these names in two pieces. The first ends at a producer, or, if that ends no piece, has
    about half of the Einsums. It is the same tuple if each of these regions has one Einsum."""
    einsums = {region.name: region.einsums for region in partitioned.formed}
    return _divided_at(partitioned, {name: _end_behind(partitioned, einsums[name], p) for name, p in producers.items()})


def _divided_at(partitioned: PartitionedProgram, ends: Mapping[str, int]) -> tuple[Region, ...]:
    """Return the regions, with each region of these names in two pieces, of which the first has this number of Einsums; 0 stands for
    about half of them, so that few tensors go on. The first piece of a layer keeps the name of the layer."""
    layer = {e: r.name for r in form_regions(partitioned.original, partitioned.schedule, partitioned.kept) for e in r.einsums}
    divider, pieces = RegionDivider(partitioned.original), list[tuple[str, ...]]()
    for region in partitioned.formed:
        if region.name not in ends or len(region.einsums) == 1:
            pieces.append(region.einsums)
        elif end := ends[region.name]:
            pieces += [region.einsums[:end], region.einsums[end:]]
        else:
            pieces += divider.halves(region.einsums)
    if len(pieces) == len(partitioned.formed):
        return partitioned.formed
    return tuple(map(Region, unique_names([layer[piece[0]] for piece in pieces]), pieces))


def _end_behind(partitioned: PartitionedProgram, einsums: Sequence[str], producer: str) -> int:
    """Return how many Einsums a piece has that ends at a producer: an Einsum, or a reduction in one. Operators that alone go on with its
    values are in the piece, too. It is 0 if the Einsums do not have the producer, or end there."""
    defined = partitioned.original.defined
    homes = {statement: n for n, e in enumerate(einsums) for statement in partitioned.reshapes.members((e,))}
    end = 1 + next((homes[name] for name in (producer, producer.rpartition(".")[0]) if name in homes), -1)
    while 0 < end < len(einsums):
        reads_on = [e for e in einsums if einsums[end - 1] in defined[e].operands] == [einsums[end]]
        if not reads_on or any(isinstance(node, Reduce) for node in walk(defined[einsums[end]].body)):
            return end
        end += 1
    return 0


def _expected_cycles(lowered: Iterable[CompiledRegion]) -> Iterator[tuple[tuple[str, ...], float]]:
    """Yield the Einsums of each region, and its expected cycles with those of the copies that it reads."""
    cycles = 0.0
    for region in lowered:
        cycles += region.estimate.rank
        if region.einsums:
            yield region.einsums, cycles
            cycles = 0.0
