"""Lanes that take runs of neighbouring rows instead of single rows, for a program whose other decisions are made.

The estimate does not tell them apart from lanes of single rows, which take as many firings. They change which lanes share lines
of the memory, and how much each lane has to do. So they are simulated.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from fuseflow.autoscheduler.budget.settings import SETTINGS
from fuseflow.einsum.nodes import index_names
from fuseflow.einsum.verify import extents
from fuseflow.lower.regions import CompiledRegion
from fuseflow.run.compiled import Compiled
from fuseflow.schedule import Schedule
from fuseflow.schedule.entries import split_lanes


@dataclass(frozen=True, slots=True)
class RowRuns:
    """A change: lanes of an index of a region take runs of `size` rows. The loop `target` (such as `T1.i`) is split in two, and
    the outer one is dealt. `order` is the loop order of the region before the split."""

    region: str
    index: str
    target: str
    size: int
    order: tuple[str, ...]

    def added(self, schedule: Schedule) -> Schedule:
        """Return a schedule with these runs."""
        outer, inner = f"{self.index}0", f"{self.index}1"
        lanes = f"{self.region}.{self.index}"
        parallel = tuple((f"{self.region}.{outer}" if name == lanes else name, count) for name, count in schedule.parallel)
        order = tuple(part for index in self.order for part in ((outer, inner) if index == self.index else (index,)))
        return replace(schedule, parallel=parallel).order(self.region, order).split(self.target, self.size)


def row_runs(compiled: Compiled) -> Iterator[tuple[RowRuns, ...]]:
    """Yield, for each region with lanes of one index, the runs that its lanes can take: short ones, or one run for each lane."""
    lanes = [(*split_lanes(name), count) for name, count in compiled.schedule.parallel]
    for region in compiled.regions:
        own = [(stage, index, count) for place, stage, index, count in lanes if place == region.name]
        if len(own) == 1 and not own[0][0] and not compiled.schedule.splits:
            ((_, index, count),) = own
            yield tuple(_runs(compiled, region, index, count))


def _runs(compiled: Compiled, region: CompiledRegion, index: str, lanes: int) -> Iterator[RowRuns]:
    """Yield the runs that lanes of an index of a region can take. The first Einsum of the region that has the index names the
    loop."""
    size_of, defined = extents(compiled.program), compiled.program.defined
    names = (e for e in region.einsums if index in _indices(compiled, e) and e in defined)
    einsum = next(names, None)
    if einsum is None:
        return
    size = size_of[einsum][index]
    divisors = [n for n in range(SETTINGS.shortest_run, SETTINGS.longest_run + 1) if size % n == 0 and n < size]
    short = min(divisors, key=lambda n: abs(math.log(n / SETTINGS.short_run)), default=0)
    whole = size // lanes if size % lanes == 0 else 0
    for run in dict.fromkeys((short, whole)):
        if 1 < run < size:
            yield RowRuns(region.name, index, f"{einsum}.{index}", run, region.fused.order)


def _indices(compiled: Compiled, einsum: str) -> frozenset[str]:
    defined = compiled.program.defined[einsum]
    return frozenset(index_names((*defined.indices, *(i for access in defined.accesses for i in access.indices))))
