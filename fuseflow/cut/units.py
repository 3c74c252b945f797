"""The units of a program: sequences of operators that no cut separates, in an order in which they can run.

Every range of units can run as one region, because no unit before it needs its results. So a partition of the program is a
sequence of cuts between units. The cheapest ones follow by dynamic programming over cuts, because the cycles of regions add up.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from heapq import nsmallest
from itertools import accumulate, pairwise
from typing import TypeAlias

from fuseflow.einsum.nodes import Reduce, walk
from fuseflow.einsum.reshapes import eliminate_reshapes
from fuseflow.lower.partition import PartitionedProgram
from fuseflow.schedule import Schedule

UnitRange: TypeAlias = tuple[int, int]
"""A range of units: the number of the first, and the number behind the last."""
UnitPartition: TypeAlias = tuple[UnitRange, ...]
"""A partition of all units into ranges, in order."""
UnitGroup: TypeAlias = tuple[int, ...]
"""Units by their numbers, in order, which need not be neighbours."""


@dataclass(frozen=True, slots=True)
class ProgramUnit:
    """A sequence of operators that no cut separates.

    `first` and `last` are the names of its first and last operator, `parts` is how many operators it has. `alone` says that no
    region may have it together with others.
    """

    first: str
    last: str
    einsums: tuple[str, ...]
    parts: int = 1
    alone: bool = False


@dataclass(frozen=True, slots=True)
class UnitSequence:
    """The units of a program. `granularity` says what they are: `operators`, `products` or `regions`."""

    granularity: str
    units: tuple[ProgramUnit, ...]

    def __len__(self) -> int:
        return len(self.units)

    @property
    def home(self) -> dict[str, ProgramUnit]:
        """The unit that each Einsum belongs to, by the name of the Einsum."""
        return {e: unit for unit in self.units for e in unit.einsums}

    def name(self, part: UnitRange) -> str:
        """Return the name of the region of a range, which is made of its first and its last operator."""
        first, last = self.units[part[0]].first, self.units[part[1] - 1].last
        return first if first == last else f"{first}-{last}"

    def einsums(self, part: UnitRange) -> tuple[str, ...]:
        """Return the Einsums of a range."""
        return tuple(e for unit in self.units[slice(*part)] for e in unit.einsums)

    def parts(self, part: UnitRange) -> int:
        """Return the number of operators of a range."""
        return sum(unit.parts for unit in self.units[slice(*part)])

    def legal(self, part: UnitRange) -> bool:
        """Return whether a range may be a region: it is one unit, or none of its units must stay alone."""
        return part[1] - part[0] == 1 or not any(unit.alone for unit in self.units[slice(*part)])

    def in_order_of(self, groups: Iterable[UnitGroup]) -> tuple[UnitSequence, UnitPartition]:
        """Return the units in the order of these groups of their numbers, in which each group is a range, and these ranges."""
        groups = tuple(groups)
        cuts = tuple(accumulate(map(len, groups)))[:-1]
        return replace(self, units=tuple(self.units[n] for group in groups for n in group)), partition_at(cuts, len(self))

    def borders(self) -> tuple[int, ...]:
        """Return how many operators stand before each unit, and how many there are in all."""
        return tuple(accumulate((unit.parts for unit in self.units), initial=0))

    def apart(self, operators: UnitSequence) -> UnitSequence:
        """Return the operators that these units are made of, in their order. `operators` has them in any order."""
        place = {e: n for n, e in enumerate(e for unit in self.units for e in unit.einsums)}
        return replace(operators, units=tuple(sorted(operators.units, key=lambda unit: place[unit.einsums[0]])))

    def joined(self, partition: UnitPartition) -> UnitSequence:
        """Return the ranges of a partition as units that no cut separates."""
        bounds = ((part, self.units[part[0]], self.units[part[1] - 1]) for part in partition)
        return UnitSequence(
            "regions",
            tuple(
                ProgramUnit(first.first, last.last, self.einsums(part), self.parts(part), first.alone)
                for part, first, last in bounds
            ),
        )

    def scheduled(self, schedule: Schedule, partition: Iterable[UnitRange]) -> Schedule:
        """Return the schedule with the regions of a partition added, but for those of one operator, which `none` forms, too."""
        fused = {self.name(part): self.einsums(part) for part in partition if self.parts(part) > 1}
        return with_regions(schedule, fused)


def with_regions(schedule: Schedule, fused: Mapping[str, tuple[str, ...]]) -> Schedule:
    """Return the schedule with the regions `fused` added to those that it names."""
    named = () if schedule.fuse_regions == ("none",) else schedule.fuse_regions
    return replace(schedule, fuse_regions=(*named, *fused) or ("none",), regions=(*schedule.regions, *fused.items()))


def partition_at(cuts: Iterable[int], count: int) -> UnitPartition:
    """Return the ranges between these cuts of `count` units.

    >>> partition_at((2,), 3)
    ((0, 2), (2, 3))
    """
    return tuple(pairwise((0, *cuts, count)))


def operator_units(partitioned: PartitionedProgram) -> UnitSequence:
    """Return each region of a program that is cut between all operators as a unit; a softmax or a norm is one operator. A reshape
    that is eliminated joins the unit before it. Regions that the schedule names are units that stay alone."""
    lone = {e.name for e in partitioned.original.einsums if e.materializes}
    stuck = partitioned.reshapes.barriers | lone | eliminate_reshapes(partitioned.original, partitioned.kept).barriers
    units: list[ProgramUnit] = []
    leading: tuple[str, ...] = ()
    for region in partitioned.formed:
        members = partitioned.reshapes.members(region.einsums)
        alone = region.name in partitioned.schedule.fuse_regions or not stuck.isdisjoint(region.einsums)
        if not alone and all(e in partitioned.reshapes.renames for e in members):
            if units:
                units[-1] = replace(units[-1], einsums=(*units[-1].einsums, *region.einsums))
            else:
                leading += region.einsums
            continue
        units.append(ProgramUnit(region.name, region.name, (*leading, *region.einsums), alone=alone))
        leading = ()
    if leading:  # all Einsums of the program are reshapes that vanish
        units.append(ProgramUnit(leading[0], leading[-1], leading))
    return UnitSequence("operators", tuple(units))


def product_units(partitioned: PartitionedProgram, units: UnitSequence) -> UnitSequence:
    """Return units of one product, softmax or norm each, together with the pointwise operators behind it that read it."""
    defined = partitioned.original.defined

    def follows(before: ProgramUnit, unit: ProgramUnit) -> bool:
        einsums = [defined[e] for e in unit.einsums]
        reduces = any(isinstance(node, Reduce) for e in einsums for node in walk(e.body))
        return not reduces and any(n in before.einsums for e in einsums for n in e.operands)

    return UnitSequence("products", _join_neighbors(units.units, follows))


def _join_neighbors(units: Iterable[ProgramUnit], follows: Callable[[ProgramUnit, ProgramUnit], bool]) -> tuple[ProgramUnit, ...]:
    """Join neighbouring units for which `follows` returns True. Units that stay alone are not joined."""
    joined: list[ProgramUnit] = []
    for unit in units:
        if joined and not (joined[-1].alone or unit.alone) and follows(joined[-1], unit):
            before = joined[-1]
            joined[-1] = ProgramUnit(before.first, unit.last, (*before.einsums, *unit.einsums), before.parts + unit.parts)
        else:
            joined.append(unit)
    return tuple(joined)


def cheapest_partitions(count: int, cost: Callable[[UnitRange], float], keep: int) -> tuple[tuple[float, UnitPartition], ...]:
    """Return the `keep` partitions of `count` units with the least sum of `cost`, best first, equal ones by fewer regions.

    Each prefix of one of the best partitions is one of the best of its length, so `keep` of each length suffice. A range that cannot be
    a region has an infinite cost.

    >>> cheapest_partitions(3, lambda part: {1: 2.0, 2: 3.0, 3: 9.0}[part[1] - part[0]], 2)
    ((5.0, ((0, 1), (1, 3))), (5.0, ((0, 2), (2, 3))))
    """
    best: list[list[tuple[float, UnitPartition]]] = [[(0.0, ())]]
    for end in range(1, count + 1):
        costs = [(start, cost((start, end))) for start in range(end)]
        candidates = (
            (before + range_cost, (*parts, (start, end)))
            for start, range_cost in costs
            if range_cost < math.inf
            for before, parts in best[start]
        )
        best.append(nsmallest(keep, candidates, key=lambda one: (one[0], len(one[1]), one[1])))
    return tuple(best[count])


def greedy_partition(count: int, cost: Callable[[UnitRange], float]) -> tuple[float, UnitPartition]:
    """Return a partition of `count` units and the sum of its costs. From the first unit on, a range takes in the next units, as
    long as the longer range costs no more than the range and those units apart. It takes in one unit, then two, four and so on;
    where that does not pay, half as many, down to one. So a range of n units asks for about 2 log2(n) costs of ranges.

    >>> greedy_partition(3, lambda part: {1: 2.0, 2: 3.0, 3: 9.0}[part[1] - part[0]])
    (5.0, ((0, 2), (2, 3)))
    """
    total, parts, start = 0.0, list[UnitRange](), 0
    while start < count:
        end, step, spent, growing = start + 1, 1, cost((start, start + 1)), True
        while step and end < count:
            longer = min(end + step, count)
            apart = spent + sum(cost((unit, unit + 1)) for unit in range(end, longer))
            together = cost((start, longer))
            if together <= apart:
                end, spent = longer, together
            else:
                growing = False
            step = step * 2 if growing else step // 2
        total, start = total + spent, end
        parts.append((parts[-1][1] if parts else 0, end))
    return total, tuple(parts)
