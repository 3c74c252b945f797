"""Where a program may be cut: its units, each a run of operators that no cut parts, in an order in which they can run.

Every range of units is a region that can run: what stands before it never needs its results. So a partition of the program is a row
of cuts between units.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeAlias

from fuseflow.einsum.nodes import Einsum, Reduce, walk
from fuseflow.einsum.reshapes import eliminate_reshapes
from fuseflow.lower.partition import PartitionedProgram
from fuseflow.schedule import Schedule, form_regions
from fuseflow.schedule.granularities import layer_labels

UnitRange: TypeAlias = tuple[int, int]
"""Units from the first on, up to but not including the second."""
UnitPartition: TypeAlias = tuple[UnitRange, ...]


@dataclass(frozen=True, slots=True)
class ProgramUnit:
    """`first` and `last` are what its operators are called; `parts`: how many of them there are. `alone`: no region may hold it with
    others."""

    first: str
    last: str
    einsums: tuple[str, ...]
    parts: int = 1
    alone: bool = False


@dataclass(frozen=True, slots=True)
class UnitSequence:
    """The units of a program, and what they are: `operators`, `products` or `layers`."""

    what: str
    units: tuple[ProgramUnit, ...]

    def __len__(self) -> int:
        return len(self.units)

    def name(self, part: UnitRange) -> str:
        """What a region is called: by its first and its last operator."""
        first, last = self.units[part[0]].first, self.units[part[1] - 1].last
        return first if first == last else f"{first}-{last}"

    def einsums(self, part: UnitRange) -> tuple[str, ...]:
        return tuple(e for unit in self.units[slice(*part)] for e in unit.einsums)

    def parts(self, part: UnitRange) -> int:
        return sum(unit.parts for unit in self.units[slice(*part)])

    def legal(self, part: UnitRange) -> bool:
        return part[1] - part[0] == 1 or not any(unit.alone for unit in self.units[slice(*part)])

    def scheduled(self, schedule: Schedule, partition: Iterable[UnitRange]) -> Schedule:
        """The schedule with the regions of a partition; what `none` would do needs no name."""
        fused = {self.name(part): self.einsums(part) for part in partition if self.parts(part) > 1}
        return replace(schedule, fuse_regions=tuple(fused) or ("none",), regions=tuple(fused.items()))


def partition_at(cuts: Sequence[int], count: int) -> UnitPartition:
    """The ranges between these cuts of `count` units.

    >>> partition((2,), 3)
    ((0, 2), (2, 3))
    """
    return tuple(pairwise((0, *cuts, count)))


def operator_units(partitioned: PartitionedProgram, schedule: Schedule) -> UnitSequence:
    """Each operator by itself, a softmax or a norm as one. A reshape that vanishes goes with what stands before it."""
    stuck = partitioned.reshapes.barriers | eliminate_reshapes(partitioned.original).barriers
    found: list[ProgramUnit] = []
    waiting: tuple[str, ...] = ()
    for region in form_regions(partitioned.original, replace(schedule, fuse_regions=("none",), regions=())):
        members, alone = partitioned.reshapes.members(region.einsums), not stuck.isdisjoint(region.einsums)
        if not alone and all(e in partitioned.reshapes.renames for e in members):
            if found:
                found[-1] = replace(found[-1], einsums=(*found[-1].einsums, *region.einsums))
            else:
                waiting += region.einsums
            continue
        found.append(ProgramUnit(region.name, region.name, (*waiting, *region.einsums), alone=alone))
        waiting = ()
    return UnitSequence("operators", tuple(found))


def product_units(partitioned: PartitionedProgram, units: UnitSequence) -> UnitSequence:
    """Each product, softmax or norm with the pointwise operators behind it that read it."""
    defined = partitioned.original.defined

    def follows(before: ProgramUnit, unit: ProgramUnit) -> bool:
        each = [defined[e] for e in unit.einsums]
        return not any(map(_reduces, each)) and any(n in before.einsums for e in each for n in e.operands)

    return UnitSequence("products", _join_neighbors(units.units, follows))


def layer_units(partitioned: PartitionedProgram, units: UnitSequence) -> UnitSequence:
    """The operators of each layer that stand next to each other."""
    labels = layer_labels(partitioned.original)

    def follows(before: ProgramUnit, unit: ProgramUnit) -> bool:
        return bool(labels) and labels[before.einsums[0]] == labels[unit.einsums[0]]

    return UnitSequence("layers", _join_neighbors(units.units, follows))


def _reduces(einsum: Einsum) -> bool:
    return any(isinstance(node, Reduce) for node in walk(einsum.body))


def _join_neighbors(units: Iterable[ProgramUnit], follows: Callable[[ProgramUnit, ProgramUnit], bool]) -> tuple[ProgramUnit, ...]:
    """Neighbours as one, where `follows` says so."""
    found: list[ProgramUnit] = []
    for unit in units:
        if found and not (found[-1].alone or unit.alone) and follows(found[-1], unit):
            before = found[-1]
            found[-1] = ProgramUnit(before.first, unit.last, (*before.einsums, *unit.einsums), before.parts + unit.parts)
        else:
            found.append(unit)
    return tuple(found)
